package pi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// The sessions of a scope are at one hub of a cluster, their home: that where its clients came first,
// or its sessions are. A client that comes to another hub is served by that one, over a tunnel.

// A hub that drains is no longer a home: it refuses all commands. What is running there finishes there,
// and the clients that are connected see it. Its sessions stay with it, as when a home dies: sessions made
// at the next home are new ones, which share only the threads.

// held says what a hub has of a scope.
type held struct {
	// Draining says that the hub takes nothing new. It says nothing else then: the others may not
	// know it yet.
	Draining bool `json:"draining,omitempty"`
	// Live says that clients of the scope are connected, or sessions in memory, since then. Else the
	// hub may have parked sessions, of which the latest was made then.
	Live  bool      `json:"live,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// isBefore reports whether the hub rather than another one is the home.
func (a held) isBefore(b held) bool {
	switch {
	case a.Live != b.Live:
		return a.Live
	case a.Live:
		return a.Since.Before(b.Since)
	}
	return a.Since.After(b.Since)
}

// heldMatter is how hubs ask each other what they have of a scope.
const heldMatter rpc.Method[string, held] = Name + ".held"

// held returns what this hub has of a scope.
func (s *Server) held(scope string) (h held) {
	if s.hub.Draining() != "" {
		return held{Draining: true}
	}
	s.engine.Lock()
	defer s.engine.Unlock()
	live := func(since time.Time) {
		if !h.Live || since.Before(h.Since) {
			h = held{Live: true, Since: since}
		}
	}
	for _, c := range s.clients {
		if c.Scope == scope {
			live(c.since)
		}
	}
	for key, ss := range s.sessions {
		if key.Scope == scope {
			live(ss.created)
		}
	}
	if h.Live {
		return h
	}
	for key, p := range s.parked.All() {
		if key.Scope == scope && p.made.After(h.Since) {
			h.Since = p.made
		}
	}
	return h
}

// home returns the hub that has the sessions of a scope; "" for this one. If nobody has any, it is
// the same for all clients of the scope, whichever hub they come to. A hub that drains is its own home:
// it tells its clients where to go.
func (s *Server) home(ctx context.Context, p core.Principal) (name string) {
	if !s.hub.RPC().HasPeers() {
		return ""
	}
	scope := scopeOf(p)
	best := s.held(scope)
	if best.Draining {
		return ""
	}
	others, _ := heldMatter.AskAll(ctx, s.hub, p, scope)
	var up []string
	for _, o := range others {
		if o.Out.Draining {
			continue
		}
		up = append(up, o.Hub)
		if o.Out.isBefore(best) {
			name, best = o.Hub, o.Out
		}
	}
	if best == (held{}) {
		return s.hub.HomeOf(Name+" "+scope, up)
	}
	return name
}

// scopeOf returns whose sessions a principal has: its own, or on an open hub those of all.
func scopeOf(p core.Principal) string {
	if p.Authenticated {
		return p.ID
	}
	return ""
}

// What the hub of the client sends over a tunnel: first a visit, then messages that begin with one of
// these. What it gets are the frames for the client.
const (
	visitFrame  = 'f' // a frame of the client
	visitReject = 'r' // a rejection of the transport
	visitEOF    = 'e' // the end of its input
)

// visit is what the home has to know of a connection, beside the principal.
type visit struct {
	Transport Transport        `json:"transport"`
	Snapshots render.Snapshots `json:"snapshots,omitempty"`
	Lifecycle Lifecycle        `json:"lifecycle,omitempty"`
	Trace     core.Trace       `json:"trace,omitzero"`
}

// visit has a connection served by another hub until it ends, and returns the reason.
func (s *Server) visit(ctx context.Context, home string, conn link.Conn[[]byte, []byte], o ConnOptions) link.Reason {
	o.Frames.Close() // they are kept at the home
	opts := s.opts.Link
	// The principal is one of this hub too: its credential may be revoked here, and the hub may stop.
	here := s.hub.Connect(hub.Identity{Principal: o.Principal, Dialect: Name})
	defer here.Close(nil)
	if full := here.Rejected(); full != nil {
		l := link.New(conn, opts)
		l.Close(*overloaded(full.Message))
		return l.Run(ctx, nil, nil)
	}
	there, err := s.hub.RPC().Dial(home, Name, o.Principal)
	if err == nil {
		defer there.Close(link.Reason{Cause: link.PeerGone})                                              // unless it was closed for another reason
		head, _ := json.Marshal(visit{cmp.Or(o.Transport, WebSocket), o.Snapshots, o.Lifecycle, o.Trace}) // it can be encoded
		err = there.Send(ctx, head)
	}
	if o.Transport == Stdio && err == nil {
		opts.EOF = func() { _ = there.Send(ctx, []byte{visitEOF}) } // else the tunnel has ended, and the link with it
	}
	l := link.New(conn, opts)
	if err != nil {
		l.Close(link.Reason{Cause: link.ShuttingDown, Text: "hub " + home + ", which has your sessions, cannot be reached: connect again", Err: err})
		return l.Run(ctx, nil, nil)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var goroutines sync.WaitGroup
	goroutines.Go(func() { l.Close(untilLeft(inner, here)) })
	goroutines.Go(func() {
		for {
			m, err := there.Receive(inner)
			if err == nil {
				err = l.Send(inner, m, len(m))
			}
			if err != nil {
				l.Close(endOf(err))
				return
			}
		}
	})
	reason := l.Run(ctx,
		func(ctx context.Context, frame []byte) error {
			return there.Send(ctx, append([]byte{visitFrame}, frame...))
		},
		func(ctx context.Context, r *link.Reject) error {
			body, _ := json.Marshal(r) // it can be encoded
			return there.Send(ctx, append([]byte{visitReject}, body...))
		})
	_ = there.Close(reason)
	cancel()
	goroutines.Wait()
	return reason
}

// untilLeft waits until a session ends or the hub stops, and returns why the client has to leave.
func untilLeft(ctx context.Context, here *hub.Session) link.Reason {
	for {
		b, err := here.Next(ctx)
		var f *core.Fault
		switch {
		case errors.As(err, &f) && f.Code == core.CodeUnauthenticated:
			return link.Reason{Cause: link.Unauthorized, Text: f.Message}
		case err != nil:
			return link.Reason{Cause: link.ShuttingDown, Text: core.AsFault(err).Message}
		case b.Draining != "":
			return link.Reason{Cause: link.ShuttingDown, Text: b.Draining}
		}
	}
}

// endOf returns why a client is disconnected whose home has ended the tunnel.
func endOf(err error) link.Reason {
	var r *link.Reason
	switch {
	case errors.As(err, &r):
		return *r
	case errors.Is(err, io.EOF):
		return link.Reason{Cause: link.Normal}
	}
	return link.Reason{Cause: link.ShuttingDown, Text: "the hub that has your sessions has ended the connection: connect again", Err: err}
}

// host serves a client that came to another hub.
func (s *Server) host(ctx context.Context, by core.Principal, conn rpc.Conn) {
	if !s.visitors.enter() {
		return
	}
	defer s.visitors.leave()
	head, err := conn.Receive(ctx)
	var v visit
	if err == nil {
		err = json.Unmarshal(head, &v)
	}
	if err != nil {
		_ = conn.Close(*link.Because(link.Protocol, "the other hub does not say who visits"))
		return
	}
	o := ConnOptions{Principal: by, Transport: v.Transport, Snapshots: v.Snapshots, Lifecycle: v.Lifecycle, Trace: v.Trace}
	if s.opts.Frames != nil {
		o.Frames = s.opts.Frames()
	}
	s.serve(ctx, visitor{conn}, o)
}

// visitor is the connection of a client that came to another hub.
type visitor struct{ rpc.Conn }

// Receive implements [link.Conn].
func (v visitor) Receive(ctx context.Context) ([]byte, error) {
	m, err := v.Conn.Receive(ctx)
	if err != nil {
		return nil, err
	}
	if len(m) > 0 {
		switch m[0] {
		case visitFrame:
			return m[1:], nil
		case visitEOF:
			return nil, io.EOF
		case visitReject:
			var r link.Reject
			if err := json.Unmarshal(m[1:], &r); err != nil {
				return nil, err
			}
			return nil, &r
		}
	}
	return nil, link.Because(link.Protocol, "the other hub sends what this version does not know")
}

// gate counts who is inside, and lets nobody in once it is closed.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

func (g *gate) leave() { g.inside.Done() }

// close lets nobody in any more, and waits for those inside.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}
