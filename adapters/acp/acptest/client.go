package acptest

import (
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
	// ID identifies the client.
	ID core.AgentID
	// Progress asks for answers in pieces, by the extension.
	Progress bool
}

// Client is the requester's end of the dialect over one connection. It is safe for
// concurrent use.
type Client struct {
	id   core.AgentID
	link *link.Link[[]byte, []byte]
	done chan struct{} // closed when no goroutine of the client runs any more

	mu    sync.Mutex
	calls map[string]*call // by the id of the envelope
}

// New makes a Client and starts its reader. Close ends it.
func New(conn link.Conn[[]byte, []byte], opts Options) *Client {
	c := &Client{id: opts.ID, link: link.New(conn, link.Options{}), done: make(chan struct{}), calls: map[string]*call{}}
	if opts.Progress {
		hello := wire.Hello{ProtocolVersions: []int64{wire.Version}, Features: []string{wire.ExtensionProgress}}
		_ = c.send(context.Background(), wire.New(wire.KindHello, string(c.id), "", "", hello)) // the first message of a new queue has room
	}
	go func() {
		defer close(c.done)
		c.link.Run(context.Background(), c.receive, nil)
	}()
	return c
}

// Close ends the connection and returns once no goroutine of the client runs any more.
func (c *Client) Close() {
	c.link.Close(link.Reason{Cause: link.Normal})
	<-c.done
}

// Ask sends a query, or a delegate if that is the intent of the request, and waits for
// the whole answer. each, if not nil, gets the progress from the reader of the
// connection; it must return soon. When ctx ends first, the request is cancelled. A
// failure is a *[core.Fault].
func (c *Client) Ask(ctx context.Context, req core.Request, each func(core.Body)) (core.Answer, error) {
	e := wire.New(wire.KindQuery, string(c.id), req.To.String(), "", nil)
	if req.Intent == core.IntentDelegate {
		e.Kind, e.Payload = wire.KindDelegate, wire.Marshal(wire.DelegateOf(req, time.Now()))
	} else {
		e.Payload = wire.Marshal(wire.QueryOf(req, time.Now()))
	}
	call := &call{each: each, replies: make(chan wire.Envelope, 2)}
	c.mu.Lock()
	c.calls[e.ID] = call
	c.mu.Unlock()
	defer c.forget(e.ID)
	if err := c.send(ctx, e); err != nil {
		return core.Answer{}, err
	}
	for {
		reply, err := c.wait(ctx, call)
		if ctx.Err() != nil {
			c.cancel(e.ID)
			return core.Answer{}, context.Cause(ctx)
		}
		if err != nil {
			return core.Answer{}, err
		}
		bodies := bodiesOf(reply)
		call.addMissing(reply.From, bodies)
		if !bodies[len(bodies)-1].Kind().Ends() {
			continue
		}
		answer := call.fold()
		if answer.Fault != nil {
			return answer, answer.Fault
		}
		return answer, nil
	}
}

// send sends an envelope, or returns a Fault when it is too large.
func (c *Client) send(ctx context.Context, e wire.Envelope) error {
	raw := e.Encode()
	if len(raw) > wire.DefaultMaxEnvelopeBytes {
		return core.NewFault(core.CodeTooLarge, "the envelope has %d bytes, the limit is %d", len(raw), wire.DefaultMaxEnvelopeBytes)
	}
	return c.link.Send(ctx, raw, len(raw))
}

// cancel stops a request that nobody waits for any more.
func (c *Client) cancel(id string) {
	e := wire.New(wire.KindCancel, string(c.id), "", id, wire.Cancel{Reason: "the requester stopped waiting"})
	ctx, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	_ = c.send(ctx, e) // the hub's own deadline stops it otherwise
}

func (c *Client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// wait returns the next reply.
func (c *Client) wait(ctx context.Context, call *call) (wire.Envelope, error) {
	select {
	case e := <-call.replies:
		return e, nil
	case <-ctx.Done():
		return wire.Envelope{}, context.Cause(ctx)
	case <-c.done:
	}
	select {
	case e := <-call.replies:
		return e, nil
	default:
		reason := c.link.Reason()
		return wire.Envelope{}, core.NewFault(core.CodeUnreachable, "the connection ended: %s", reason.Error())
	}
}

// receive hands an envelope to the call that it answers. Any other is ignored.
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
	case e.Kind == wire.KindProgress:
		call.progress(e)
	default:
		select {
		case call.replies <- e:
		default: // more answers than there can be
		}
	}
	return nil
}

// bodiesOf returns the events that a reply stands for, at least one.
func bodiesOf(e wire.Envelope) []core.Body {
	if bodies, err := e.Bodies(); err == nil {
		return bodies
	}
	return []core.Body{core.Failed{Fault: core.NewFault(core.CodeInvalid, "an answer of the kind %q makes no sense", e.Kind)}}
}

// call is a request that waits for its answer. The reader of the connection and the
// caller both add events to it.
type call struct {
	each    func(core.Body)
	replies chan wire.Envelope // all but progress: at most two

	mu     sync.Mutex
	from   string // the agent that answers
	events []core.Event
}

func (c *call) progress(e wire.Envelope) {
	_, body, err := e.Progress()
	if err != nil {
		return // a kind of progress that the client does not know
	}
	c.add(e.From, body)
	if c.each != nil {
		c.each(body)
	}
}

func (c *call) add(from string, bodies ...core.Body) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from != wire.HubID {
		c.from = from
	}
	for _, b := range bodies {
		c.events = append(c.events, core.Event{Body: b})
	}
}

// addMissing adds the events of a reply that progress did not bring.
func (c *call) addMissing(from string, bodies []core.Body) {
	c.mu.Lock()
	known := func(b core.Body) bool {
		return slices.ContainsFunc(c.events, func(e core.Event) bool {
			if f, ok := b.(core.File); ok {
				return reflect.DeepEqual(e.Body, f)
			}
			return e.Body.Kind() == b.Kind() && !b.Kind().Ends()
		})
	}
	missing := slices.DeleteFunc(slices.Clone(bodies), known)
	c.mu.Unlock()
	c.add(from, missing...)
}

func (c *call) fold() core.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := core.Fold(c.events)
	answer.Agent = core.AgentID(c.from)
	return answer
}
