package acp

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The defaults of [HTTPOptions].
const (
	DefaultMaxPeers     = 1024
	DefaultMailboxBytes = 4 << 20
	DefaultIdle         = 10 * time.Minute
)

const (
	maxMailboxBytes = 256 << 20        // of all mailboxes together
	keepAlive       = 15 * time.Second // between comments on a silent event stream
	writeTimeout    = 30 * time.Second // of one write, then the reader is cut off
)

// HTTPOptions are the options of an [HTTP]. The zero HTTPOptions are an open hub with the
// defaults.
type HTTPOptions struct {
	// Session are the options of every session. Principal, AgentID and Link are not used.
	Session Options
	// Identify authenticates a request; nil is an open hub. With an authenticated
	// Principal, id is its agent id, and "" leaves that to X-Agent-Id or ?agent_id=, as on
	// a WebSocket, or else to the ID of the principal. An error that is a Fault is sent to
	// the peer.
	Identify func(r *http.Request) (p core.Principal, id core.AgentID, err error)
	// MaxPeers bounds how many peers are remembered. Beyond it the one that was idle
	// longest is forgotten; if none is idle, the new one is refused.
	MaxPeers int
	// MailboxBytes bounds the mailbox of one peer.
	MailboxBytes int
	// Idle is how long a peer is remembered without a request.
	Idle time.Duration
	// Frames returns the frames of a new peer, which are those of a connection; nil keeps none.
	Frames func() *frame.Ring
	// Forward has a request of a principal answered by another hub, unless it has come from one:
	// then it reports false. It is nil for a hub alone.
	Forward func(w http.ResponseWriter, r *http.Request, p core.Principal, hub string) bool
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	o.Session = o.Session.withDefaults()
	o.MaxPeers = cmp.Or(max(0, o.MaxPeers), DefaultMaxPeers)
	o.MailboxBytes = cmp.Or(max(0, o.MailboxBytes), DefaultMailboxBytes)
	o.Idle = cmp.Or(max(0, o.Idle), DefaultIdle)
	if o.Frames == nil {
		o.Frames = func() *frame.Ring { return nil }
	}
	return o
}

// HTTP serves ACP peers that have only HTTP: POST sends one envelope to the hub, and waits
// for the answer when the kind expects one; GET is a stream of server-sent events with all
// other envelopes for the peer. It is an http.Handler for one path and opens no socket.
type HTTP struct {
	hub   *hub.Hub
	opts  HTTPOptions
	total *budget

	mu     sync.Mutex
	peers  map[callerKey]*caller
	added  chan struct{} // closed with the next peer, and with Close
	closed bool
	wg     sync.WaitGroup // the pumps, and the sessions that are being closed
}

// NewHTTP makes an HTTP. Close ends it.
func NewHTTP(h *hub.Hub, opts HTTPOptions) *HTTP {
	opts = opts.withDefaults()
	x := &HTTP{hub: h, opts: opts, total: &budget{limit: maxMailboxBytes}, peers: map[callerKey]*caller{}, added: make(chan struct{})}
	callerMatter.Answer(h, func(_ context.Context, by core.Principal, id core.AgentID) (bool, error) {
		return x.has(by, id), nil
	})
	return x
}

// Close forgets all peers, ends the requests that wait, and returns once no goroutine runs
// any more. Later requests are refused.
func (x *HTTP) Close() {
	x.mu.Lock()
	if !x.closed {
		close(x.added)
	}
	x.closed = true
	for _, c := range x.peers {
		x.removeLocked(c)
	}
	x.mu.Unlock()
	x.wg.Wait()
}

// callerKey identifies a caller. A peer that sends two tokens of a principal is two callers,
// each with the rights of its token.
type callerKey struct {
	peerID
	rights string
}

func keyOf(p core.Principal, id core.AgentID) callerKey {
	return callerKey{peerID{cmp.Or(p.ID, string(id)), id}, p.Rights()}
}

// caller is a peer that has only HTTP.
type caller struct {
	key     callerKey
	s       *session
	mailbox *mailbox
	// ended is closed once the session has ended.
	ended chan struct{}
	// frames are nil if none are kept. acting is held while a post is handled whose frame may be of
	// a task.
	frames *frame.Ring
	acting sync.Mutex

	mu         sync.Mutex
	waiting    map[string]chan message // by the id of the envelope that was posted
	discovered bool                    // it was sent a discover
	streams    int                     // how many requests read the mailbox

	// Guarded by HTTP.mu.
	uses      int
	usedAgain chan struct{} // closed with the next use
	since     time.Time     // when the last use ended
	idle      *time.Timer
}

// send implements outlet: an answer goes to the POST that waits for it, any other envelope
// into the mailbox.
func (c *caller) send(ctx context.Context, m message) error {
	if c.frames != nil {
		c.frames.Queued(ctx, m.json)
	}
	c.mu.Lock()
	waits := c.waiting[m.ref]
	if waits == nil || !answers(m.kind) {
		c.mu.Unlock()
		c.mailbox.put(m)
		return nil
	}
	delete(c.waiting, m.ref)
	waits <- m // the channel has room for one
	c.mu.Unlock()
	return nil
}

// answers reports whether a POST may wait for an envelope of the kind.
func answers(k wire.Kind) bool {
	switch k {
	case wire.KindPong, wire.KindResponse, wire.KindAck, wire.KindCapabilities, wire.KindError, wire.KindHello:
		return true
	}
	return false
}

// await returns the channel of the answer to a POST, or nil when another POST of the same
// id waits already.
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

// stopAwaiting undoes await.
func (c *caller) stopAwaiting(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// acquire returns the caller of an identity, which is remembered at least until release.
func (x *HTTP) acquire(ctx context.Context, p core.Principal, id core.AgentID) (*caller, error) {
	if err := core.CheckAgentID(id); err != nil {
		return nil, err
	}
	c, fresh, err := x.find(p, id)
	if fresh {
		c.s.takeOver(ctx)
	}
	return c, err
}

// find returns the caller of an identity, and whether it is a new one.
func (x *HTTP) find(p core.Principal, id core.AgentID) (c *caller, fresh bool, err error) {
	key := keyOf(p, id)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, false, core.NewFault(core.CodeUnreachable, "the hub is stopping")
	}
	if c = x.peers[key]; c == nil {
		if len(x.peers) >= x.opts.MaxPeers && !x.evictLocked() {
			return nil, false, core.NewFault(core.CodeOverloaded, "%d HTTP peers are busy already: try again later", len(x.peers))
		}
		c, fresh = x.addLocked(key, p), true
	}
	c.useLocked()
	return c, fresh, nil
}

// known is acquire for a peer that has made itself known by a POST. Without it, c is nil and
// added is closed when there may be one.
func (x *HTTP) known(p core.Principal, id core.AgentID) (c *caller, added <-chan struct{}, err error) {
	if err := core.CheckAgentID(id); err != nil {
		return nil, nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, nil, core.NewFault(core.CodeUnreachable, "the hub is stopping")
	}
	if c = x.peers[keyOf(p, id)]; c != nil {
		c.useLocked()
	}
	return c, x.added, nil
}

// useLocked notes that a request of the peer begins.
func (c *caller) useLocked() {
	c.idle.Stop()
	c.uses++
	close(c.usedAgain)
	c.usedAgain = make(chan struct{})
}

// addLocked adds a caller and starts its pump.
func (x *HTTP) addLocked(key callerKey, p core.Principal) *caller {
	opts := x.opts.Session
	opts.Principal, opts.Link.Frames = p, x.opts.Frames()
	c := &caller{
		key: key, frames: opts.Link.Frames, mailbox: newMailbox(x.opts.MailboxBytes, x.total), ended: make(chan struct{}), usedAgain: make(chan struct{}), waiting: map[string]chan message{},
	}
	c.s = newSession(x.hub, opts, c)
	c.s.mayWait = true
	// A POST runs it itself, and to the end even if the sender hangs up.
	c.s.goAsync = func(ctx context.Context, f func(context.Context)) { f(context.WithoutCancel(ctx)) }
	c.s.probe = func(ctx context.Context) error { return x.awaitUse(ctx, c) }
	c.s.identify(key.id)
	c.idle = time.AfterFunc(x.opts.Idle, func() { x.expire(c) })
	x.peers[key] = c
	close(x.added)
	x.added = make(chan struct{})
	x.wg.Go(func() {
		c.s.farewell(context.Background(), c.s.pump(context.Background())) // the pump ends with the session
		x.sessionEnded(c)
	})
	return c
}

// sessionEnded cleans up after a caller's session. A reader of the mailbox gets what is in
// it first.
func (x *HTTP) sessionEnded(c *caller) {
	x.mu.Lock()
	if x.peers[c.key] == c {
		delete(x.peers, c.key)
	}
	users := c.uses
	x.mu.Unlock()
	c.s.close(core.NewFault(core.CodeUnreachable, "the hub ended the session"))
	c.frames.Close()
	c.mailbox.close()
	close(c.ended)
	if users == 0 {
		c.mailbox.discard()
	}
}

// awaitUse returns nil once the peer makes a request, the only sign of life that HTTP has.
func (x *HTTP) awaitUse(ctx context.Context, c *caller) error {
	x.mu.Lock()
	here, used := c.uses > 0, c.usedAgain
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

// release ends one use of a caller. The last one starts the idle timer.
func (x *HTTP) release(c *caller) {
	x.mu.Lock()
	c.uses--
	last, forgotten := c.uses == 0, x.peers[c.key] != c
	if last && !forgotten {
		c.since = time.Now()
		c.idle.Reset(x.opts.Idle)
	}
	x.mu.Unlock()
	if last && forgotten {
		c.mailbox.discard()
	}
}

// expire forgets a caller that is idle.
func (x *HTTP) expire(c *caller) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.uses == 0 && x.peers[c.key] == c {
		x.removeLocked(c)
	}
}

// removeLocked forgets a caller and closes its session; the pump cleans up.
func (x *HTTP) removeLocked(c *caller) {
	delete(x.peers, c.key)
	c.idle.Stop()
	x.wg.Go(func() { c.s.close(core.NewFault(core.CodeUnreachable, "the peer sent nothing for %s", x.opts.Idle)) })
}

// evictLocked forgets the caller that was idle longest, and reports whether there was one.
func (x *HTTP) evictLocked() bool {
	var oldest *caller
	for _, c := range x.peers {
		if c.uses == 0 && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	x.removeLocked(oldest)
	return true
}
