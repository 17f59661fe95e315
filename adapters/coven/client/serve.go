package client

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// cancelGrace is how long an agent that was told to cancel may take to report the end.
const cancelGrace = 10 * time.Second

// askUserTool is the tool of the hub with which an agent that has the capability ui asks people.
const (
	askUserTool  = "ask_user"
	uiCapability = "ui"
)

// Serve is [Work] with an [agent.Agent] in place of a handler: it gives work each request as a
// Turn. An agent takes injections if its card says so and it does one request at a time: the hub
// does not say for which request one is. Fields of foreign dialects are dropped:
// Coven has no place for them.
func Serve(
	ctx context.Context, conn link.Conn[*pb.ServerMessage, *pb.AgentMessage], card core.Card,
	work func(context.Context, agent.Turn) error, joined func(*pb.Welcome),
) error {
	if !slices.Contains(card.Capabilities, uiCapability) {
		card.Capabilities = append(slices.Clone(card.Capabilities), uiCapability)
	}
	h := &host{work: work}
	opts := WorkOptions{Joined: joined, Decided: h.decided}
	if card.Features.Has(core.FeatureInjection) && card.MaxConcurrent <= 1 {
		opts.Injected = h.injected
	}
	return Work(ctx, conn, card, h.handle, opts)
}

// host gives requests to an agent.
type host struct {
	work func(context.Context, agent.Turn) error

	mu    sync.Mutex
	turns []*turn // those that run, oldest first
}

// handle is the [core.Handler] of the agent.
func (h *host) handle(ctx context.Context, r core.Request, _ func(core.Body) error) error {
	j, err := jobOf(ctx)
	if err != nil {
		return err
	}
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	t := &turn{job: j, request: r, ctx: base, mail: agent.NewMailbox(), host: h, approvals: map[string]string{}}
	stop := context.AfterFunc(ctx, func() {
		why := cancelled(ctx)
		if why == nil { // the connection is lost
			cancel(context.Cause(ctx))
			return
		}
		t.mail.Put(core.CancelRequested{By: "hub", Reason: why.Message})
		timer := time.AfterFunc(cancelGrace, func() { cancel(why) })
		context.AfterFunc(base, func() { timer.Stop() })
	})
	defer stop()
	h.mu.Lock()
	h.turns = append(h.turns, t)
	h.mu.Unlock()
	err = h.work(base, t)
	h.mu.Lock()
	h.turns = slices.DeleteFunc(h.turns, func(other *turn) bool { return other == t })
	h.mu.Unlock()
	return err
}

// decided passes a decision on to the turns that asked for it.
func (h *host) decided(d core.ApprovalDecided) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.turns {
		if id, ok := t.approvals[d.ID]; ok {
			d.ID = id
			t.mail.Put(d)
			return
		}
	}
}

// request notes that a turn asks for an approval, and returns the id under which: that of the tool
// call, unless another request asks under it. The hub answers with the id alone.
func (h *host) request(t *turn, id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	unique := id
	for _, other := range h.turns {
		if _, taken := other.approvals[id]; taken && other != t {
			unique = id + "~" + t.job.id()
		}
	}
	t.approvals[unique] = id
	return unique
}

// injected returns what passes context on to the turn that runs, or why none takes it.
func (h *host) injected(in core.Injected) (pass func(), reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.turns) == 0 {
		return nil, "the agent works on nothing"
	}
	t := h.turns[0]
	return func() { t.mail.Put(in) }, ""
}

// turn is a request at an agent.
type turn struct {
	job     *job
	request core.Request
	ctx     context.Context //nolint:containedctx // of the request, beyond a cancel

	mail *agent.Mailbox
	host *host

	// approvals has the ids that the agent gave to what it asked for, by those that the hub
	// knows. host.mu guards it.
	approvals map[string]string
}

var _ agent.Turn = (*turn)(nil)

// Task implements [agent.Turn]: it is the id of the request.
func (t *turn) Task() core.TaskID { return core.TaskID(t.job.id()) }

// Request implements [agent.Turn].
func (t *turn) Request() core.Request { return t.request }

// From implements [agent.Turn]. It is authenticated only if the hub says so: other gateways do not
// tell.
func (t *turn) From() core.Principal {
	return core.Principal{ID: t.job.message.GetSender(), Authenticated: wire.IsProven(t.job.message)}
}

// Hops implements [agent.Turn]: the hub does not say how many tasks stand above.
func (t *turn) Hops() int { return 0 }

// Trace implements [agent.Turn]. Other gateways do not say in which trace a request is.
func (t *turn) Trace() core.Trace { return wire.TraceOf(t.job.message).Carried() }

// Delivered implements [agent.Turn]. The hub knows it already: its own transport took the
// request.
func (t *turn) Delivered() {}

// Report implements [agent.Turn].
func (t *turn) Report(b core.Body, _ *core.Foreign) error {
	switch asked := b.(type) {
	case core.ApprovalRequested:
		asked.ID = t.host.request(t, asked.ID)
		b = asked
	case core.InjectionAnswered:
		return nil // it was answered when it came
	}
	return t.job.worker.report(t.ctx, t.job, b)
}

// Next implements [agent.Turn].
func (t *turn) Next(ctx context.Context) (core.Body, error) { return t.mail.Take(ctx, t.ctx) }

// Ask implements [agent.Turn] with the tool of the hub for it.
func (t *turn) Ask(ctx context.Context, q question.Question) (question.Outcome, error) {
	input := struct {
		Question    string            `json:"question"`
		Options     []question.Option `json:"options,omitempty"`
		MultiSelect bool              `json:"multi_select,omitempty"`
		Header      string            `json:"header,omitempty"`
		Timeout     int               `json:"timeout_seconds,omitempty"`
	}{Question: q.Text, Options: q.Options, MultiSelect: q.Several, Header: q.Header}
	if !q.Until.IsZero() {
		const most = 300
		input.Timeout = max(1, min(most, int(time.Until(q.Until)/time.Second)))
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return question.Outcome{}, err
	}
	out, err := t.CallTool(ctx, askUserTool, raw)
	if err != nil {
		return question.Outcome{}, err
	}
	var o question.Outcome
	err = strictjson.Decode(out, strictjson.Limits{}, &o)
	return o, err
}

// CallTool implements [agent.Turn].
func (t *turn) CallTool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	return CallTool(context.WithValue(ctx, jobKey{}, t.job), name, input)
}
