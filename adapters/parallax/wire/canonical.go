package wire

import (
	"bytes"
	"encoding/json"

	"github.com/gowebpki/jcs"
)

// canonical returns the canonical form of a JSON object (RFC 8785), without the member
// omit of the outermost object.
func canonical(text []byte, omit string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	delete(object, omit)
	// The library refuses keys that stand twice and halves of surrogate pairs; here they have a value by now.
	plain, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return jcs.Transform(plain)
}
