package editor

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-hub/dragoman/core/jsonrpc"
)

// PeekID returns the id of a JSON-RPC request of which only the beginning was kept, because
// it is too large; nil if the beginning has none. Without it the requester would wait for an
// answer forever.
func PeekID(head string) json.RawMessage {
	d := json.NewDecoder(strings.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		if key == "id" && len(value) <= jsonrpc.MaxIDBytes && value[0] != '{' && value[0] != '[' {
			return value
		}
	}
}
