package supervisor

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	mcppack "github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// pack returns the unit of a pack, and what runs it until its context ends.
func (s *Supervisor) pack(e config.Pack) (*unit, func(ctx context.Context, listed func())) {
	p := &packed{supervisor: s, entry: e, child: &child{launcher: s.opts.Launcher, name: e.Name, process: e.Process}}
	p.unit = newUnit(kindPack, e.Name, s.opts.Log, p.live, func(core.Child) {}, p.child.pid)
	p.unit.remote, p.unit.said, p.child.started = e.URL != "", p.child.said, p.unit.started
	return p.unit, func(ctx context.Context, listed func()) {
		listed()
		p.run(ctx)
	}
}

// packed is a pack of the settings. Only its unit calls live.
type packed struct {
	supervisor *Supervisor
	entry      config.Pack
	child      *child
	unit       *unit

	server  *mcppack.Pack
	session *hub.Session
	leave   context.CancelCauseFunc // ends what runs with the session
}

// run keeps the pack connected to the hub until ctx ends.
func (p *packed) run(ctx context.Context) {
	o := mcppack.Options{
		Name: p.entry.Name, URL: p.entry.URL, Token: p.token,
		Calls: p.entry.Concurrent, ResultBytes: int(p.entry.ResultBytes),
		Timeout: time.Duration(p.entry.Timeout), MaxTime: time.Duration(p.entry.MaxTime),
		Hub: p.supervisor.opts.Hub.ID(), Version: p.supervisor.opts.Version, Log: p.supervisor.opts.Log, Count: p.supervisor.opts.Hub.Count,
	}
	if p.entry.URL == "" {
		o.Dial, o.Command = p.child.dial, filepath.Base(p.entry.Command[0])
	} else {
		o.HTTP = patient(p.supervisor.opts.HTTP)
		defer o.HTTP.CloseIdleConnections()
	}
	var err error
	if p.server, err = mcppack.New(o); err != nil {
		p.supervisor.opts.Log.Error("a pack of the settings cannot be run", "pack", p.entry.Name, "error", err)
		p.unit.set(core.ChildFailed, func(c *core.Child) { c.LastError = err.Error() })
		<-ctx.Done()
		return
	}
	for sessions := newSessions(); sessions.Wait(ctx) == nil; {
		err := p.join(ctx)
		if errors.Is(err, hub.ErrStopping) {
			<-ctx.Done()
			return
		}
		if ctx.Err() == nil {
			p.supervisor.opts.Log.Warn("the session of a pack of the settings has ended: it is started again", "pack", p.entry.Name, "error", err)
		}
	}
}

// join runs the unit until ctx or the session ends.
func (p *packed) join(ctx context.Context) error {
	principal := core.Principal{
		ID: p.entry.Name, Dialect: mcp.Name, Authenticated: true, Proof: Proof,
		Credential: &core.Credential{Kind: core.KindService, Packs: []string{p.entry.Name}},
	}
	p.session = p.supervisor.opts.Hub.Connect(hub.Identity{Principal: principal, Dialect: mcp.Name})
	defer p.session.Close(core.NewFault(core.CodeUnreachable, "it was taken out of the settings, or the hub is stopping"))
	defer p.server.Stop()
	ctx, p.leave = context.WithCancelCause(ctx)
	defer p.leave(nil)
	p.unit.run(ctx)
	return context.Cause(ctx)
}

// live runs the pack once.
func (p *packed) live(ctx context.Context, ready func()) error {
	err := p.server.Run(ctx, p.session, ready)
	if errors.Is(err, mcppack.ErrSessionEnded) || errors.Is(err, hub.ErrStopping) {
		p.leave(err)
	}
	return err
}

// token reads the token for the server; "" for none. It is read for each request, so that it
// can be replaced.
func (p *packed) token() (string, error) { return tokenOf(p.entry.TokenFile) }

// patient returns a client of its own that waits for the head of an answer as long as the
// request may take: a server that answers with JSON sends it when the call has ended.
func patient(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	if t, ok := own.Transport.(*http.Transport); ok {
		t = t.Clone()
		t.ResponseHeaderTimeout = 0
		own.Transport = t
	}
	return &own
}
