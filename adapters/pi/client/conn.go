package client

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Frame is a frame of a server, decoded as far as every client needs it.
type Frame struct {
	Type string `json:"type"`
	// Of a response. ID and Command are as they were echoed.
	ID             json.RawMessage `json:"id"`
	Command        json.RawMessage `json:"command"`
	Success        bool            `json:"success"`
	Error          string          `json:"error"`
	SessionVersion *int            `json:"sessionVersion"`
	TimedOut       bool            `json:"timedOut"`
	Replayed       bool            `json:"replayed"`
	// Data is of a response, and of every event of the server.
	Data json.RawMessage `json:"data"`
	// Of an event of a session.
	SessionID string          `json:"sessionId"`
	Event     json.RawMessage `json:"event"`
	// Raw is the frame as it was received.
	Raw []byte `json:"-"`
}

// Conn is a connection to a pi-server. It is safe for concurrent use.
type Conn struct {
	link  *link.Link[[]byte, []byte]
	ready chan struct{}
	ended chan struct{}
	end   link.Reason
	on    func(Frame)
	name  string // prefix of its command ids: a principal must not use an id twice

	mu      sync.Mutex
	greeted bool // server_ready has come
	next    int
	waiting map[string]chan Frame
}

// Connect starts to read from conn and waits for server_ready. It calls on with every
// frame, one after the other, and with a response before [Conn.Do] returns it; on must not
// wait for the Conn. It returns the *link.Reason for which the connection ended, or the
// context's error. The caller ends the Conn with Close.
func Connect(ctx context.Context, conn link.Conn[[]byte, []byte], on func(Frame)) (*Conn, error) {
	c := &Conn{
		link: link.New(conn, link.Options{}), ready: make(chan struct{}), ended: make(chan struct{}),
		on: on, name: core.NewID(), waiting: map[string]chan Frame{},
	}
	go func() {
		defer close(c.ended)
		c.end = c.link.Run(context.WithoutCancel(ctx), c.receive, nil)
	}()
	select {
	case <-c.ready:
		return c, nil
	case <-c.ended:
		select {
		case <-c.ready: // it came and the connection went
			return c, nil
		default:
			return nil, &c.end
		}
	case <-ctx.Done():
		c.Close()
		return nil, context.Cause(ctx)
	}
}

func (c *Conn) receive(_ context.Context, raw []byte) error {
	f := Frame{Raw: raw}
	if err := strictjson.Decode(raw, strictjson.Limits{Bytes: 1 << 30, Depth: 1000}, &f); err != nil {
		return link.Because(link.Protocol, "a frame is not what a pi-server sends: %v", err)
	}
	if c.on != nil {
		c.on(f)
	}
	switch f.Type {
	case "server_ready":
		c.mu.Lock()
		if !c.greeted {
			c.greeted = true
			close(c.ready)
		}
		c.mu.Unlock()
	case "response":
		c.mu.Lock()
		w := c.waiting[string(f.ID)]
		delete(c.waiting, string(f.ID))
		c.mu.Unlock()
		if w != nil {
			w <- f
		}
	}
	return nil
}

// Do sends a command and waits for its response, which may be a failure. A command
// without an id gets one of its own. It returns the *link.Reason for which the connection ended,
// or the context's error.
func (c *Conn) Do(ctx context.Context, command map[string]any) (Frame, error) {
	w := make(chan Frame, 1)
	c.mu.Lock()
	id, _ := command["id"].(string)
	if id == "" {
		c.next++
		id = c.name + ":" + strconv.Itoa(c.next)
		command = maps.Clone(command)
		command["id"] = id
	}
	key := string(wire.AppendString(nil, id))
	c.waiting[key] = w
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.waiting[key] == w {
			delete(c.waiting, key)
		}
	}()
	if err := c.Send(ctx, wire.Encode(command)); err != nil {
		return Frame{}, err
	}
	select {
	case f := <-w:
		return f, nil
	case <-c.ended:
		select {
		case f := <-w:
			return f, nil
		default:
			return Frame{}, &c.end
		}
	case <-ctx.Done():
		return Frame{}, context.Cause(ctx)
	}
}

// Send sends a frame as it is.
func (c *Conn) Send(ctx context.Context, frame []byte) error {
	return c.link.Send(ctx, frame, len(frame))
}

// Done is closed once the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.ended }

// Close ends the connection, waits until it is down and returns why it ended.
func (c *Conn) Close() link.Reason {
	c.link.Close(link.Reason{Cause: link.Normal})
	<-c.ended
	return c.end
}
