package jsonrpc

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Peeked is what the two ends of a message tell of it.
type Peeked struct {
	// ID is the id of a request or response; nil if it is not known, or the message is a
	// notification.
	ID json.RawMessage
	// Method is the method of a request or notification; "" if it is not known.
	Method string
	// Response says that the message has a result or an error.
	Response bool
	// Params are the params that are strings, of those that come whole before the cut.
	Params map[string]string
}

// lastID is the id where it is the last member of a message, but for the version. What stands
// before the last brace of an object is a member of that object.
var lastID = regexp.MustCompile(`(?:^|[^\\])"id"\s*:\s*(-?\d{1,20}|"[^"\\]{0,255}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// Peek reads a message of which only the beginning and the end were kept, because it is too
// large: without its id the peer, or a caller that waits for its answer, would wait forever.
// Either end may be "".
func Peek(head, tail string) Peeked {
	var p Peeked
	d := json.NewDecoder(strings.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return p
	}
	p.members(d)
	if p.ID == nil && (p.Response || p.Method != "") {
		if found := lastID.FindStringSubmatch(tail); found != nil {
			p.ID = json.RawMessage(found[1])
		}
	}
	return p
}

// members reads the members of a message until its text is cut.
func (p *Peeked) members(d *json.Decoder) {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		switch key {
		case "result", "error":
			p.Response = true
		case "params":
			if !p.params(d) {
				return
			}
			continue
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return
		}
		switch {
		case key == "id" && len(value) <= MaxIDBytes && value[0] != '{' && value[0] != '[':
			p.ID = value
		case key == "method":
			_ = json.Unmarshal(value, &p.Method) // another kind of value is no method
		}
	}
}

// params reads the params, and reports whether they come whole.
func (p *Peeked) params(d *json.Decoder) bool {
	t, err := d.Token()
	switch {
	case err != nil:
		return false
	case t == json.Delim('['): // has no names
		return false
	case t != json.Delim('{'):
		return true
	}
	p.Params = map[string]string{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return false
		}
		name, _ := key.(string)
		var text string
		if value[0] == '"' && json.Unmarshal(value, &text) == nil {
			p.Params[name] = text
		}
	}
	_, err = d.Token()
	return err == nil
}
