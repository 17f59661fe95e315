package e2e

import (
	"net/http"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// mcpHeaders sets the headers that a client of MCP sends with a message. A message of
// 2026-07-28 says the version itself, and what the headers repeat. A member "headers" of _meta,
// which no client sends, replaces them.
func mcpHeaders(h http.Header, body string) {
	h.Set("Accept", "application/json, text/event-stream")
	m, err := strictjson.Parse([]byte(body), strictjson.Limits{})
	if err != nil {
		return
	}
	params := m.Get("params")
	if version, ok := params.Get("_meta", "io.modelcontextprotocol/protocolVersion").Text(); ok {
		h.Set("Mcp-Protocol-Version", version)
		method, _ := m.Get("method").Text()
		h.Set("Mcp-Method", method)
		for _, key := range []string{"name", "taskId"} {
			if name, ok := params.Get(key).Text(); ok && !strings.HasPrefix(method, "subscriptions/") {
				h.Set("Mcp-Name", name)
			}
		}
	}
	for name, value := range params.Get("_meta", "headers").Members() {
		text, _ := value.Text()
		h.Set(string(name), text)
	}
}
