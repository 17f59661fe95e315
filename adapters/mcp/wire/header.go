package wire

import (
	"encoding/base64"
	"strings"
)

// Headers of streamable HTTP. Method and name repeat a part of the message since [Modern], and
// so do headers that begin with HeaderParam, each an argument of a call.
const (
	HeaderSession = "Mcp-Session-Id"
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"
	HeaderParam   = "Mcp-Param-"
)

// The marks around a text that is not safe as a header (2026-07-28,
// basic/transports/streamable-http, "Value Encoding").
const encodedStart, encodedEnd = "=?base64?", "?="

// encoded reports whether the value of a header is between the marks.
func encoded(value string) bool {
	return len(value) >= len(encodedStart)+len(encodedEnd) && strings.HasPrefix(value, encodedStart) && strings.HasSuffix(value, encodedEnd)
}

// EncodeHeader returns a text as the value of a header.
func EncodeHeader(text string) string {
	if text == strings.TrimSpace(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) &&
		!encoded(text) {
		return text
	}
	return encodedStart + base64.StdEncoding.EncodeToString([]byte(text)) + encodedEnd
}

// DecodeHeader returns the text of the value of a header, which is the value itself if nothing
// can be decoded.
func DecodeHeader(value string) string {
	if text, ok := decode(value); ok {
		return text
	}
	return value
}

// decode returns the text between the marks, or false if there is none.
func decode(value string) (string, bool) {
	if !encoded(value) {
		return "", false
	}
	b, err := base64.StdEncoding.DecodeString(value[len(encodedStart) : len(value)-len(encodedEnd)])
	return string(b), err == nil
}
