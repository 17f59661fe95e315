package wire

import (
	"bytes"
	"encoding/json"
)

// Readdress returns a received envelope as the hub passes it on to another ACP peer, with
// from, to and ref replaced and every other byte unchanged (promise P11). An empty ref keeps
// the member. An envelope on several lines is put on one, since for some carriers a line is
// a message.
//
// raw has been accepted by [Decode].
func Readdress(raw []byte, from, to, ref string) []byte {
	var change []Field
	for _, f := range []struct{ key, value string }{{"from", from}, {"to", to}, {"ref", ref}} {
		if f.value != "" || f.key != "ref" {
			change = append(change, Field{Key: f.key, Value: appendText(nil, f.value)})
		}
	}
	return onOneLine(SetMembers(raw, change...))
}

// onOneLine removes the line breaks from JSON text.
func onOneLine(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	var buf bytes.Buffer
	if json.Compact(&buf, text) != nil {
		return text
	}
	return buf.Bytes()
}
