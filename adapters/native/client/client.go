package client

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Options are the options of a [Client].
type Options struct {
	// Event is called with every event that belongs to no [Client.Follow] or [Client.Ask],
	// Told with every other frame of the hub that answers nothing: the name of its kind, and its
	// value. The reader of the connection calls them: they must return soon, and must not wait
	// for the client. nil ignores them.
	Event func(wire.Told)
	Told  func(kind string, v strictjson.Value)
	// Link bounds the connection.
	Link link.Options
}

// Client is a peer's end of one connection. It is safe for concurrent use.
type Client struct {
	opts Options
	link *link.Link[[]byte, []byte]
	last atomic.Uint64 // the number of the latest call
	done chan struct{} // closed when no goroutine of the client runs any more

	greeted chan struct{} // closed once hello is there
	hello   wire.Hello

	mu    sync.Mutex
	calls map[string]*call
}

// call is a call that waits for its answer, or whose events are followed.
type call struct {
	answered chan struct{} // closed with result or err
	result   strictjson.Value
	err      error
	each     func(wire.Told) // nil for none
}

// New makes a Client and starts its reader, which ctx ends. Close ends it too.
func New(ctx context.Context, conn link.Conn[[]byte, []byte], opts Options) *Client {
	c := &Client{
		opts: opts, link: link.New(conn, opts.Link), done: make(chan struct{}), greeted: make(chan struct{}), calls: map[string]*call{},
	}
	go func() {
		defer close(c.done)
		c.link.Run(ctx, c.receive, nil)
	}()
	return c
}

// Close ends the connection and returns once no goroutine of the client runs any more.
func (c *Client) Close() {
	c.link.Close(link.Reason{Cause: link.Normal})
	<-c.done
}

// Done is closed once the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Drain waits until the transport has taken all that was sent: see [link.Link.Drain].
func (c *Client) Drain(ctx context.Context) error { return c.link.Drain(ctx) }

// Reason returns why the connection has ended.
func (c *Client) Reason() link.Reason { return c.link.Reason() }

// Hello waits for what the hub says of itself first.
func (c *Client) Hello(ctx context.Context) (wire.Hello, error) {
	select {
	case <-c.greeted:
		return c.hello, nil
	case <-c.done:
		return wire.Hello{}, c.ended()
	case <-ctx.Done():
		return wire.Hello{}, context.Cause(ctx)
	}
}

func (c *Client) ended() error {
	reason := c.link.Reason()
	return core.NewFault(core.CodeUnreachable, "the connection ended: %s", reason.Error()).Because(&reason)
}

// Call gives a command and waits for its result. The error is a *[wire.Refusal] if the hub
// refused it.
func (c *Client) Call(ctx context.Context, command core.Command, with wire.With) (strictjson.Value, error) {
	v, stop, err := c.Follow(ctx, command, with, nil)
	stop()
	return v, err
}

// Follow is Call for a command whose events follow: each gets them from the reader of the
// connection, perhaps before Follow returns, until stop is called. It must return soon.
func (c *Client) Follow(ctx context.Context, command core.Command, with wire.With, each func(wire.Told)) (v strictjson.Value, stop func(), err error) {
	id := c.nextID()
	frame, err := wire.EncodeCall(wire.Call{ID: id, Command: command, With: with})
	if err != nil {
		return v, func() {}, err
	}
	v, err = c.ask(ctx, id, frame, each)
	return v, func() { c.forget(id) }, err
}

// ask sends a frame and waits for the answer to its id. The caller forgets the id.
func (c *Client) ask(ctx context.Context, id string, frame []byte, each func(wire.Told)) (strictjson.Value, error) {
	waits := &call{answered: make(chan struct{}), each: each}
	c.mu.Lock()
	c.calls[id] = waits
	c.mu.Unlock()
	if err := c.link.Send(ctx, frame, len(frame)); err != nil {
		return strictjson.Value{}, err
	}
	select {
	case <-waits.answered:
	case <-ctx.Done():
		return strictjson.Value{}, context.Cause(ctx)
	case <-c.done:
		select {
		case <-waits.answered:
		default:
			return strictjson.Value{}, c.ended()
		}
	}
	return waits.result, waits.err
}

func (c *Client) nextID() string { return strconv.FormatUint(c.last.Add(1), 10) }

func (c *Client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// Tools returns the tools that the client may call. From then on Options.Told gets a frame
// tools whenever they change.
func (c *Client) Tools(ctx context.Context) (tools []wire.Tool, err error) {
	id := c.nextID()
	defer c.forget(id)
	frame, err := wire.Encode("tools", wire.Tools{ID: id})
	if err != nil {
		return nil, err
	}
	v, err := c.ask(ctx, id, frame, nil)
	if err != nil {
		return nil, err
	}
	return tools, v.Get("tools").Decode(&tools)
}

// Report reports an event of a task that the client works on, and waits only for room in the
// connection: a refusal comes to Options.Told. It returns a too_large Fault for what the hub would not read.
func (c *Client) Report(ctx context.Context, id core.TaskID, body core.Body, foreign *core.Foreign) error {
	frame, err := wire.AppendReport(make([]byte, 0, 128), wire.Event{Task: id, Body: body, Foreign: foreign})
	if err != nil {
		return err
	}
	if most := c.maxFrame(); most > 0 && len(frame) > most {
		return core.NewFault(core.CodeTooLarge, "%s makes a frame of %d bytes, the hub accepts %d", body.Kind(), len(frame), most)
	}
	return c.link.Send(ctx, frame, len(frame))
}

// maxFrame returns how many bytes a frame may have; 0 if the hub has not said it.
func (c *Client) maxFrame() int {
	select {
	case <-c.greeted:
		return c.hello.Limits.FrameBytes
	default:
		return 0
	}
}

// ReportConfirmed is Report, and waits until the hub has the event, or refuses it with a
// *[wire.Refusal].
func (c *Client) ReportConfirmed(ctx context.Context, task core.TaskID, body core.Body, foreign *core.Foreign) error {
	id := c.nextID()
	defer c.forget(id)
	frame, err := wire.AppendReport(nil, wire.Event{ID: id, Task: task, Body: body, Foreign: foreign})
	if err != nil {
		return err
	}
	_, err = c.ask(ctx, id, frame, nil)
	return err
}

// Answer answers an execution of a tool of the client's pack: by its output, or a Fault.
func (c *Client) Answer(ctx context.Context, execution string, output json.RawMessage, fault *core.Fault) error {
	return c.Send(ctx, "answer", wire.Answer{Execution: execution, Output: output, Error: fault})
}

// AskPeople puts a question to the people of a task that the client works on, and waits for what
// they say.
func (c *Client) AskPeople(ctx context.Context, task core.TaskID, q question.Question) (question.Outcome, error) {
	return c.askPeople(ctx, ask{ID: c.nextID(), Task: task, Question: q})
}

// AskCaller is AskPeople for the people of whoever called a tool of the client's pack.
func (c *Client) AskCaller(ctx context.Context, execution string, q question.Question) (question.Outcome, error) {
	return c.askPeople(ctx, ask{ID: c.nextID(), Execution: execution, Question: q})
}

// ask is a [wire.Ask] as it is written.
type ask struct {
	ID        string            `json:"id"`
	Task      core.TaskID       `json:"task,omitempty"`
	Execution string            `json:"execution,omitempty"`
	Question  question.Question `json:"question"`
}

func (c *Client) askPeople(ctx context.Context, a ask) (o question.Outcome, err error) {
	defer c.forget(a.ID)
	frame, err := wire.Encode("ask", a)
	if err != nil {
		return o, err
	}
	v, err := c.ask(ctx, a.ID, frame, nil)
	if err != nil {
		return o, err
	}
	return o, v.Get("outcome").Decode(&o)
}

// Send sends a frame that no other method sends, such as load and vitals.
func (c *Client) Send(ctx context.Context, kind string, value any) error {
	frame, err := wire.Encode(kind, value)
	if err != nil {
		return err
	}
	return c.link.Send(ctx, frame, len(frame))
}

// receive handles one frame of the hub.
func (c *Client) receive(_ context.Context, raw []byte) error {
	kind, v, err := wire.DecodeHub(raw)
	if err != nil {
		return link.Because(link.Protocol, "the hub sent no frame: %s", err)
	}
	switch kind {
	case "event":
		t, err := wire.ReadTold(v)
		if err != nil {
			return link.Because(link.Protocol, "the hub sent no event: %s", err)
		}
		c.told(t)
	case "result":
		id, _ := v.Get("id").Text()
		c.answer(id, v, nil)
	case "error":
		r := &wire.Refusal{}
		if err := v.Decode(r); err != nil || r.Fault == nil {
			return link.Because(link.Protocol, "the hub sent no error: %v", err)
		}
		if !c.answer(r.ID, v, r) {
			c.other(kind, v)
		}
		if r.Fatal {
			return &link.Reason{Cause: link.Normal, Text: r.Fault.Message, Err: r}
		}
	case "hello":
		select {
		case <-c.greeted:
		default:
			if err := v.Decode(&c.hello); err != nil {
				return link.Because(link.Protocol, "hello of the hub: %s", err)
			}
			close(c.greeted)
		}
	default:
		c.other(kind, v)
	}
	return nil
}

func (c *Client) other(kind string, v strictjson.Value) {
	if c.opts.Told != nil {
		c.opts.Told(kind, v)
	}
}

// answer settles a call, and reports whether one has waited.
func (c *Client) answer(id string, v strictjson.Value, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits := c.calls[id]
	if waits == nil {
		return false
	}
	select {
	case <-waits.answered:
		return false
	default:
	}
	waits.result, waits.err = v, err
	close(waits.answered)
	return true
}

// told hands an event to the call that asked for it.
func (c *Client) told(t wire.Told) {
	c.mu.Lock()
	waits := c.calls[t.Call]
	c.mu.Unlock()
	switch {
	case waits != nil && waits.each != nil:
		waits.each(t)
	case c.opts.Event != nil:
		c.opts.Event(t)
	}
}
