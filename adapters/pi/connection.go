package pi

import (
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// connection is the connection of one client.
type connection struct {
	command.Client
	server    *Server
	principal core.Principal
	transport Transport
	snapshots render.Snapshots
	lifecycle Lifecycle
	trace     core.Trace
	link      *link.Link[[]byte, []byte]
	sees      *frame.Ring     // its frames; may be nil
	delivery  *frame.Delivery // of what its steps begin with; nil without sees
	hub       *hub.Session    // reads the tasks of the sessions that it subscribed to
	out       outbox
	since     time.Time
	late      bool // it began while the hub was stopping: it is told so, and ends

	// Used by the pump only: the frames of all views that it sends next, and whether no
	// more events come, so that nothing waits for them.
	frames  render.Frames
	hubGone bool

	after *step // whose end the next frame follows; the pump's own

	subscriptions map[*session]struct{} // accessed in turns of the engine

	mu        sync.Mutex
	views     map[*step]*render.View
	spareView *render.View // of a task that has ended, to be used again
}

// push adds an item to the outbox. A client whose outbox is full is closed.
func (c *connection) push(it item) { c.closeIfSlow(c.out.push(it)) }

// pushLater is push for an item that may wait for others: see [Server.scheduleFlush].
func (c *connection) pushLater(it item) { c.closeIfSlow(c.out.pushLater(it)) }

func (c *connection) closeIfSlow(ok bool) {
	if !ok {
		c.link.Close(link.Reason{Cause: link.Slow, Text: "Server overloaded - backpressure critical", Code: 1011})
	}
}

// Send sends a frame.
func (c *connection) Send(frame []byte) { c.push(item{frame: frame}) }

// Close closes the connection once everything before it has been sent.
func (c *connection) Close() {
	c.push(item{last: &link.Reason{Cause: link.Normal, Text: "end of input"}})
}

// subscribe adds the client to the subscribers of a session.
func (c *connection) subscribe(ss *session) {
	if _, ok := c.subscriptions[ss]; ok || ss.deleted {
		return
	}
	ss.subscribers = append(ss.subscribers, c)
	ss.viewer = c.principal
	c.subscriptions[ss] = struct{}{}
	if ss.run != nil {
		for _, st := range ss.run.steps {
			c.push(item{step: st})
		}
	}
	if ss.run == nil && ss.compacting != nil && ss.compacting.reason != "" {
		c.push(item{frame: ss.envelope.CompactionStart(ss.compacting.reason)})
	}
	if !ss.queue.empty() {
		c.push(item{frame: ss.queue.frame(ss.envelope)})
	}
	c.resendQuestions(ss)
	ss.watchQuestions()
}

// unsubscribe removes the client from a session that is deleted: it gets no more of its run.
func (c *connection) unsubscribe(ss *session) {
	ss.subscribers = without(ss.subscribers, c)
	delete(c.subscriptions, ss)
	if ss.run != nil {
		c.out.runEnded(ss.run)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for st := range c.views {
		if st.run.session == ss {
			delete(c.views, st)
			c.hub.Unwatch(st.task)
		}
	}
	fifo.Signal(c.out.ready) // items waited for the end of these steps
}

// subscribers are the connections that get the events of a session. The slice is replaced,
// never changed.
type subscribers []*connection

// send sends a frame to all subscribers.
func (all subscribers) send(frame []byte) {
	for _, c := range all {
		c.push(item{frame: frame})
	}
}

// sendStep sends a step to all subscribers.
func (all subscribers) sendStep(st *step) {
	for _, c := range all {
		c.push(item{step: st})
	}
}

// sendAfter sends a frame to all subscribers, to each once it has all of the step.
func (all subscribers) sendAfter(st *step, frame []byte) {
	for _, c := range all {
		c.push(item{fence: st})
		c.push(item{frame: frame})
	}
}

// without returns the connections except one.
func without[S ~[]*connection](all S, c *connection) S {
	return slices.DeleteFunc(slices.Clone(all), func(other *connection) bool { return other == c })
}
