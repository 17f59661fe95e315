package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/adapters/native"
	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// toolEvents has the agent use a tool: a dialect that can show it gets every event, in order.
func toolEvents(t *testing.T, d *pair) string {
	key := d.key()
	x := d.begin(d.query("tool " + key))
	wantResult(t, x.wait(t), d.wantAnswer(shortAnswer(key)))
	return d.wantReports(t, x, "tool", "call list "+toolInput, "pending", "running", "completed", "result "+toolOutput)
}

// usageEvents has the agent report usage twice, which some dialects add up.
func usageEvents(t *testing.T, d *pair) string {
	key := d.key()
	x := d.begin(d.query("usage " + key))
	wantResult(t, x.wait(t), d.wantAnswer(shortAnswer(key)))
	return d.wantReports(t, x, "usage", "1239", "306")
}

// fileSent has the agent send a file with its text.
func fileSent(t *testing.T, d *pair) string {
	key := d.key()
	x := d.begin(d.query("file " + key))
	got := x.wait(t)
	want := d.wantAnswer(shortAnswer(key))
	if d.asks.fileInText != nil {
		want.Text = d.asks.fileInText(want.Text)
	}
	got.Data = nil // some dialects put files there
	wantResult(t, got, want)
	label := d.wantReports(t, x, "file", fileText)
	if d.asks.fileInText != nil {
		return "folded, text"
	}
	return label
}

// approval has the agent request an approval. It is refused for an agent whose dialect cannot
// receive the decision. Otherwise it is listed, decided once, and reported to dialects that can
// show it. The requester decides if its dialect can, else an operator.
func approval(t *testing.T, d *pair) string {
	key := d.key()
	x := d.begin(d.query("leave " + key))
	if !d.answers.approvals {
		wantResult(t, x.wait(t), d.wantAnswer(noLeave))
		return "refused"
	}
	d.await(t, key+" approval_requested")
	var held task.PendingApproval
	for _, a := range d.service.Hub().ApprovalsHere(core.Principal{ID: "chief", Operator: true}) {
		if a.ID == key {
			held = a
		}
	}
	if held.Name != "remove" || held.Agent != d.agent {
		t.Errorf("got %+v listed, want the call %s of %s", held, key, d.agent)
	}
	label, decides := "by an operator", d.decideAsOperator(held)
	if x.decide != nil {
		x.waitReport(t, "approval")
		label, decides = "by the requester", x.decide
	}
	if err := decides(t.Context(), true); err != nil {
		t.Fatalf("deciding: got %v, want no error", err)
	}
	d.await(t, key+" approval_decided") // an editor is not told when it has arrived
	if err := d.decideAsOperator(held)(t.Context(), false); err == nil {
		t.Error("a second decision: got no error, want a conflict")
	}
	wantResult(t, x.wait(t), d.wantAnswer(leaveGiven))
	d.wantReports(t, x, "approval", "asked remove", "approved")
	return label
}

// decideAsOperator decides on a call by REST.
func (d *pair) decideAsOperator(held task.PendingApproval) func(context.Context, bool) error {
	return func(ctx context.Context, approved bool) error {
		var decided core.ApprovalDecided
		return d.operator().Post(ctx, client.TaskPath(held.Task, "decisions"), map[string]any{"id": held.ID, "approved": approved}, &decided)
	}
}

func (d *pair) operator() *client.Client {
	return &client.Client{URL: d.url(), HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// injection injects context in the middle of the answer: by the requester if its dialect can, else
// by an operator. An agent that accepts none refuses at once, or gets it as its next turn.
func injection(t *testing.T, d *pair) string {
	key := d.key()
	x := d.begin(d.query("listen " + key))
	opened := d.await(t, key+" opened").(core.Event).Body.(core.Opened)
	d.await(t, key+d.startedSignal())
	content := "say " + key
	label := "by an operator"
	inject := func(ctx context.Context, content string) error {
		received, err := d.operator().Inject(ctx, opened.Task, map[string]any{"content": content, "priority": "immediate"}, watchdog)
		if err == nil && (received.Accepted == nil || !*received.Accepted) {
			t.Errorf("got %+v, want it accepted", received)
		}
		return err
	}
	if x.inject != nil {
		label, inject = "by the requester", x.inject
	}
	err := inject(t.Context(), content)
	want := d.wantAnswer(firstHalf + secondHalf)
	if !d.answers.injects {
		d.signal(key+" injected", nil)
		d.signal(key+" injection_answered", nil)
		if d.asks.injectsLater {
			if err != nil {
				t.Errorf("got %v, want it taken as the next turn", err)
			}
			want.Text += shortAnswer(key)
			wantResult(t, x.wait(t), want)
			return "next turn"
		}
		if err == nil {
			t.Error("got no error, want it unsupported")
		}
		wantResult(t, x.wait(t), want)
		return "unsupported"
	}
	if err != nil {
		t.Errorf("got %v, want it taken", err)
	}
	if got, _ := d.await(t, key+" injected").(string); got != content {
		t.Errorf("the agent got %q, want %q", got, content)
	}
	wantResult(t, x.wait(t), want)
	d.wantReports(t, x, "injection", "taken true")
	return label
}

// The texts of the instructions above.
const (
	toolInput  = `{"path":"."}`
	toolOutput = "a b"
	fileText   = "a file, für alle"
	noLeave    = "I may not ask"
	leaveGiven = "removed"
)

// handleEvents handles the instructions about tools, approvals, injection, usage and files.
func (h *testHub) handleEvents(ctx context.Context, in instruction, say func(core.Body) error) error {
	several := func(bodies ...core.Body) error {
		for _, b := range bodies {
			if err := say(b); err != nil {
				return err
			}
		}
		return nil
	}
	answer := core.Text{Text: shortAnswer(in.key)}
	switch in.verb {
	case "tool":
		return several(core.ToolCall{ID: in.key, Name: "list", Input: toolInput}, core.ToolState{ID: in.key, State: core.ToolPending},
			core.ToolState{ID: in.key, State: core.ToolRunning}, core.ToolState{ID: in.key, State: core.ToolCompleted},
			core.ToolResult{ID: in.key, Output: toolOutput}, answer)
	case "usage":
		return several(core.Usage{Input: 1200, Output: 34, Thinking: 5}, answer, core.Usage{Input: 300, Output: 6})
	case "file":
		return several(answer, core.File{Name: "note.txt", MediaType: "text/plain", Data: []byte(fileText)})
	case "leave":
		err := several(core.ToolCall{ID: in.key, Name: "remove", Input: "{}"}, core.ApprovalRequested{ID: in.key, Name: "remove", Input: "{}"})
		if err != nil {
			return several(core.ToolResult{ID: in.key, Output: core.AsFault(err).Message, IsError: true}, core.Text{Text: noLeave})
		}
		approved, err := h.wait(ctx, in.key+" decided")
		switch {
		case err != nil:
			return context.Cause(ctx)
		case approved != true:
			return core.NewFault(core.CodeNotAuthorized, "the tool was denied")
		}
		return several(core.ToolResult{ID: in.key, Output: "gone"}, core.Text{Text: leaveGiven})
	case "listen":
		if err := several(core.Text{Text: firstHalf}); err != nil {
			return err
		}
		for _, fact := range []string{" injected", " injection_answered"} {
			if _, err := h.wait(ctx, in.key+fact); err != nil {
				return context.Cause(ctx)
			}
		}
		return several(core.Text{Text: secondHalf})
	}
	return core.NewFault(core.CodeInvalid, "unknown instruction %q", in.verb)
}

// join joins in a dialect and signals what is injected, where the dialect supports it.
func (h *testHub) join(ctx context.Context, dialect string, to client.Hub, card core.Card) error {
	switch dialect {
	case coven.Name:
		return client.JoinCovenWith(ctx, to, card, h.handle, covenclient.WorkOptions{
			Injected: func(in core.Injected) (func(), string) { return func() { h.injected(in.Content) }, "" },
			Decided:  func(d core.ApprovalDecided) { h.signal(d.ID+" decided", d.Approved) },
		})
	case native.Dialect:
		return client.JoinNativeWith(ctx, to, card, h.handle, nativeclient.WorkOptions{
			Injected: func(_ core.TaskID, in core.Injected) (bool, string) {
				h.injected(in.Content)
				return true, ""
			},
			Decided: func(_ core.TaskID, d core.ApprovalDecided) { h.signal(d.ID+" decided", d.Approved) },
			Link:    client.LinkOptions, Log: h.log,
		})
	case acp.Dialect:
		return client.JoinACPWith(ctx, to, card, h.handle, acpclient.WorkOptions{Notice: h.noticed, Link: client.LinkOptions, Log: h.log})
	}
	if dialect == gatewayName {
		return joinGateway(ctx, to, card, h.handle)
	}
	return service.Joins()[dialect](ctx, to, card, h.handle, func(client.AskFunc) {}, h.log)
}

// injected signals injected context, whose content is an instruction with a key.
func (h *testHub) injected(content string) {
	h.signal(parseInstruction(content).key+" injected", content)
}

// noticed receives context as an ACP agent gets it.
func (h *testHub) noticed(_ string, n core.Notice) {
	var c acpwire.Context
	if n.Topic == acpwire.TopicContext && json.Unmarshal(n.Data, &c) == nil {
		h.injected(c.Content)
	}
}
