package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/timer"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Pack is an MCP server as a pack of the hub.
type Pack struct {
	opts Options
	// told are the tools that were left out, with the reason, once logged.
	told map[leftOut]bool
	// offeredTo is the session that has offered the tools of the server.
	offeredTo *hub.Session
	// unprobed says that the child takes initialize alone as its first message.
	unprobed bool
	// refusing stops the answers to calls between two runs; nil if there are none.
	refusing func()
}

// New returns the pack of an MCP server. It returns an invalid Fault for options that cannot
// work.
func New(opts Options) (*Pack, error) {
	o, err := opts.check()
	if err != nil {
		return nil, err
	}
	return &Pack{opts: o, told: map[leftOut]bool{}}, nil
}

// ErrSessionEnded is the error of a Run whose session has ended: the next one needs another.
var ErrSessionEnded = errors.New("the session of the pack has ended")

// maxTold bounds the memory of what was logged.
const maxTold = 1000

// Run connects to the server, offers its tools through the session, calls ready, and serves
// calls until ctx ends or the server is lost. It returns an error that is the cause of ctx or
// wraps it, or why there is no server; it can then be called again with the same session, one
// call at a time. Meanwhile the tools stay listed, and calls of them fail as unreachable, as do those of
// any tool of the pack before it has offered some. Calls
// that ran are answered when Run returns.
func (p *Pack) Run(ctx context.Context, session *hub.Session, ready func()) error {
	if p.offeredTo != session {
		session.Absent(p.opts.Name, core.NewFault(core.CodeUnreachable, "pack %s is starting: call again soon", p.opts.Name))
	}
	err := p.run(ctx, session, ready)
	if p.offeredTo != session {
		session.Absent(p.opts.Name, p.down(err))
	}
	if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
		return why
	}
	return err
}

func (p *Pack) run(ctx context.Context, session *hub.Session, ready func()) error {
	unheard, err := p.serve(ctx, session, ready, p.unprobed)
	switch {
	case unheard && p.unprobed:
		p.unprobed = false // it may have changed
	case unheard && p.opts.Dial != nil && ctx.Err() == nil:
		p.opts.Log.Info("the MCP server has ended at the probe of its version: it is started again, with initialize", "error", err)
		unheard, err = p.serve(ctx, session, ready, true)
		p.unprobed = !unheard
	}
	return err
}

// serve is one connection of a run, which begins with initialize or with a probe. unheard says that the
// server has ended before it answered either.
func (p *Pack) serve(ctx context.Context, session *hub.Session, ready func(), unprobed bool) (unheard bool, err error) {
	s, err := p.connect(ctx)
	if err != nil {
		return false, err
	}
	s.unprobed = unprobed
	defer func() { s.close(err) }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.goroutines.Go(func() {
		select {
		case <-s.conn.lost():
			end(s.conn.reason())
		case <-ctx.Done():
		}
	})
	tools, err := s.begin(ctx)
	switch {
	case err != nil && isLost(s.conn):
		return s.era().version == "", s.adviseCommand(s.conn.reason())
	case err != nil:
		return false, s.adviseCommand(err)
	}
	p.Stop()
	serving, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	cs := &calls{server: s, session: session, ctx: serving, all: map[string]*call{}}
	offered := p.choose(session, cs, tools) // before calls come, which waited for the server
	stop := session.Consume(serving, func(b hub.Batch, err error) bool {
		switch {
		case err != nil:
			end(fmt.Errorf("%w: %w", ErrSessionEnded, err))
		case b.Execute != nil:
			cs.add(b.Execute)
		case b.Withdrawn != "":
			cs.withdraw(b.Withdrawn)
		}
		return true
	})
	defer func() {
		cancel(p.down(err))
		stop()
		cs.workers.Wait()
		p.refuse(session, err)
	}()
	if err := session.Provide(p.opts.Name, offered); err != nil {
		return false, err
	}
	p.offeredTo = session
	ready()
	s.goroutines.Go(func() { s.watch(serving) })
	return false, p.offerChanges(ctx, s, session, cs)
}

// offerChanges offers the tools of the server again whenever they change, until ctx ends.
func (p *Pack) offerChanges(ctx context.Context, s *server, session *hub.Session, cs *calls) error {
	again := timer.Pace{First: firstList, Most: seldomList}
	for again.Begin(); ; { // with the list that was offered first
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.changed:
		}
		if err := again.Wait(ctx); err != nil {
			return err
		}
		select {
		case <-s.changed: // meanwhile
		default:
		}
		tools, err := s.listTools(ctx)
		if err == nil {
			err = session.Provide(p.opts.Name, p.choose(session, cs, tools))
		}
		if err != nil && ctx.Err() == nil {
			s.trouble("refused.list", "the changed tools of the MCP server are not offered, those before are", "error", err)
		}
	}
}

// The pauses between two lists of tools, where they change again and again.
const (
	firstList  = 100 * time.Millisecond
	seldomList = 2 * time.Second
)

// connect opens the connection to the server.
func (p *Pack) connect(ctx context.Context) (*server, error) {
	s := newServer(context.WithoutCancel(ctx), p.opts)
	if p.opts.Dial == nil {
		newRemote(s)
		return s, nil
	}
	conn, err := p.opts.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.opts.named(), err)
	}
	newLines(s, conn)
	return s, nil
}

// begin makes the handshake and lists the tools.
func (s *server) begin(ctx context.Context) (*catalog, error) {
	if err := s.handshake(ctx); err != nil {
		return nil, err
	}
	return s.listTools(ctx)
}

// choose returns the tools that can be offered, for which calls are made from then on, and logs what is
// left out.
func (p *Pack) choose(session *hub.Session, cs *calls, c *catalog) []tool.Definition {
	offered := c.tools[:0]
	for _, l := range c.tools {
		if err := session.CheckTool(l.Definition); err != nil {
			c.refused = append(c.refused, leftOut{l.name, core.AsFault(err).Message})
			continue
		}
		offered = append(offered, l)
	}
	for _, out := range c.refused {
		p.opts.Count("mcp.pack.refused.tool")
		if len(p.told) < maxTold && !p.told[out] {
			p.told[out] = true
			p.opts.Log.Warn("a tool of the MCP server is left out", "tool", out.name, "why", out.why)
		}
	}
	return cs.offer(offered)
}

// refuse answers calls until Stop, or the end of the session.
func (p *Pack) refuse(session *hub.Session, why error) {
	down := p.down(why)
	p.refusing = session.Consume(context.Background(), func(b hub.Batch, _ error) bool {
		if b.Execute != nil {
			_ = session.AnswerTool(b.Execute.ID, tool.Result{Fault: down})
		}
		return true
	})
}

// Stop ends the answers to calls that follow a run, and waits. The caller of Run calls it
// before the session is closed.
func (p *Pack) Stop() {
	if p.refusing != nil {
		p.refusing()
		p.refusing = nil
	}
}

// The pauses between two attempts to hear of changes.
const (
	firstRetry  = time.Second
	seldomRetry = 30 * time.Second
)

// watch hears what the server says beside its answers until ctx ends: changes of the list of tools and,
// of a legacy server, requests.
func (s *server) watch(ctx context.Context) {
	if s.era().modern && !s.era().changes {
		return
	}
	for again := (timer.Pace{First: firstRetry, Most: seldomRetry}); again.Wait(ctx) == nil; {
		err := s.conn.listen(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, errUnsolicited) || isLost(s.conn):
			return
		case errors.Is(err, errNoStream) && !s.era().changes:
			return
		case errors.Is(err, errNoStream):
			s.trouble("no_stream", "the MCP server has no stream of changes: its tools are listed again after a restart only")
			return
		case err != nil && !errors.Is(err, io.EOF): // else it has just ended
			s.trouble("refused.stream", "the stream of changes of the MCP server broke off: it is opened again", "error", err)
		}
	}
}

func isLost(t transport) bool {
	select {
	case <-t.lost():
		return true
	default:
		return false
	}
}

// subscribe asks a modern server to tell changes of its tools (2026-07-28,
// basic/utilities/subscriptions), and returns when it has ended that.
func (s *server) subscribe(ctx context.Context) error {
	m, err := s.conn.call(ctx, request{id: s.newID(), method: wire.MethodListen, params: s.params(s.era(), `,"notifications":{"toolsListChanged":true}`, "")})
	switch {
	case err != nil || m.Err == nil:
		return err
	case m.Err.Code == jsonrpc.CodeMethodNotFound:
		return errNoStream
	}
	return s.fail(core.CodeInternal, "refused %s: %s (%d)", wire.MethodListen, cut(m.Err.Message), m.Err.Code)
}
