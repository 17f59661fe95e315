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

// askUserTool is the tool of the hub with which an agent that has the capability ui asks people.
const (
	askUserTool  = "ask_user"
	uiCapability = "ui"
)

// Serve is [Work] with an [agent.Agent] in place of a handler: it gives work each request as a
// Turn. An agent takes injections if its card says so and it does one request at a time: the hub
// does not say for which request one is. Of what the agent's own dialect says beside an event Coven has no
// place for anything but a [core.ForeignFrame].
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

// turn is a request at an agent.
type turn struct {
	*agent.Remote
	job *job
	// approvals has the ids that the agent gave to what it asked for, by those that the hub
	// knows. host.mu guards it.
	approvals map[string]string
}

// handle is the [core.Handler] of the agent. Who asks is authenticated only if the hub says so, and the
// trace is there if it does: other gateways tell neither.
func (h *host) handle(ctx context.Context, r core.Request, _ func(core.Body) error) error {
	j, err := jobOf(ctx)
	if err != nil {
		return err
	}
	t := &turn{job: j, approvals: map[string]string{}}
	callTool := func(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
		return CallTool(context.WithValue(ctx, jobKey{}, j), name, input)
	}
	t.Remote = agent.NewRemote(agent.RemoteTask{
		ID: core.TaskID(j.id()), Request: r, Trace: wire.TraceOf(j.message).Carried(),
		From: core.Principal{ID: j.message.GetSender(), Authenticated: wire.IsProven(j.message)},
		Say:  func(ctx context.Context, b core.Body, foreign *core.Foreign) error { return h.say(ctx, t, b, foreign) },
		Ask: func(ctx context.Context, q question.Question) (question.Outcome, error) {
			return ask(ctx, q, callTool)
		},
		CallTool: callTool,
	})
	h.mu.Lock()
	h.turns = append(h.turns, t)
	h.mu.Unlock()
	err = t.Work(ctx, h.work)
	h.mu.Lock()
	h.turns = slices.DeleteFunc(h.turns, func(other *turn) bool { return other == t })
	h.mu.Unlock()
	return err
}

// say reports an event of a turn.
func (h *host) say(ctx context.Context, t *turn, b core.Body, foreign *core.Foreign) error {
	switch b := b.(type) {
	case core.ApprovalRequested:
		b.ID = h.request(t, b.ID)
		return t.job.worker.report(ctx, t.job, b, nil)
	case core.InjectionAnswered:
		return nil // it was answered when it came
	}
	return t.job.worker.report(ctx, t.job, b, foreign)
}

// decided passes a decision on to the turns that asked for it.
func (h *host) decided(d core.ApprovalDecided) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.turns {
		if id, ok := t.approvals[d.ID]; ok {
			d.ID = id
			t.Tell(d)
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
	return func() { t.Tell(in) }, ""
}

// ask puts a question to people with the tool of the hub for it.
func ask(ctx context.Context, q question.Question, callTool func(context.Context, string, json.RawMessage) (json.RawMessage, error)) (o question.Outcome, err error) {
	input := struct {
		Question    string        `json:"question"`
		Options     []core.Option `json:"options,omitempty"`
		MultiSelect bool          `json:"multi_select,omitempty"`
		Header      string        `json:"header,omitempty"`
		Timeout     int           `json:"timeout_seconds,omitempty"`
	}{Question: q.Text, Options: q.Options, MultiSelect: q.Several, Header: q.Header}
	if !q.Until.IsZero() {
		const most = 300
		input.Timeout = max(1, min(most, int(time.Until(q.Until)/time.Second)))
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return o, err
	}
	out, err := callTool(ctx, askUserTool, raw)
	if err != nil {
		return o, err
	}
	err = strictjson.Decode(out, strictjson.Limits{}, &o)
	return o, err
}
