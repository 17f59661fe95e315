package wire

import (
	"bytes"
	"encoding/json"
)

// Readdress returns a received envelope as the hub passes it on to another ACP
// peer: from, to and ref are what the hub says, every other byte is as it came
// (promise P11). An empty ref leaves the member as it is. An envelope written on
// several lines is put on one, since some carriers take a line for a message.
//
// raw has been through [Decode].
func Readdress(raw []byte, from, to, ref string) []byte {
	var change []Field
	for _, f := range []struct{ key, value string }{{"from", from}, {"to", to}, {"ref", ref}} {
		if f.value != "" || f.key != "ref" {
			change = append(change, Field{f.key, appendText(nil, f.value)})
		}
	}
	return onOneLine(SetMembers(raw, change...))
}

// onOneLine removes line breaks, which stand between values only.
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
