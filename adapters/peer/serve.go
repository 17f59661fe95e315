package peer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// Bounds of a connection.
const (
	queueBytes  = 16 << 20 // letters that the other hub has not taken
	eventBytes  = 2 << 20  // events and answers that it has not taken
	tunnelBytes = 1 << 20  // what visitors say, and are told, that it has not taken
)

// findAgain is when tasks are looked for again of which the journal could not say whether it knows them.
const findAgain = 250 * time.Millisecond

// connection is one connection to another hub.
type connection struct {
	*Peer
	link      *link.Link[[]byte, []byte]
	inquiries chan asked // those of the other hub
	events    *quota     // of events and answers
	visits    *quota     // of tunnels
	tunnels   tunnels
	serve     func(visit func(context.Context)) // serves a visitor

	mu      sync.Mutex
	pending map[core.TaskID]core.Cursor // tasks that the other hub asked for, and has copies of up to there
	asked   chan struct{}               // has a token when there are such tasks
}

func newConnection(o *Peer, conn link.Conn[[]byte, []byte]) *connection {
	c := &connection{
		Peer: o, link: link.New(conn, link.Options{QueueBytes: queueBytes + shortBytes + 2*eventBytes + 2*tunnelBytes, Memory: o.hub.Memory()}),
		inquiries: make(chan asked, mostInquiries), events: newQuota(eventBytes), visits: newQuota(tunnelBytes), pending: map[core.TaskID]core.Cursor{}, asked: make(chan struct{}, 1),
	}
	greeting := o.greeting()
	_ = c.link.Send(context.Background(), greeting, len(greeting)) // a new queue has room
	return c
}

// receive executes a frame of the other hub.
func (c *connection) receive(ctx context.Context, frame []byte) error {
	if ctx.Err() != nil {
		return nil // the next connection may say something else already
	}
	if len(frame) == 0 {
		return link.Because(link.Protocol, "an empty frame")
	}
	body := frame[1:]
	switch frame[0] {
	case frameHello:
		return c.receiveHello(body)
	case frameLetter:
		return c.receiveLetter(body)
	case frameGot:
		return c.got(body)
	case frameFollow:
		id, after, err := decodeFollow(body)
		if err == nil {
			c.wanted(id, after)
		}
		return err
	case frameUnknown:
		c.hubs.Unknown(c.opts.Name, core.TaskID(body))
	case frameEvents:
		id, events, err := decodeEvents(body)
		if err == nil {
			c.hubs.Extend(id, events)
		}
		return err
	case frameInquiry:
		return c.inquired(body)
	case frameAnswer:
		return c.settled(body)
	case frameVisit, framePart, frameRead, frameClose:
		return c.visited(frame[0], body)
	}
	return nil
}

// receiveHello executes the first frame. The connection ends if the hubs do not understand each other.
func (c *connection) receiveHello(body []byte) error {
	h, err := decodeHello(body)
	if err != nil {
		return err
	}
	if h.Version != version {
		f := core.NewFault(core.CodeUnsupported, "hub %s (%s) speaks version %d of the frames between hubs, this one %d: upgrade the older one", c.opts.Name, h.Program, h.Version, version)
		c.despair(f)
		return link.Because(link.Protocol, "%s", f.Message)
	}
	c.greeted(c, h.Got)
	return nil
}

// receiveLetter executes a letter, unless it came before.
func (c *connection) receiveLetter(body []byte) error {
	letter, err := c.took(c, body)
	if err == nil && len(letter) > 0 {
		err = c.open(letter)
	}
	return err
}

// open executes what is in a letter.
func (c *connection) open(letter []byte) error {
	body := letter[1:]
	switch letter[0] {
	case letterOpen:
		o, err := decodeOpening(body)
		if err != nil {
			return err
		}
		if b, ok := o.Opened.Body.(core.Opened); !c.session.Adopt(o) && ok {
			c.wanted(b.Task, core.Cursor{}) // which is answered with frameUnknown
		}
	case letterDo:
		call, err := decodeCall(body)
		if err != nil {
			return err
		}
		if refused := c.session.Perform(call); refused != nil {
			c.hub.Count("peer.refused")
			c.opts.Log.Info("a command from another hub was refused", "hub", c.opts.Name, "act", call.Command.Act().String(), "object", call.Command.Object(), "principal", call.Principal.ID, "reason", refused.Error())
		}
	case letterHand:
		o, err := decodeTransfer(body)
		if err != nil {
			return err
		}
		c.hubs.Accept(c.opts.Name, o)
	case letterTaken, letterRefused, letterKept:
		return c.openMove(letter[0], body)
	case letterLeave:
		c.session.LeaveTask(core.TaskID(body))
	case letterNews:
		var n rpc.Told
		if err := json.Unmarshal(body, &n); err != nil {
			return err
		}
		return c.hubs.Told(c.opts.Name, n)
	}
	return nil
}

// openMove executes a letter that says what has become of a task that was handed over.
func (c *connection) openMove(kind byte, body []byte) error {
	m, err := decodeRecord(body)
	if err != nil {
		return err
	}
	switch kind {
	case letterTaken:
		c.hubs.Taken(c.opts.Name, m)
	case letterRefused:
		c.hubs.Refused(c.opts.Name, m)
	case letterKept:
		c.hubs.Kept(c.opts.Name, m)
	}
	return nil
}

// got drops the letters that the other hub has.
func (o *Peer) got(body []byte) error {
	n, size := binary.Uvarint(body)
	if size <= 0 {
		return errLetter
	}
	o.mail.mu.Lock()
	defer o.mail.mu.Unlock()
	o.mail.out.drop(n)
	return nil
}

// wanted notes that the other hub wants to read a task, which may have to be read from the journal.
// There may be as many as it has copies: after a new connection it asks for all of them at once.
func (c *connection) wanted(id core.TaskID, after core.Cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[id] = after
	fifo.Signal(c.asked)
}

// find finds the tasks that the other hub asked for.
func (c *connection) find(ctx context.Context) {
	later := map[core.TaskID]core.Cursor{}
	var again <-chan time.Time
	for {
		select {
		case <-c.asked:
		case <-again:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		all := later
		maps.Copy(all, c.pending)
		c.pending, later = map[core.TaskID]core.Cursor{}, map[core.TaskID]core.Cursor{}
		c.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(all)) {
			switch err := c.hubs.FollowTask(ctx, c.session, id, all[id]); {
			case ctx.Err() != nil:
				return
			case err == nil:
			case core.AsFault(err).Code != core.CodeUnknownTask: // the journal may know it
				later[id] = all[id]
			case !c.hubs.IfUnknown(id, func() { c.deny(id) }):
				c.wanted(id, all[id])
			}
		}
		if len(later) > 0 {
			again = time.After(findAgain)
		}
	}
}

// deny says that no such task is known here.
func (c *connection) deny(id core.TaskID) {
	c.Peer.mu.Lock()
	defer c.Peer.mu.Unlock()
	c.write(c, append([]byte{frameUnknown}, id...))
}

// pump sends the events of the tasks that the other hub opened or asked for.
func (c *connection) pump(ctx context.Context) {
	for {
		b, err := c.session.Next(ctx)
		if err == nil {
			c.link.Hold()
			err = c.session.Drain(b, func(b hub.Batch) error { return c.deliver(ctx, b) })
			c.link.Flush()
		}
		if err != nil {
			var f *core.Fault
			switch {
			case errors.As(err, &f):
				c.Peer.mu.Lock()
				c.told = true
				c.Peer.mu.Unlock()
				c.link.Close(*link.Because(link.ShuttingDown, "%s", f.Message))
			case ctx.Err() == nil: // without events the connection is of no use
				c.link.Close(*link.Because(link.Internal, "sending events: %s", err))
			}
			return
		}
	}
}

func (c *connection) deliver(ctx context.Context, b hub.Batch) error {
	if b.Task == nil || len(b.Events) == 0 {
		return nil
	}
	const perEvent = 256
	frame, err := appendEvents(make([]byte, 0, idBytes+perEvent*len(b.Events)), b.Task.ID(), b.Events)
	if err != nil { // the journal cannot store them either
		c.opts.Log.Error("events of a task cannot be sent to another hub, which does not get its end", "hub", c.opts.Name, "task", b.Task.ID(), "error", err)
		return nil
	}
	return c.events.send(ctx, c.link, frame)
}

// quota bounds the bytes of one kind of frames that are queued, so that no kind is in the way of the
// others.
type quota struct {
	most int

	mu     sync.Mutex
	unsent int
	room   chan struct{} // has a token when they are fewer
}

func newQuota(most int) *quota { return &quota{most: most, room: make(chan struct{}, 1)} }

// send queues a frame once the other hub has taken most of those before.
func (q *quota) send(ctx context.Context, l *link.Link[[]byte, []byte], frame []byte) error {
	if err := q.reserve(ctx, l, len(frame)); err != nil {
		return err
	}
	return l.SendThen(ctx, frame, len(frame), func() { q.release(len(frame)) })
}

func (q *quota) reserve(ctx context.Context, l *link.Link[[]byte, []byte], n int) error {
	for {
		q.mu.Lock()
		fits := q.unsent == 0 || q.unsent+n <= q.most
		if fits {
			q.unsent += n
		}
		q.mu.Unlock()
		if fits {
			return nil
		}
		l.Flush()
		select {
		case <-q.room:
		case <-l.Done():
			reason := l.Reason()
			return &reason
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (q *quota) release(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unsent -= n
	fifo.Signal(q.room)
}
