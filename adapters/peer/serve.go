package peer

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Dialect is the name of the sessions that stand for other hubs.
const Dialect = "peer"

// Bounds of a connection.
const (
	queueBytes  = 16 << 20 // commands that the other hub has not taken
	eventBytes  = 2 << 20  // events that it has not taken
	mostPending = 4096     // tasks that it waits for
)

// Options describe a connection.
type Options struct {
	// Name is the name of the other hub.
	Name string
	// Version is that of this program, for the log of the other hub.
	Version string
	// Log is for operators.
	Log *slog.Logger
}

// Connection is the connection to one other hub.
type Connection struct {
	peers *Peers

	hub     *hub.Hub
	opts    Options
	link    *link.Link[[]byte, []byte]
	session *hub.Session

	mu      sync.Mutex
	unsent  int           // bytes of events that are queued
	room    chan struct{} // has a token when they are fewer
	pending []core.TaskID // tasks that the other hub asked for
	asked   chan struct{} // has a token when there are such tasks
}

// Connect connects a hub to another one: from now on commands to it are queued. The caller calls
// Run once.
func (p *Peers) Connect(h *hub.Hub, conn link.Conn[[]byte, []byte], opts Options) *Connection {
	c := &Connection{
		peers: p, hub: h, opts: opts, link: link.New(conn, link.Options{QueueBytes: queueBytes, Memory: h.Memory()}),
		session: h.Connect(hub.Identity{
			Principal: core.Principal{ID: "hub " + opts.Name, Dialect: Dialect, Operator: true, Component: true},
			Dialect:   Dialect, Checked: true, Hub: opts.Name,
		}),
		room: make(chan struct{}, 1), asked: make(chan struct{}, 1),
	}
	greeting, _ := encode(frameHello, hello{Version: version, Program: opts.Version}) // it can be encoded
	_ = c.link.Send(context.Background(), greeting, len(greeting))                    // a new queue has room
	p.add(opts.Name, c)
	return c
}

// Run serves the connection until it ends, and returns why. By then no goroutine of it runs. What
// the other hub opened and did not want kept is cancelled.
func (c *Connection) Run(ctx context.Context) link.Reason {
	inner, cancel := context.WithCancel(ctx)
	var goroutines sync.WaitGroup
	goroutines.Go(func() { c.pump(inner) })
	goroutines.Go(func() { c.find(inner) })
	reason := c.link.Run(ctx, c.receive, nil)
	c.peers.remove(c.opts.Name, c)
	c.session.Close(core.NewFault(core.CodeUnreachable, "hub %s is not connected any more", c.opts.Name))
	cancel()
	goroutines.Wait()
	return reason
}

// receive executes a frame of the other hub.
func (c *Connection) receive(ctx context.Context, frame []byte) error {
	if ctx.Err() != nil {
		return nil // the next connection may say something else already
	}
	if len(frame) == 0 {
		return link.Because(link.Protocol, "an empty frame")
	}
	body := frame[1:]
	var err error
	switch frame[0] {
	case frameHello:
		var h hello
		if h, err = decodeHello(body); err == nil && h.Version != version {
			err = link.Because(link.Protocol, "hub %s (%s) speaks version %d of the frames between hubs, this one %d: upgrade the older one", c.opts.Name, h.Program, h.Version, version)
		}
	case frameOpen:
		var o hub.Opening
		if o, err = decodeOpening(body); err == nil {
			if b, ok := o.Opened.Body.(core.Opened); !c.session.Adopt(o) && ok {
				err = c.ask(b.Task) // which is answered with frameUnknown
			}
		}
	case frameDo:
		var call core.Call
		if call, err = decodeCall(body); err == nil {
			if refused := c.session.Perform(call); refused != nil {
				c.hub.Count("peer.refused")
				c.opts.Log.Info("a command from another hub was refused", "hub", c.opts.Name, "act", call.Command.Act().String(), "object", call.Command.Object(), "principal", call.Principal.ID, "reason", refused.Error())
			}
		}
	case frameHand:
		var o hub.Handover
		if o, err = decodeHandover(body); err == nil {
			c.session.Accept(o)
		}
	case frameTaken:
		c.hub.Taken(c.opts.Name, core.TaskID(body))
	case frameRefused:
		c.hub.Refused(c.opts.Name, core.TaskID(body))
	case frameLeave:
		c.session.LeaveTask(core.TaskID(body))
	case frameFollow:
		err = c.ask(core.TaskID(body))
	case frameUnknown:
		c.hub.Unknown(c.opts.Name, core.TaskID(body))
	case frameEvents:
		var id core.TaskID
		var events []core.Event
		if id, events, err = decodeEvents(body); err == nil {
			c.hub.Extend(id, events)
		}
	}
	return err
}

// ask notes that the other hub wants to read a task, which may have to be read from the journal.
func (c *Connection) ask(id core.TaskID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) >= mostPending {
		return link.Because(link.Overloaded, "hub %s waits for more than %d tasks", c.opts.Name, mostPending)
	}
	c.pending = append(c.pending, id)
	select {
	case c.asked <- struct{}{}:
	default:
	}
	return nil
}

// find finds the tasks that the other hub asked for.
func (c *Connection) find(ctx context.Context) {
	for {
		select {
		case <-c.asked:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		all := c.pending
		c.pending = nil
		c.mu.Unlock()
		for _, id := range all {
			if err := c.session.FollowTask(id); err == nil {
				continue
			}
			frame := append([]byte{frameUnknown}, id...)
			if c.link.Send(ctx, frame, len(frame)) != nil {
				return
			}
		}
	}
}

// pump sends the events of the tasks that the other hub opened or asked for.
func (c *Connection) pump(ctx context.Context) {
	for {
		b, err := c.session.Next(ctx)
		if err == nil {
			c.link.Hold()
			err = c.session.Drain(b, func(b hub.Batch) error { return c.deliver(ctx, b) })
			c.link.Flush()
		}
		if err != nil {
			var f *core.Fault
			if errors.As(err, &f) {
				c.link.Close(*link.Because(link.ShuttingDown, "%s", f.Message))
			}
			return
		}
	}
}

func (c *Connection) deliver(ctx context.Context, b hub.Batch) error {
	if b.Task == nil || len(b.Events) == 0 {
		return nil
	}
	const perEvent = 256
	frame, err := appendEvents(make([]byte, 0, idBytes+perEvent*len(b.Events)), b.Task.ID(), b.Events)
	if err != nil {
		return err
	}
	if err := c.reserve(ctx, len(frame)); err != nil {
		return err
	}
	return c.link.SendThen(ctx, frame, len(frame), func() { c.release(len(frame)) })
}

// reserve waits until the other hub has taken most of the events before.
func (c *Connection) reserve(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		fits := c.unsent == 0 || c.unsent+n <= eventBytes
		if fits {
			c.unsent += n
		}
		c.mu.Unlock()
		if fits {
			return nil
		}
		c.link.Flush()
		select {
		case <-c.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Connection) release(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsent -= n
	select {
	case c.room <- struct{}{}:
	default:
	}
}
