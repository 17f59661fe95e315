package supervisor

import (
	"context"
	"encoding/json"
	"os/exec"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/link"
)

// speaks has the constructor of the agents of each dialect, which are constructed before their
// first run.
var speaks = map[string]func(connection) (coreagent.Agent, error){
	config.SpeaksA2A:    newA2A,
	config.SpeaksText:   newText,
	config.SpeaksEditor: newEditor,
	config.SpeaksPiRPC:  newPi,
}

// connection is what an agent is constructed from: its settings, and ways to what it needs.
type connection struct {
	entry config.Agent
	child *child
	opts  Options
	// tools returns where the tools of the hub are at the moment; nil for nowhere.
	tools func() tools
	// announce adds to the metadata of its card; nil where there is none.
	announce func(map[string]json.RawMessage)
	// lost notes that the agent takes nothing for now.
	lost func(error)
}

// dial starts a process of the agent with more arguments.
func (c connection) dial(ctx context.Context, more ...string) (link.Conn[[]byte, []byte], error) {
	return c.child.dial(ctx, more...)
}

// dir returns the absolute working directory of the agent.
func (c connection) dir() (string, error) { return directory(c.entry.Process) }

// sessions returns the log in which the agent keeps what must survive a restart of the hub; nil
// where nothing is stored.
func (c connection) sessions() core.RecordLog { return c.opts.Records(c.entry.Dialect) }

// count adds one to a counter of the hub.
func (c connection) count(name string) {
	if c.opts.Hub != nil {
		c.opts.Hub.Count(name)
	}
}

// token reads the token for a remote; "" for none.
func (c connection) token() (string, error) { return tokenOf(c.entry.TokenFile) }

// hubTools returns where the tools of the hub are over MCP, and the token for them; "" for none.
func (c connection) hubTools() (url, token string) {
	if c.tools == nil {
		return "", ""
	}
	t := c.tools()
	return t.url, t.token
}

// newText returns an agent that runs its command for each request.
func newText(c connection) (coreagent.Agent, error) {
	l, e := c.opts.Launcher, c.entry
	program := agent.Program{Name: e.Command[0], Command: func(ctx context.Context) (*exec.Cmd, error) { return l.command(ctx, e.Process) }, Started: l.Guard.Watch}
	t := &text{Agent: coreagent.FromHandler(agent.Handler(program, &tail{log: l.Log, name: e.Name}, c.opts.Log), coreagent.Profile{
		Features: core.FeatureStreaming | core.FeatureCancellation | core.FeatureNotices | core.FeatureFiles,
	}), command: program.Command, frames: c.opts.Frames}
	return t, nil
}

// text is an agent that is ready when its program is there.
type text struct {
	coreagent.Agent
	command func(context.Context) (*exec.Cmd, error)
	frames  *frame.Book
}

// Work implements [coreagent.Agent].
func (t *text) Work(ctx context.Context, turn coreagent.Turn) error {
	ring := t.frames.Connect(config.SpeaksText, nil)
	defer ring.Close()
	frames := ring.Turn(turn.Task(), turn.Request().History)
	return t.Agent.Work(frames.With(ctx), coreagent.Framed(turn, frames))
}

// Run implements [coreagent.Agent].
func (t *text) Run(ctx context.Context, ready func(coreagent.Profile)) error {
	if _, err := t.command(ctx); err != nil {
		return err
	}
	return t.Agent.Run(ctx, ready)
}
