package client

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Options describe an agent and what it needs. Dial and Dir are required.
type Options struct {
	// Dial starts the agent, with further arguments, and connects to it.
	Dial func(ctx context.Context, args ...string) (link.Conn[[]byte, []byte], error)
	// Dir is the absolute working directory of its sessions.
	Dir string
	// Auth is the id of the method to authenticate with; "" leaves that to the agent.
	Auth string
	// Set is what each session is set to before its first prompt.
	Set core.Options
	// Announce is told what sessions can be set to, as the agent says it of a new one, by the names modes,
	// configOptions and models; nil tells nobody. It may be called concurrently.
	Announce func(map[string]json.RawMessage)
	// MCPServers returns what the session of a thread is given; nil gives none.
	MCPServers func(core.ThreadID) []wire.MCPServer
	// Version is that of the hub, which the agent is told.
	Version string
	// Agent names the agent among those that share Sessions.
	Agent core.AgentID
	// Sessions keeps which session belongs to which thread; nil keeps it in memory alone.
	Sessions core.RecordLog
	// Log gets messages for operators; nil discards them.
	Log *slog.Logger
	// Count counts by name; nil does not.
	Count func(name string)
	// Frames keeps the frames of turns, from the prompt on; nil keeps none.
	Frames *frame.Book
}

// startTimeout is how long the agent may take to answer initialize and authenticate.
const startTimeout = 2 * time.Minute

// Agent is an agent that speaks the editor's protocol. It implements [agent.Agent].
type Agent struct {
	opts     Options
	sessions *sessions

	mu   sync.Mutex
	conn *connection // nil unless Run is ready
}

var _ agent.Agent = (*Agent)(nil)

// New returns an agent, which connects when it is run.
func New(opts Options) *Agent {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Count == nil {
		opts.Count = func(string) {}
	}
	if opts.MCPServers == nil {
		opts.MCPServers = func(core.ThreadID) []wire.MCPServer { return nil }
	}
	return &Agent{opts: opts, sessions: newSessions(opts)}
}

// features are what every agent of this dialect can do. Sessions are not among them: an agent
// that has them may lose one, and then needs the history that the hub sends.
const features = core.FeatureStreaming | core.FeatureUsage | core.FeatureToolStates | core.FeatureCancellation | core.FeatureApprovals | core.FeatureFiles | core.FeatureOptions

// Run implements [agent.Agent]. It returns nil when ctx has ended, an unauthenticated Fault that
// says what to do if the agent wants to be logged in, an unsupported Fault if it speaks another
// version, and otherwise the *[link.Reason] of the end of its connection.
func (a *Agent) Run(ctx context.Context, ready func(agent.Profile)) error {
	if !filepath.IsAbs(a.opts.Dir) {
		return core.NewFault(core.CodeInvalid, "the working directory %q of the agent is not absolute", a.opts.Dir)
	}
	if err := a.sessions.load(ctx); err != nil {
		a.opts.Log.Warn("the sessions of the agent could not be read: threads begin new ones", "error", err)
	}
	conn, err := a.opts.Dial(ctx)
	if err != nil {
		return err
	}
	c := newConnection(conn, a.opts)
	var starting sync.WaitGroup
	starting.Go(func() { err = a.start(ctx, c, ready) }) // an idle agent has no goroutine but the reader
	c.run(ctx)
	starting.Wait()
	a.use(nil)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	return &c.reason
}

// start says hello. A connection on which that fails is closed.
func (a *Agent) start(ctx context.Context, c *connection, ready func(agent.Profile)) error {
	starting, stop := context.WithTimeoutCause(ctx, startTimeout, core.NewFault(core.CodeTimeout, "the agent did not answer initialize within %v", startTimeout))
	defer stop()
	profile, err := c.hello(starting)
	if err != nil {
		var gone *goneError
		if errors.As(err, &gone) {
			return &gone.reason
		}
		c.link.Close(link.Reason{Cause: link.Normal, Err: err})
		return err
	}
	a.use(c)
	announce(a.opts, a.sessions.lastOffer())
	ready(profile)
	return nil
}

// use makes a connection the one for new tasks.
func (a *Agent) use(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = c
}

func (a *Agent) connection() *connection {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conn
}
