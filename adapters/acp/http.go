package acp

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The defaults of [HTTPOptions].
const (
	DefaultMaxPeers     = 1024
	DefaultMailboxBytes = 4 << 20
	DefaultTotalBytes   = 256 << 20
	DefaultIdle         = 10 * time.Minute
	DefaultKeepAlive    = 15 * time.Second
	DefaultWriteTimeout = 30 * time.Second
)

// HTTPOptions make an [HTTP]. The zero HTTPOptions are an open hub with the
// defaults.
type HTTPOptions struct {
	// Session is what every session gets. Principal, AgentID, FinishAfterEOF and
	// Link in it are not used.
	Session Options
	// Identify returns who authentication found the sender of a request to be; nil
	// is an open hub. With a Principal that is authenticated, id is who it is as an
	// agent, and "" leaves that to X-Agent-Id or ?agent_id=, as on a WebSocket, or else
	// means the ID of the principal. An error is told as it is when it
	// is a Fault.
	Identify func(r *http.Request) (p core.Principal, id core.AgentID, err error)
	// MaxPeers bounds how many peers are remembered. When there are more the one
	// that was idle longest is forgotten; when all are busy, the new one is refused.
	MaxPeers int
	// MailboxBytes bounds what waits for one peer, TotalBytes what waits for all.
	MailboxBytes int
	TotalBytes   int64
	// Idle is how long a peer is remembered without a request.
	Idle time.Duration
	// KeepAlive is how often a silent stream of events says that it lives, and
	// WriteTimeout how long one write may take before the reader is cut off.
	KeepAlive, WriteTimeout time.Duration
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	o.Session = o.Session.withDefaults()
	o.MaxPeers = cmp.Or(max(0, o.MaxPeers), DefaultMaxPeers)
	o.MailboxBytes = cmp.Or(max(0, o.MailboxBytes), DefaultMailboxBytes)
	o.TotalBytes = cmp.Or(max(0, o.TotalBytes), DefaultTotalBytes)
	o.Idle = cmp.Or(max(0, o.Idle), DefaultIdle)
	o.KeepAlive = cmp.Or(max(0, o.KeepAlive), DefaultKeepAlive)
	o.WriteTimeout = cmp.Or(max(0, o.WriteTimeout), DefaultWriteTimeout)
	return o
}

// HTTP holds ACP peers that have only HTTP: POST sends one envelope to the hub, and
// is held open until the answer when the kind expects one; GET is a stream of
// server-sent events with what else is for the peer. It is an http.Handler for one
// path and opens no socket.
type HTTP struct {
	hub   *hub.Hub
	opts  HTTPOptions
	total *budget

	mu     sync.Mutex
	peers  map[callerKey]*caller
	closed bool
	wg     sync.WaitGroup // pumps and closings
}

// NewHTTP makes an HTTP. Close ends it.
func NewHTTP(h *hub.Hub, opts HTTPOptions) *HTTP {
	opts = opts.withDefaults()
	return &HTTP{hub: h, opts: opts, total: &budget{most: opts.TotalBytes}, peers: map[callerKey]*caller{}}
}

// Close forgets all peers, ends what is held open, and returns once nothing runs
// any more. Requests after it are refused.
func (x *HTTP) Close() {
	x.mu.Lock()
	x.closed = true
	for _, c := range x.peers {
		x.forgetLocked(c)
	}
	x.mu.Unlock()
	x.wg.Wait()
}

// callerKey tells callers apart: one who shows two tokens of a principal has with each
// the rights of that one alone.
type callerKey struct {
	peerID
	operator bool
}

// caller is a peer that has only HTTP.
type caller struct {
	key  callerKey
	s    *session
	mail *mailbox
	// gone is closed once the hub has no session for it any more.
	gone chan struct{}

	mu      sync.Mutex
	waiting map[string]chan message // by the id of the envelope that was posted
	probed  bool                    // it was asked what it can do
	streams int                     // how many requests read what arrives

	// Guarded by HTTP.mu.
	users int
	used  chan struct{} // closed when the next one comes
	since time.Time     // when the last user left
	idle  *time.Timer
}

// send implements outlet: an answer goes to the POST that waits for it, everything
// else into the mailbox.
func (c *caller) send(_ context.Context, m message) error {
	c.mu.Lock()
	waits := c.waiting[m.ref]
	if waits == nil || !answers(m.kind) {
		c.mu.Unlock()
		c.mail.put(m)
		return nil
	}
	delete(c.waiting, m.ref)
	waits <- m // it has room for one
	c.mu.Unlock()
	return nil
}

// answers reports whether an envelope of the kind is what a POST waits for.
func answers(k wire.Kind) bool {
	switch k {
	case wire.KindPong, wire.KindResponse, wire.KindAck, wire.KindCapabilities, wire.KindError, wire.KindHello:
		return true
	}
	return false
}

// await lets the POST of an envelope wait for its answer. It returns nil when
// another POST of the same id waits already.
func (c *caller) await(id string) chan message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[id] != nil {
		return nil
	}
	ch := make(chan message, 1)
	c.waiting[id] = ch
	return ch
}

// forgo ends the waiting of a POST.
func (c *caller) forgo(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// use returns the caller of an identity, which is remembered at least until
// release.
func (x *HTTP) use(p core.Principal, id core.AgentID) (*caller, error) {
	if err := core.CheckAgentID(id); err != nil {
		return nil, err
	}
	c, fresh, err := x.find(p, id)
	if fresh {
		c.s.takeOver()
	}
	return c, err
}

// find returns the caller of an identity, and whether it is a new one.
func (x *HTTP) find(p core.Principal, id core.AgentID) (c *caller, fresh bool, err error) {
	key := callerKey{peerID{cmp.Or(p.ID, string(id)), id}, p.Operator}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, false, core.NewFault(core.CodeUnreachable, "the hub is stopping")
	}
	if c = x.peers[key]; c == nil {
		if len(x.peers) >= x.opts.MaxPeers && !x.makeRoomLocked() {
			return nil, false, core.NewFault(core.CodeOverloaded, "%d HTTP peers are busy already: try again later", len(x.peers))
		}
		c, fresh = x.beginLocked(key, p), true
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	c.users++
	close(c.used)
	c.used = make(chan struct{})
	return c, fresh, nil
}

// beginLocked remembers a new caller.
func (x *HTTP) beginLocked(key callerKey, p core.Principal) *caller {
	opts := x.opts.Session
	opts.Principal = p
	c := &caller{
		key: key, mail: newMailbox(x.opts.MailboxBytes, x.total), gone: make(chan struct{}), used: make(chan struct{}), waiting: map[string]chan message{},
	}
	c.s = newSession(x.hub, opts, c)
	// A POST waits for what it asks for, however long the sender stays.
	c.s.beside = func(ctx context.Context, f func(context.Context)) { f(context.WithoutCancel(ctx)) }
	c.s.alive = func(ctx context.Context) error { return x.heard(ctx, c) }
	c.s.identify(key.id)
	x.peers[key] = c
	x.wg.Go(func() {
		c.s.farewell(context.Background(), c.s.pump(context.Background())) // which ends with the session of the hub
		x.ended(c)
	})
	return c
}

// ended does what follows the end of a caller's session. Whoever reads its mailbox
// gets what is in there first.
func (x *HTTP) ended(c *caller) {
	x.mu.Lock()
	if x.peers[c.key] == c {
		delete(x.peers, c.key)
	}
	users := c.users
	x.mu.Unlock()
	c.s.close(core.NewFault(core.CodeUnreachable, "the hub ended the session"))
	c.mail.close()
	close(c.gone)
	if users == 0 {
		c.mail.discard()
	}
}

// heard returns nil once the peer reads what arrives, or waits for an answer: that is
// the only sign of life that HTTP has.
func (x *HTTP) heard(ctx context.Context, c *caller) error {
	x.mu.Lock()
	here, used := c.users > 0, c.used
	x.mu.Unlock()
	if here {
		return nil
	}
	select {
	case <-used:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release ends one use of a caller. The last one starts the clock.
func (x *HTTP) release(c *caller) {
	x.mu.Lock()
	c.users--
	forgotten := x.peers[c.key] != c
	switch {
	case c.users > 0 || forgotten:
	case c.idle != nil:
		c.since = time.Now()
		c.idle.Reset(x.opts.Idle)
	default:
		c.since = time.Now()
		c.idle = time.AfterFunc(x.opts.Idle, func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			if c.users == 0 && x.peers[c.key] == c {
				x.forgetLocked(c)
			}
		})
	}
	last := c.users == 0 && forgotten
	x.mu.Unlock()
	if last {
		c.mail.discard()
	}
}

// forgetLocked ends the session of a caller; its pump does the rest.
func (x *HTTP) forgetLocked(c *caller) {
	delete(x.peers, c.key)
	if c.idle != nil {
		c.idle.Stop()
	}
	x.wg.Go(func() { c.s.close(core.NewFault(core.CodeUnreachable, "the peer sent nothing for %s", x.opts.Idle)) })
}

// makeRoomLocked forgets the caller that was idle longest.
func (x *HTTP) makeRoomLocked() bool {
	var oldest *caller
	for _, c := range x.peers {
		if c.users == 0 && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	x.forgetLocked(oldest)
	return true
}
