package pi

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// connection is one client.
type connection struct {
	command.Client
	server    *Server
	principal core.Principal
	transport Transport
	snapshots render.Snapshots
	lifecycle Lifecycle
	link      *link.Link[[]byte, []byte]
	hub       *hub.Session // reads the tasks of the sessions that it subscribed to
	out       outbox
	late      bool // it came when the hub was stopping: it is told so, and ends

	// The pump's own: what it took from the outbox and has not delivered, room for what
	// it takes next, the frames of all views that it sends next, and whether no more
	// events come, so that nothing waits for them.
	turn, spare []item
	frames      render.Frames
	hubGone     bool

	reading map[*session]struct{} // in turns of the engine

	mu        sync.Mutex
	views     map[*step]*render.View
	spareView *render.View // that has told its task, for the next
}

// push puts an item into the outbox; a client that lets it run over is closed.
func (c *connection) push(it item) { c.pushed(c.out.push(it)) }

// pushLater is push of an item that may wait for others: see [Server.sendSoon].
func (c *connection) pushLater(it item) { c.pushed(c.out.pushLater(it)) }

func (c *connection) pushed(ok bool) {
	if !ok {
		c.link.Close(link.Reason{Cause: link.Slow, Text: "Server overloaded - backpressure critical", Code: 1011})
	}
}

// Send sends a frame.
func (c *connection) Send(frame []byte) { c.push(item{frame: frame}) }

// Close closes the connection behind all that it is sent.
func (c *connection) Close() {
	c.push(item{last: &link.Reason{Cause: link.Normal, Text: "end of input"}})
}

// subscribe adds the client to the readers of a session.
func (c *connection) subscribe(ss *session) {
	if _, ok := c.reading[ss]; ok || ss.deleted {
		return
	}
	ss.readers = append(ss.readers, c)
	c.reading[ss] = struct{}{}
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
	c.askAgain(ss)
	ss.watchQuestions()
}

// unsubscribe is for a session that is deleted: its run is told no further.
func (c *connection) unsubscribe(ss *session) {
	ss.readers = without(ss.readers, c)
	delete(c.reading, ss)
	if ss.run != nil {
		c.out.over(ss.run)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for st := range c.views {
		if st.run.session == ss {
			delete(c.views, st)
			c.hub.Unwatch(st.task)
		}
	}
	command.Signal(c.out.ready) // what waited for their end
}

// subscribers are the connections that see a session. They are replaced, never changed.
type subscribers []*connection

// tell sends a frame to all subscribers.
func (all subscribers) tell(frame []byte) {
	for _, c := range all {
		c.push(item{frame: frame})
	}
}

// tellStep has all subscribers told a step.
func (all subscribers) tellStep(st *step) {
	for _, c := range all {
		c.push(item{step: st})
	}
}

// tellBehind sends a frame to all subscribers, to each once it has been told the step.
func (all subscribers) tellBehind(st *step, frame []byte) {
	for _, c := range all {
		c.push(item{fence: st})
		c.push(item{frame: frame})
	}
}

// without returns the connections but for one.
func without[S ~[]*connection](all S, c *connection) S {
	return slices.DeleteFunc(slices.Clone(all), func(other *connection) bool { return other == c })
}
