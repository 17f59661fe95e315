package pitest

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Frame is a frame of a server. Only the members that every client needs are decoded.
type Frame struct {
	Type string `json:"type"`
	// Of a response. ID and Command are the echoed JSON.
	ID             json.RawMessage `json:"id"`
	Command        json.RawMessage `json:"command"`
	Success        bool            `json:"success"`
	Error          string          `json:"error"`
	SessionVersion *int            `json:"sessionVersion"`
	TimedOut       bool            `json:"timedOut"`
	Replayed       bool            `json:"replayed"`
	// Data is set in responses and in events of the server.
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
	name  string // prefix of generated command ids, which must be unique per principal

	mu      sync.Mutex
	greeted bool // server_ready was received
	next    int
	waiting map[string]chan Frame
}

// Connect starts reading conn and waits for server_ready. It calls on with every frame, one
// at a time, and with a response before [Conn.Do] returns it; on must not wait for the
// Conn. Connect returns the *link.Reason of the end of the connection, which is that the server speaks another major
// version too, or the context's error. The
// caller must call Close.
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
		case <-c.ready: // server_ready came before the end
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
		return link.Because(link.Protocol, "invalid frame from the pi-server: %v", err)
	}
	if c.on != nil {
		c.on(f)
	}
	switch f.Type {
	case "server_ready":
		if err := checkVersion(f.Data); err != nil {
			return err
		}
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

// checkVersion returns why the connection ends if the server speaks another major version (section 2, Version
// negotiation). One that names none is taken for this one.
func checkVersion(ready json.RawMessage) error {
	var said struct {
		Version string `json:"protocolVersion"`
	}
	if len(ready) > 0 {
		_ = strictjson.Decode(ready, strictjson.Limits{}, &said) // what is no object names no version
	}
	if major, _, _ := strings.Cut(said.Version, "."); major != "" && major != "1" {
		return link.Because(link.Protocol, "the pi-server speaks version %.20q of the protocol, and this client 1: use a server of version 1, or a newer client", said.Version)
	}
	return nil
}

// Do sends a command and returns its response, which may be a failure. A command without an
// id gets a generated one. It returns the *link.Reason of the end of the connection, or the
// context's error.
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
	key := string(strictjson.AppendString(nil, id))
	c.waiting[key] = w
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.waiting[key] == w {
			delete(c.waiting, key)
		}
	}()
	if err := c.Send(ctx, strictjson.Encode(command)); err != nil {
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

// Send sends a frame.
func (c *Conn) Send(ctx context.Context, frame []byte) error {
	return c.link.Send(ctx, frame, len(frame))
}

// Close ends the connection, waits for its goroutine and returns why it ended.
func (c *Conn) Close() link.Reason {
	c.link.Close(link.Reason{Cause: link.Normal})
	<-c.ended
	return c.end
}
