package mcp_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
)

// In the MCP draft of July 2026, proxies route by the headers and servers by the body. A
// request in which the two disagree is refused.
func TestHeaderAndBodyDisagree(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agents_list","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	const version = "Mcp-Protocol-Version: 2026-07-28"
	g.post("", body, version, "Mcp-Method: tools/call", "Mcp-Name: agents_list").outcome().contains(t, false, "agents")
	g.post("", body, version, "Mcp-Method: tools/list", "Mcp-Name: agents_list").fails(400, -32020, "Mcp-Method")
	g.post("", body, version, "Mcp-Method: tools/call", "Mcp-Name: agent_ask").fails(400, -32020, "Mcp-Name")
	g.post("", body, "Mcp-Protocol-Version: 2025-11-25").fails(400, -32020, "Mcp-Protocol-Version")
	g.post("", body).fails(400, -32020, "Mcp-Protocol-Version")
}
