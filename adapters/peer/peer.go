package peer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Dialect is the name of the sessions that stand for other hubs.
const Dialect = "peer"

// Options describe another hub.
type Options struct {
	// Name is the name of the other hub, Epoch that of its life.
	Name  string
	Epoch uint64
	// Version is that of this program, for the log of the other hub.
	Version string
	// Log is for operators.
	Log *slog.Logger
}

// Peer is another hub in one of its lives. Its connections come and go: what was sent and did not
// arrive is repeated over the next one. It is safe for concurrent use.
type Peer struct {
	peers   *Peers
	hub     *hub.Hub
	hubs    *remote.Hubs
	opts    Options
	session *hub.Session // does what the other hub asks

	mu        sync.Mutex
	conn      *connection   // the present one, once the other end has greeted; else nil
	changed   chan struct{} // closed and replaced when conn or hopeless changes
	hopeless  *core.Fault   // why there will be no connection, as far as is known; else nil
	told      bool          // this hub has stopped, and the other one was sent all that it had to say
	mail      *mail
	inquiries inquiries
}

// Add makes a life of another hub known: from now on commands to it are kept until they arrive. The
// caller calls Run, and in the end Close. It replaces an earlier Peer of the name, which is closed if it
// is of the same life.
func (p *Peers) Add(h *hub.Hub, hubs *remote.Hubs, opts Options) *Peer {
	o := &Peer{
		peers: p, hub: h, hubs: hubs, opts: opts, mail: &mail{}, changed: make(chan struct{}),
		session: h.Connect(hub.Identity{
			Principal: core.Principal{ID: core.PartPrefix + opts.Name, Dialect: Dialect, Operator: true, Component: true},
			Dialect:   Dialect, Checked: true, Hub: opts.Name,
		}),
	}
	p.add(opts.Name, o)
	return o
}

// Close lets go of the other hub, which is gone. What it opened and did not want kept is cancelled.
// It is called once Run has returned for the last time.
func (o *Peer) Close() {
	o.peers.remove(o.opts.Name, o)
	gone := core.NewFault(core.CodeUnreachable, "hub %s is gone", o.opts.Name)
	o.despair(gone)
	o.session.Close(gone)
}

// partTime is how long a connection may take to end by itself, after the last word of a hub that has
// stopped.
const partTime = time.Second

// Run serves a connection until it ends, and returns why. By then no goroutine of it runs. Run is
// called for one connection after the other. Once ctx ends it ends at once, unless this hub was closed:
// then the other one gets the ends of its tasks first, for up to partTime.
func (o *Peer) Run(ctx context.Context, conn link.Conn[[]byte, []byte]) link.Reason {
	ctx, cut := o.parting(ctx)
	defer cut()
	c := newConnection(o, conn)
	// They go on until the tunnels have ended: a service that ends by itself ends its tunnel as whole.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var goroutines sync.WaitGroup
	goroutines.Go(func() { c.pump(inner) })
	goroutines.Go(func() { c.find(inner) })
	for range inquirers {
		goroutines.Go(func() { c.answer(inner) })
	}
	c.serve = func(visit func(context.Context)) { goroutines.Go(func() { visit(inner) }) }
	reason := c.link.Run(ctx, c.receive, nil)
	o.lost(c)
	c.tunnels.end(o.opts.Name)
	cancel()
	goroutines.Wait()
	o.session.LeaveTasks()
	return reason
}

// parting returns a context for a connection that lasts longer than the given one: see [Peer.Run].
func (o *Peer) parting(given context.Context) (context.Context, context.CancelFunc) {
	ctx, cut := context.WithCancelCause(context.WithoutCancel(given))
	last := time.AfterFunc(time.Hour, func() { cut(context.Cause(given)) })
	last.Stop()
	stop := context.AfterFunc(given, func() {
		if !o.hub.IsClosed() {
			cut(context.Cause(given))
			return
		}
		last.Reset(partTime)
	})
	return ctx, func() {
		stop()
		last.Stop()
		cut(nil)
	}
}

// hasTold reports whether this hub has nothing more to say, since it was closed.
func (o *Peer) hasTold() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told
}

// greeted begins to use a connection whose other end has said what it got: letters that it did not
// get come first.
func (o *Peer) greeted(c *connection, got uint64) {
	o.mu.Lock()
	o.mail.mu.Lock()
	o.mail.out.drop(got)
	for _, frame := range o.mail.out.letters {
		o.write(c, frame)
	}
	o.mail.mu.Unlock()
	o.conn, o.hopeless = c, nil
	o.change()
	o.mu.Unlock()
	o.hubs.Connected(o.opts.Name)
}

// lost stops to use a connection that has ended.
func (o *Peer) lost(c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == c {
		o.conn = nil
	}
	o.inquiries.fail(core.NewFault(core.CodeUnreachable, "the connection to hub %s has ended: ask again in a moment", o.opts.Name))
}

// despair tells those who wait for a connection, and those who come until there is one, that they
// wait in vain.
func (o *Peer) despair(why *core.Fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hopeless = why
	o.change()
}

// change wakes those who wait for a connection. Callers hold mu.
func (o *Peer) change() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// connected waits for a connection: one that has ended is soon followed by the next. It returns with
// mu held unless it fails.
func (o *Peer) connected(ctx context.Context) (*connection, error) {
	o.mu.Lock()
	for o.conn == nil {
		changed, hopeless := o.changed, o.hopeless
		o.mu.Unlock()
		if hopeless != nil {
			return nil, hopeless
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, core.NewFault(core.CodeUnreachable, "hub %s is not connected: ask again in a moment", o.opts.Name)
		}
		o.mu.Lock()
	}
	return o.conn, nil
}

// send sends a letter, now or once there is a connection.
func (o *Peer) send(letter []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mail.mu.Lock()
	defer o.mail.mu.Unlock()
	frame, err := o.mail.out.add(o.opts.Name, letter)
	if err == nil && o.conn != nil {
		o.write(o.conn, frame)
	}
	return err
}

// follow asks for the events of a task after a cursor. Without a connection it does nothing: the hub
// asks again once there is one, see [remote.Hubs.Connected].
func (o *Peer) follow(id core.TaskID, after core.Cursor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn != nil {
		o.write(o.conn, encodeFollow(id, after))
	}
}

// now is a context that has ended: a queue that is full refuses instead of waiting.
var now = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// write queues a frame. A connection that takes none any more ends, and the next one repeats what is
// to be repeated. Callers hold mu.
func (o *Peer) write(c *connection, frame []byte) {
	if err := c.link.Send(now, frame, len(frame)); err != nil {
		c.link.Close(*link.Because(link.Slow, "hub %s takes no more frames", o.opts.Name))
	}
}

// took notes that a letter has come, and returns it unless it has come before.
func (o *Peer) took(c *connection, body []byte) (letter []byte, err error) {
	o.mail.mu.Lock()
	defer o.mail.mu.Unlock()
	if letter, err = o.mail.in.take(body); err == nil && o.mail.in.isDue() {
		o.write(c, o.mail.in.tell())
	}
	return letter, err
}

// greeting returns the first frame of a connection.
func (o *Peer) greeting() []byte {
	o.mail.mu.Lock()
	defer o.mail.mu.Unlock()
	o.mail.in.tell()
	frame, _ := encode(frameHello, hello{Version: version, Program: o.opts.Version, Got: o.mail.in.got}) // it can be encoded
	return frame
}
