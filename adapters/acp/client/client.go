package client

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Options are the options of a [Client].
type Options struct {
	// ID is who the client is.
	ID core.AgentID
	// Progress asks for answers in pieces, by the extension.
	Progress bool
	// MaxEnvelopeBytes bounds an envelope that is sent; 0 means
	// [DefaultMaxEnvelopeBytes]. What is received the connection bounds.
	MaxEnvelopeBytes int
	// Link bounds the connection.
	Link link.Options
	// Received is told every envelope that answers nothing, from the reader of the
	// connection: it must return soon. Nil ignores them.
	Received func(wire.Envelope)
}

// Client is the requester's end of the dialect over one connection. It is safe for
// concurrent use.
type Client struct {
	opts Options
	link *link.Link[[]byte, []byte]
	done chan struct{} // closed when nothing runs any more

	mu    sync.Mutex
	calls map[string]*pending
}

// pending is an envelope that waits for its answers.
type pending struct {
	replies  chan wire.Envelope // what ends a wait: at most two
	progress func(wire.Envelope)
}

// New makes a Client and starts its reader. Close ends it.
func New(conn link.Conn[[]byte, []byte], opts Options) *Client {
	opts.MaxEnvelopeBytes = cmp.Or(max(0, opts.MaxEnvelopeBytes), wire.DefaultMaxEnvelopeBytes)
	c := &Client{opts: opts, link: link.New(conn, opts.Link), done: make(chan struct{}), calls: map[string]*pending{}}
	if opts.Progress {
		hello := c.Envelope(wire.KindHello, "", wire.Hello{ProtocolVersions: []int64{wire.Version}, Features: []string{wire.ExtensionProgress}})
		_ = c.Send(context.Background(), hello) // the first message of a new queue has room
	}
	go func() {
		defer close(c.done)
		c.link.Run(context.Background(), c.receive, nil)
	}()
	return c
}

// Close ends the connection and returns once nothing runs any more.
func (c *Client) Close() {
	c.link.Close(link.Reason{Cause: link.Normal})
	<-c.done
}

// Done is closed when the connection has ended, and Reason says why.
func (c *Client) Done() <-chan struct{} { return c.link.Done() }

// Reason returns why the connection ended.
func (c *Client) Reason() link.Reason { return c.link.Reason() }

// Envelope begins an envelope of the client, with a fresh id.
func (c *Client) Envelope(kind wire.Kind, to string, payload any) wire.Envelope {
	return wire.New(kind, string(c.opts.ID), to, "", payload)
}

// Send sends an envelope and waits for nothing. One that is too large is a Fault
// that says so.
func (c *Client) Send(ctx context.Context, e wire.Envelope) error {
	raw := e.Encode()
	if most := c.opts.MaxEnvelopeBytes; len(raw) > most {
		return core.NewFault(core.CodeTooLarge, "the envelope has %d bytes, the limit is %d", len(raw), most)
	}
	return c.link.Send(ctx, raw, len(raw))
}

// Do sends an envelope and waits for its first answer. An error envelope is
// returned as it is, and as an *[Error].
func (c *Client) Do(ctx context.Context, e wire.Envelope) (wire.Envelope, error) {
	call, err := c.begin(ctx, e, nil)
	if err != nil {
		return wire.Envelope{}, err
	}
	defer c.forget(e.ID)
	return c.wait(ctx, call)
}

// Ask asks a question and waits for the whole answer. each, if not nil, is told
// what happens on the way, from the reader of the connection; it must return soon.
// When ctx ends first, the query is cancelled. A failure is a *[core.Fault].
func (c *Client) Ask(ctx context.Context, req core.Request, each func(core.Body)) (core.Answer, error) {
	return c.run(ctx, wire.KindQuery, req, wire.QueryOf(req, time.Now()), each)
}

// Delegate is Ask for a thing to be done: it waits for the result.
func (c *Client) Delegate(ctx context.Context, req core.Request, each func(core.Body)) (core.Answer, error) {
	return c.run(ctx, wire.KindDelegate, req, wire.DelegateOf(req, time.Now()), each)
}

// Notify tells somebody something. That it was sent is all that is known.
func (c *Client) Notify(ctx context.Context, to core.Address, n core.Notice) error {
	return c.Send(ctx, c.Envelope(wire.KindNotify, to.String(), wire.NotifyOf(n)))
}

// run sends a request and gathers what comes back.
func (c *Client) run(ctx context.Context, kind wire.Kind, req core.Request, payload any, each func(core.Body)) (core.Answer, error) {
	e := c.Envelope(kind, req.To.String(), payload)
	got := &gathered{each: each}
	call, err := c.begin(ctx, e, got.progress)
	if err != nil {
		return core.Answer{}, err
	}
	defer c.forget(e.ID)
	for {
		reply, err := c.wait(ctx, call)
		switch {
		case ctx.Err() != nil:
			c.cancel(e.ID)
			return core.Answer{}, context.Cause(ctx)
		case reply.Kind == "":
			return core.Answer{}, err
		}
		bodies, last := c.bodies(reply)
		got.rest(reply.From, bodies)
		if !last {
			continue
		}
		answer := got.fold()
		if answer.Fault != nil {
			return answer, answer.Fault
		}
		return answer, nil
	}
}

// gathered is what has come back of a request. The reader of the connection and
// the caller both add to it.
type gathered struct {
	each func(core.Body)

	mu     sync.Mutex
	from   string
	events []core.Event
}

func (g *gathered) progress(e wire.Envelope) {
	_, body, err := e.Progress()
	if err != nil {
		return // a kind of progress that this end does not know
	}
	g.add(e.From, body)
	if g.each != nil {
		g.each(body)
	}
}

func (g *gathered) add(from string, bodies ...core.Body) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if from != wire.HubID {
		g.from = from
	}
	for _, b := range bodies {
		g.events = append(g.events, core.Event{Body: b})
	}
}

// rest adds what a reply says and progress has not said already.
func (g *gathered) rest(from string, bodies []core.Body) {
	g.mu.Lock()
	said := func(b core.Body) bool {
		return slices.ContainsFunc(g.events, func(e core.Event) bool {
			if f, ok := b.(core.File); ok {
				return reflect.DeepEqual(e.Body, f)
			}
			return e.Body.Kind() == b.Kind() && !b.Kind().Ends()
		})
	}
	fresh := slices.DeleteFunc(slices.Clone(bodies), said)
	g.mu.Unlock()
	g.add(from, fresh...)
}

func (g *gathered) fold() core.Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	answer := core.Fold(g.events)
	answer.Agent = core.AgentID(g.from)
	return answer
}

// bodies says a reply in the words of the hub, and whether it is the last.
func (c *Client) bodies(e wire.Envelope) (bodies []core.Body, last bool) {
	switch e.Kind {
	case wire.KindResponse, wire.KindResult, wire.KindError, wire.KindAck:
		if bodies, err := e.Bodies(); err == nil {
			return bodies, bodies[len(bodies)-1].Kind().Ends()
		}
	}
	return []core.Body{core.Failed{Fault: core.NewFault(core.CodeInvalid, "an answer of the kind %q makes no sense", e.Kind)}}, true
}

// cancel stops a query that nobody waits for any more.
func (c *Client) cancel(id string) {
	e := c.Envelope(wire.KindCancel, "", wire.Cancel{Reason: "the requester stopped waiting"})
	e.Ref = id
	ctx, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	_ = c.Send(ctx, e) // the hub's own deadline stops it otherwise
}

func (c *Client) begin(ctx context.Context, e wire.Envelope, progress func(wire.Envelope)) (*pending, error) {
	call := &pending{replies: make(chan wire.Envelope, 2), progress: progress}
	c.mu.Lock()
	c.calls[e.ID] = call
	c.mu.Unlock()
	if err := c.Send(ctx, e); err != nil {
		c.forget(e.ID)
		return nil, err
	}
	return call, nil
}

func (c *Client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// wait returns the next reply.
func (c *Client) wait(ctx context.Context, call *pending) (wire.Envelope, error) {
	var e wire.Envelope
	select {
	case e = <-call.replies:
	case <-ctx.Done():
		return e, context.Cause(ctx)
	case <-c.done:
		select {
		case e = <-call.replies:
		default:
			reason := c.link.Reason()
			return e, core.NewFault(core.CodeUnreachable, "the connection ended: %s", reason.Error())
		}
	}
	if e.Kind != wire.KindError {
		return e, nil
	}
	told := &wire.Error{}
	if err := e.Read(told); err != nil {
		return e, err
	}
	return e, told
}

// receive hands an envelope to the call that it answers.
func (c *Client) receive(_ context.Context, raw []byte) error {
	e, err := wire.Decode(raw, len(raw))
	if err != nil {
		return link.Because(link.Protocol, "the hub sent no envelope: %s", err)
	}
	c.mu.Lock()
	call := c.calls[e.Ref]
	c.mu.Unlock()
	switch {
	case call == nil || e.Kind == wire.KindCancel || e.Kind == wire.KindNotify:
		if c.opts.Received != nil {
			c.opts.Received(e)
		}
	case e.Kind == wire.KindProgress:
		if call.progress != nil {
			call.progress(e)
		}
	default:
		select {
		case call.replies <- e:
		default: // more answers than there can be
		}
	}
	return nil
}
