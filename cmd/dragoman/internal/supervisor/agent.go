package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/host"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// agent returns the unit of an agent, and what runs it until its context ends.
func (s *Supervisor) agent(e config.Agent) (*unit, func(ctx context.Context, listed func())) {
	a := &supervised{supervisor: s, entry: e, child: &child{launcher: s.opts.Launcher, name: e.Name, process: e.Process}}
	a.profile.Features = core.FeatureStreaming | core.FeatureCancellation // until it says itself
	a.unit = newUnit(kindAgent, e.Name, s.opts.Log, a.live, a.changed, a.child.pid)
	a.unit.remote, a.unit.said, a.child.started = e.URL != "", a.child.said, a.unit.started
	return a.unit, a.run
}

// supervised is an agent of the settings.
type supervised struct {
	supervisor *Supervisor
	entry      config.Agent
	child      *child
	unit       *unit

	// Used by the goroutine of the unit alone.
	agent agent.Agent // nil before its first life, and for native children

	mu      sync.Mutex
	profile agent.Profile              // what the agent has said of itself when it was ready
	more    map[string]json.RawMessage // and later
	session *hub.Session               // that of the moment
	leave   context.CancelCauseFunc    // ends running with it
	tools   tools
}

// tools is where the tools of the hub are, over MCP; the zero tools are none.
type tools struct{ url, token string }

// principal is who the agent is.
func (a *supervised) principal() core.Principal {
	return core.Principal{ID: a.entry.Name, Dialect: a.entry.Dialect, Authenticated: true, Proof: Proof}
}

// offered returns where the tools of the hub are.
func (a *supervised) offered() tools {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tools
}

// card returns the card of the agent.
func (a *supervised) card() core.Card {
	a.mu.Lock()
	defer a.mu.Unlock()
	card := cardOf(a.entry, a.profile)
	if card.Metadata == nil {
		card.Metadata = map[string]json.RawMessage{}
	}
	maps.Copy(card.Metadata, a.more)
	return card
}

// announce adds to the metadata of the card what the agent has said later.
func (a *supervised) announce(more map[string]json.RawMessage) {
	a.mu.Lock()
	s, before := a.session, a.more
	a.more = more
	a.mu.Unlock()
	if s == nil || maps.EqualFunc(before, more, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		return
	}
	if err := s.Update(a.card()); err != nil { // such as a card that is too large
		a.mu.Lock()
		a.more = nil
		a.mu.Unlock()
		a.supervisor.opts.Log.Warn("what an agent says of its options is not shown", "agent", a.entry.Name, "error", err)
	}
}

// cardOf returns what the settings say of an agent, and p adds.
func cardOf(e config.Agent, p agent.Profile) core.Card {
	card := core.Card{
		ID: core.AgentID(e.Name), Name: e.Name, Dialect: e.Dialect, Domains: e.Domains, Model: e.Model,
		Capabilities: slices.Clone(e.Capabilities), MaxConcurrent: max(1, e.MaxConcurrent), Features: p.Features, Metadata: maps.Clone(p.Metadata),
	}
	for _, id := range e.Fallback {
		card.Fallback = append(card.Fallback, core.AgentID(id))
	}
	for _, c := range p.Capabilities {
		if !slices.Contains(card.Capabilities, c) {
			card.Capabilities = append(card.Capabilities, c)
		}
	}
	if card.Model == "" {
		card.Model = p.Model
	}
	return card
}

// changed tells the hub of a new state.
func (a *supervised) changed(c core.Child) {
	a.mu.Lock()
	s := a.session
	a.mu.Unlock()
	if s != nil {
		s.SetChild(c)
	}
	if told := a.supervisor.opts.Changed; told != nil {
		told(core.AgentID(a.entry.Name))
	}
}

// refused notes why the agent cannot join; nil notes that it has, or that it ends.
func (a *supervised) refused(why error) {
	all, id := &a.supervisor.refused, core.AgentID(a.entry.Name)
	if why == nil {
		all.Delete(id)
		return
	}
	a.unit.set(core.ChildFailed, func(c *core.Child) {
		c.LastError, c.RetryMS = core.AsFault(why).Message, afterRefusal.Milliseconds()
	})
	if core.AsFault(why).Code == core.CodeConflict {
		all.Store(id, a.unit.State())
	}
}

// The delays before an agent or a pack whose session has ended begins another one, the first of a row, and
// before an agent joins again that could not.
const (
	afterSession = time.Second
	afterRefusal = 5 * time.Second
)

// newSessions returns the pace of the sessions of an agent or a pack.
func newSessions() timer.Pace { return timer.Pace{First: afterSession, Most: maxBackoff} }

// run keeps the agent joined until ctx ends. It calls listed once it has joined or was refused.
func (a *supervised) run(ctx context.Context, listed func()) {
	defer a.refused(nil)
	sessions := newSessions()
	sessions.Begin()
	for ctx.Err() == nil {
		var again time.Duration
		joined, err := a.join(ctx, listed)
		switch {
		case errors.Is(err, hub.ErrStopping):
			again = math.MaxInt64
		case !joined:
			again = afterRefusal
			a.refused(err)
			a.supervisor.opts.Log.Warn("an agent of the settings cannot join: it tries again", "agent", a.entry.Name, "error", err, "in", again.String())
		case ctx.Err() == nil:
			again = sessions.Next()
			a.supervisor.opts.Log.Warn("the session of an agent of the settings has ended: it is started again", "agent", a.entry.Name, "error", err)
		}
		listed() // after the refusal was noted
		_ = timer.Sleep(ctx, again)
	}
}

// join joins, and runs the unit until ctx or the session ends. The hub ends the session of an
// agent that is stuck in a task: then its process ends too.
func (a *supervised) join(ctx context.Context, listed func()) (joined bool, err error) {
	id := hub.Identity{Principal: a.principal(), Dialect: a.entry.Dialect}
	if a.entry.Dialect == config.SpeaksNative { // the only one whose connection has a session
		id.Frames = a.supervisor.opts.Frames.Connect(native.Dialect, nil)
	}
	s := a.supervisor.opts.Hub.Connect(id)
	defer func() { s.Close(faultOf(err)) }()
	opts := hub.JoinOptions{Starting: true, NoticeTasks: a.entry.Dialect != config.SpeaksNative}
	if a.entry.URL == "" {
		opts.Dir, _ = directory(a.entry.Process) // where it is unknown, nothing can start
	}
	if err := s.Join(a.card(), opts); err != nil {
		return false, err
	}
	a.refused(nil)
	listed()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var offered tools
	if a.entry.Tools == nil || *a.entry.Tools {
		var revoke func()
		offered.url, offered.token, revoke = a.supervisor.opts.Tools(s)
		defer revoke()
	}
	a.mu.Lock()
	a.session, a.leave, a.tools = s, cancel, offered
	a.mu.Unlock()
	a.unit.run(ctx)
	return true, context.Cause(ctx)
}

// faultOf returns the Fault for the end of a session.
func faultOf(err error) *core.Fault {
	var reason *link.Reason
	switch {
	case errors.As(err, &reason) && reason.Cause == link.ShuttingDown:
		return core.NewFault(core.CodeUnreachable, "%s", reason.Text) // the agent may end, and the hub go on
	case reason != nil:
		return reason.Fault()
	}
	return core.AsFault(err)
}

// live runs the agent once.
func (a *supervised) live(ctx context.Context, ready func()) error {
	a.mu.Lock()
	s, leave := a.session, a.leave
	a.mu.Unlock()
	if err := s.Update(a.card()); err != nil {
		leave(err) // the session has ended meanwhile
		return err
	}
	if a.entry.Dialect == config.SpeaksNative {
		return a.serveNative(ctx, s, ready)
	}
	if a.agent == nil {
		made, err := speaks[a.entry.Dialect](connection{entry: a.entry, child: a.child, opts: a.supervisor.opts, tools: a.offered, announce: a.announce, lost: a.unit.lost})
		if err != nil {
			return err
		}
		a.agent = made
	}
	serving, cancel := context.WithCancelCause(ctx)
	stop := func() {}
	err := a.agent.Run(ctx, func(p agent.Profile) {
		a.mu.Lock()
		a.profile = p
		a.mu.Unlock()
		if err := s.Update(a.card()); err != nil {
			leave(err) // the session has ended meanwhile
			return
		}
		stop = host.Start(serving, s, a.agent, a.unit.lost, leave)
		ready()
	})
	if ctx.Err() == nil {
		if err == nil {
			err = errors.New("it ended")
		}
		a.unit.lost(err) // nothing is assigned from here on
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(agent.Lost(err))
	stop()
	return err
}

// serveNative runs a child that speaks the events and commands of the hub.
func (a *supervised) serveNative(ctx context.Context, s *hub.Session, ready func()) error {
	conn, err := a.child.dial(ctx)
	if err != nil {
		return err
	}
	opts, card, frames := a.supervisor.opts, cardOf(a.entry, agent.Profile{}), s.Identity().Frames
	frames.Reopen()
	card.MaxConcurrent = a.entry.MaxConcurrent // 0 leaves it to the child
	return native.Serve(ctx, opts.Hub, s, conn, native.Options{
		Card: card, Ready: func(core.Card) { ready() }, Lost: a.unit.lost,
		Version: opts.Version, Log: opts.Log.With("agent", a.entry.Name), Link: link.Options{Frames: frames},
	})
}

// tokenOf reads a token from a file; "" for no file.
func tokenOf(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := edge.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := edge.Word(string(b))
	if token == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return token, nil
}
