package supervisor

import (
	neturl "net/url"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
)

// newEditor returns an agent that speaks the editor's protocol. It gets the tools of the hub as
// an MCP server.
func newEditor(c connection) (coreagent.Agent, error) {
	dir, err := c.dir()
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{
		Dial: c.dial, Dir: dir, Auth: c.entry.Auth, Set: c.entry.Set(), Announce: c.announce, Version: c.opts.Version, Agent: core.AgentID(c.entry.Name), Sessions: c.sessions(),
		Log: c.opts.Log.With("agent", c.entry.Name), Count: c.count, Frames: c.opts.Frames,
		MCPServers: func(thread core.ThreadID) []wire.MCPServer {
			url, token := c.hubTools()
			if url == "" {
				return nil
			}
			return []wire.MCPServer{{Name: "dragoman", URL: url, Headers: []wire.Variable{
				{Name: "Authorization", Value: "Bearer " + token}, {Name: mcp.ThreadHeader, Value: neturl.PathEscape(string(thread))},
			}}}
		},
	}), nil
}
