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

// EncodeHeader returns a text as the value of a header.
func EncodeHeader(text string) string {
	if text == strings.TrimSpace(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) &&
		(!strings.HasPrefix(text, encodedStart) || !strings.HasSuffix(text, encodedEnd)) {
		return text
	}
	return encodedStart + base64.StdEncoding.EncodeToString([]byte(text)) + encodedEnd
}

// DecodeHeader returns the text of the value of a header.
func DecodeHeader(value string) string {
	if inner, ok := strings.CutPrefix(value, encodedStart); ok {
		if inner, ok = strings.CutSuffix(inner, encodedEnd); ok {
			if b, err := base64.StdEncoding.DecodeString(inner); err == nil {
				return string(b)
			}
		}
	}
	return value
}
