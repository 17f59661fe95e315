package editor

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// initialize answers with version 1, whatever is asked: a client of a later version goes on
// with it or hangs up.
func (c *connection) initialize(ctx context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	if c.greeted {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize came before on this connection: it is sent once")
	}
	p, fault := wire.Read[wire.InitializeRequest](params)
	if fault != nil {
		return fault
	}
	c.greeted = true
	able := p.ClientCapabilities
	c.mu.Lock()
	c.form = able.Elicitation != nil && able.Elicitation.Form != nil
	if s := able.Session; s != nil {
		c.notices, c.compaction = s.Notices != nil, s.Compaction != nil
		c.booleans = s.ConfigOptions != nil && s.ConfigOptions.Boolean != nil
	}
	c.mu.Unlock()
	if able.FS.ReadTextFile || able.FS.WriteTextFile || able.Terminal {
		c.count("refused.capabilities")
		c.log.Info("an editor offers its files or terminals, which an agent behind the hub cannot use",
			"read_text_file", able.FS.ReadTextFile, "write_text_file", able.FS.WriteTextFile, "terminal", able.Terminal)
	}
	var offered wire.InitializeResponse
	offered.ProtocolVersion = wire.Version
	offered.AuthMethods = []wire.AuthMethod{}
	offered.AgentInfo = &wire.Implementation{Name: wire.HubName, Title: c.title(), Version: c.opts.Version}
	offered.AgentCapabilities.LoadSession = true
	offered.AgentCapabilities.PromptCapabilities = wire.PromptCapabilities{EmbeddedContext: true, Image: c.takesFiles()}
	offered.AgentCapabilities.SessionCapabilities = wire.SessionCapabilities{List: &wire.Empty{}, Resume: &wire.Empty{}, Close: &wire.Empty{}, Fork: &wire.Empty{}}
	offered.Meta = json.RawMessage(`{"steering":{"supported":true}}`)
	c.reply(ctx, id, offered)
	return nil
}

// shows reports whether the editor shows an update of a kind as such.
func (c *connection) shows(kind string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case wire.UpdateNotice:
		return c.notices
	case wire.UpdateCompactionUpdate, wire.UpdateCompactionSummaryChunk:
		return c.compaction
	}
	return true
}

// reply answers a request with a value. An error of sending is kept by the link.
func (c *connection) reply(ctx context.Context, id json.RawMessage, result any) {
	_ = c.answer(ctx, id, strictjson.Encode(result))
}

// agents returns the agents that may answer at present.
func (c *connection) agents() []hub.AgentStatus {
	if id := c.opts.Agent.Agent(); id != "" {
		if a, here := c.hub.Reach(c.opts.Principal, id); here {
			return []hub.AgentStatus{a}
		}
		return nil
	}
	return c.hub.Match(c.opts.Principal, c.opts.Agent)
}

// title returns what the editor may call the agent.
func (c *connection) title() string {
	if all := c.agents(); len(all) == 1 && all[0].Name != "" {
		return all[0].Name
	}
	return c.opts.Agent.String()
}

// takesFiles reports whether an agent takes files, such as images; also if none is here yet.
func (c *connection) takesFiles() bool {
	all := c.agents()
	for _, a := range all {
		if a.Features.Has(core.FeatureFiles) {
			return true
		}
	}
	return len(all) == 0
}

// warnOfServers says, once for a connection, that the MCP servers of the editor are not used.
func (c *connection) warnOfServers(servers []wire.MCPServer) {
	if len(servers) == 0 || c.warned {
		return
	}
	c.warned = true
	c.count("refused.mcp_servers")
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	c.log.Info("an editor names MCP servers, which an agent behind the hub cannot use: offer them as packs of the hub", "servers", names)
}
