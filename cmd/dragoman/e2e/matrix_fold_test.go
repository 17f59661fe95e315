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
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// toolLife lets the agent use a tool: whoever can show it is told its whole life, in
// order.
func toolLife(t *testing.T, d *duo) string {
	key := d.key()
	x := d.begin(d.inquiry("tool " + key))
	same(t, x.outcome(t), d.answer(fewWords(key)))
	if d.answers == gatewayName {
		return "unsaid"
	}
	return d.sawOf(t, x, "tool", "call list "+toolInput, "pending", "running", "completed", "result "+toolOutput)
}

// tokens lets the agent tell twice what it used: it adds up where one looks.
func tokens(t *testing.T, d *duo) string {
	key := d.key()
	x := d.begin(d.inquiry("usage " + key))
	same(t, x.outcome(t), d.answer(fewWords(key)))
	if d.answers == gatewayName {
		return d.sawOf(t, x, "usage", "1545") // all at the end
	}
	return d.sawOf(t, x, "usage", "1239", "306")
}

// fileSent lets the agent send a file beside its words.
func fileSent(t *testing.T, d *duo) string {
	key := d.key()
	x := d.begin(d.inquiry("file " + key))
	got := x.outcome(t)
	want := d.answer(fewWords(key))
	if d.asks.fileInText != nil {
		want.Text = d.asks.fileInText(want.Text)
	}
	got.Data = nil // where the dialect has files there
	same(t, got, want)
	word := d.sawOf(t, x, "file", fileText)
	if d.asks.fileInText != nil {
		return "folded, text"
	}
	return word
}

// approval lets the agent ask leave for a tool. An agent whose dialect cannot hear
// the answer is told so; of any other it is listed, answered once, and whoever can
// show it is told. Who asked decides where its dialect has a word for that, else
// somebody at the hub does.
func approval(t *testing.T, d *duo) string {
	key := d.key()
	x := d.begin(d.inquiry("leave " + key))
	if d.answers != coven.Name {
		same(t, x.outcome(t), d.answer(noLeave))
		return "refused"
	}
	d.await(t, key+" approval_requested")
	var held task.PendingApproval
	for _, a := range d.service.Hub().Approvals(core.Principal{ID: "chief", Operator: true}) {
		if a.ID == key {
			held = a
		}
	}
	if held.Name != "remove" || held.Agent != d.agent {
		t.Errorf("got %+v listed, want the call %s of %s", held, key, d.agent)
	}
	word, decides := "by people", d.judge(held)
	if x.decide != nil {
		x.awaitSight(t, "approval")
		word, decides = "by itself", x.decide
	}
	if err := decides(t.Context(), true); err != nil {
		t.Fatalf("deciding: got %v, want no error", err)
	}
	if err := d.judge(held)(t.Context(), false); err == nil {
		t.Error("a second decision: got no error, want a conflict")
	}
	same(t, x.outcome(t), d.answer(leaveGiven))
	d.sawOf(t, x, "approval", "asked remove", "approved")
	return word
}

// judge decides on a call as somebody at the hub does, by REST.
func (d *duo) judge(held task.PendingApproval) func(context.Context, bool) error {
	return func(ctx context.Context, approved bool) error {
		var decided core.ApprovalDecided
		return d.operator().Post(ctx, client.TaskPath(held.Task, "decisions"), map[string]any{"id": held.ID, "approved": approved}, &decided)
	}
}

func (d *duo) operator() *client.Client {
	return &client.Client{URL: "http://" + d.service.Addresses().HTTP, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// injection pushes context to the agent in the middle of its answer: by who asked,
// where its dialect has a word for that, else by somebody at the hub. An agent that
// takes none refuses at once, or hears it as its next turn.
func injection(t *testing.T, d *duo) string {
	key := d.key()
	x := d.begin(d.inquiry("listen " + key))
	opened := d.await(t, key+" opened").(core.Event).Body.(core.Opened)
	d.await(t, key+d.underway())
	content := "say " + key
	word := "by people"
	inject := func(ctx context.Context, content string) error {
		told, err := d.operator().Inject(ctx, opened.Task, map[string]any{"content": content, "priority": "immediate"}, watchdog)
		if err == nil && (told.Accepted == nil || !*told.Accepted) {
			t.Errorf("got %+v, want it accepted", told)
		}
		return err
	}
	if x.inject != nil {
		word, inject = "by itself", x.inject
	}
	err := inject(t.Context(), content)
	want := d.answer(firstHalf + secondHalf)
	if d.answers == parallax.Dialect || d.answers == gatewayName {
		d.post(key+" heard", nil)
		d.post(key+" injection_answered", nil)
		if d.asks.injectsLater {
			if err != nil {
				t.Errorf("got %v, want it taken as the next turn", err)
			}
			want.Text += fewWords(key)
			same(t, x.outcome(t), want)
			return "next turn"
		}
		if err == nil {
			t.Error("got no error, want it unsupported")
		}
		same(t, x.outcome(t), want)
		return "unsupported"
	}
	if err != nil {
		t.Errorf("got %v, want it taken", err)
	}
	if got, _ := d.await(t, key+" heard").(string); got != content {
		t.Errorf("the agent heard %q, want %q", got, content)
	}
	same(t, x.outcome(t), want)
	d.sawOf(t, x, "injection", "taken true")
	return word
}

// The words of the scenes above.
const (
	toolInput  = `{"path":"."}`
	toolOutput = "a b"
	fileText   = "a file, für alle"
	noLeave    = "I may not ask"
	leaveGiven = "removed"
)

// playFold plays the scenes of tools, approvals, injection, usage and files.
func (s *stage) playFold(ctx context.Context, what scene, say func(core.Body) error) error {
	several := func(bodies ...core.Body) error {
		for _, b := range bodies {
			if err := say(b); err != nil {
				return err
			}
		}
		return nil
	}
	answer := core.Text{Text: fewWords(what.key)}
	switch what.act {
	case "tool":
		return several(core.ToolCall{ID: what.key, Name: "list", Input: toolInput}, core.ToolState{ID: what.key, State: core.ToolPending},
			core.ToolState{ID: what.key, State: core.ToolRunning}, core.ToolState{ID: what.key, State: core.ToolCompleted},
			core.ToolResult{ID: what.key, Output: toolOutput}, answer)
	case "usage":
		return several(core.Usage{Input: 1200, Output: 34, Thinking: 5}, answer, core.Usage{Input: 300, Output: 6})
	case "file":
		return several(answer, core.File{Name: "note.txt", MediaType: "text/plain", Data: []byte(fileText)})
	case "leave":
		err := several(core.ToolCall{ID: what.key, Name: "remove", Input: "{}"}, core.ApprovalRequested{ID: what.key, Name: "remove", Input: "{}"})
		if err != nil {
			return several(core.ToolResult{ID: what.key, Output: core.AsFault(err).Message, IsError: true}, core.Text{Text: noLeave})
		}
		d, err := covenclient.AwaitApproval(ctx, what.key)
		switch {
		case err != nil:
			return err
		case !d.Approved:
			return core.NewFault(core.CodeNotAuthorized, "the tool was denied")
		}
		return several(core.ToolResult{ID: what.key, Output: "gone"}, core.Text{Text: leaveGiven})
	case "listen":
		if err := several(core.Text{Text: firstHalf}); err != nil {
			return err
		}
		for _, fact := range []string{" heard", " injection_answered"} {
			if _, err := s.wait(ctx, what.key+fact); err != nil {
				return context.Cause(ctx)
			}
		}
		return several(core.Text{Text: secondHalf})
	}
	return core.NewFault(core.CodeInvalid, "no scene is called %q", what.act)
}

// joinListening joins in a dialect and posts what the agent is told while it works,
// where it can be told.
func (s *stage) joinListening(ctx context.Context, dialect string, to client.Hub, card core.Card) error {
	switch dialect {
	case coven.Name:
		return client.JoinCovenWith(ctx, to, card, s.play, covenclient.WithInjections(func(in core.Injected) (bool, string) {
			s.heard(in.Content)
			return true, ""
		}))
	case acp.Dialect:
		return client.JoinACPWith(ctx, to, card, s.play, acpclient.WorkOptions{Notice: s.hearNotice, Link: client.LinkOptions, Log: s.log})
	}
	if dialect == gatewayName {
		return joinGateway(ctx, to, card, s.play)
	}
	return service.Joins()[dialect](ctx, to, card, s.play, func(client.AskFunc) {}, s.log)
}

// heard posts what was injected: the content is a scene, whose key says where.
func (s *stage) heard(content string) { s.post(readScene(content).key+" heard", content) }

// hearNotice takes context as an ACP agent gets it.
func (s *stage) hearNotice(_ string, n core.Notice) {
	var c acpwire.Context
	if n.Topic == acpwire.TopicContext && json.Unmarshal(n.Data, &c) == nil {
		s.heard(c.Content)
	}
}
