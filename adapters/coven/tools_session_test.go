package coven_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// result waits for the next message, which must be a PackToolResult.
func (a *agent) result() *pb.PackToolResult {
	a.t.Helper()
	m := a.receive()
	if m.GetPackToolResult() == nil {
		a.t.Fatalf("got %v, want a PackToolResult", m)
	}
	return m.GetPackToolResult()
}

func TestAnAgentAsksAnotherWithTheToolsOfTheHub(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		b, _ := join(t, h, coven.Options{}, "b")
		a.call("c1", "agent_ask", `{"to":"b","content":"what time is it?","data":{"zone":"CET"}}`)
		p := b.prompt()
		if p.GetSender() != "a" || !strings.HasPrefix(p.GetContent(), "what time is it?") || !strings.Contains(p.GetContent(), `{"zone":"CET"}`) {
			t.Errorf("got %v, want it from a, with its content and its data", p)
		}
		b.text(p.GetRequestId(), "noon")
		b.done(p.GetRequestId(), "")
		r := a.result()
		var out struct {
			Text    string `json:"text"`
			AgentID string `json:"agent_id"`
		}
		if err := json.Unmarshal([]byte(r.GetOutputJson()), &out); err != nil || r.GetRequestId() != "c1" || out.Text != "noon" || out.AgentID != "b" {
			t.Errorf("got %v, want the answer of b to call c1", r)
		}
		a.hangUp()
		b.hangUp()
	})
}

func TestWhileAToolRunsTheAgentsOtherMessagesAreRead(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		b, _ := join(t, h, coven.Options{}, "b")
		q := ask(t, h)
		task := q.question("a", "x")
		id := a.prompt().GetRequestId()
		a.call("slow", "agent_ask", `{"to":"b","content":"take your time"}`)
		slow := b.prompt().GetRequestId()
		a.call("quick", "agents_list", "")
		if r := a.result(); r.GetRequestId() != "quick" || r.GetOutputJson() == "" {
			t.Errorf("got %v, want the list of agents while the other tool runs", r)
		}
		a.text(id, "meanwhile")
		q.until(task, core.KindText)
		b.done(slow, "done")
		if r := a.result(); r.GetRequestId() != "slow" {
			t.Errorf("got %v, want the result of the slow one", r)
		}
		a.done(id, "")
		q.until(task, core.KindDone)
		a.hangUp()
		b.hangUp()
	})
}

func TestAnInvalidCallIsAnsweredWithTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		id, tool, input string
		want            string // the beginning of the error
	}{
		"unknown tool":    {"c", "send_rocket", "{}", "tool not found"},
		"no request id":   {"", "agents_list", "{}", "request_id is required"},
		"no JSON":         {"c", "agents_list", "{", "invalid input: "},
		"duplicate key":   {"c", "agents_list", `{"domain":"a","domain":"b"}`, "invalid input: "},
		"too deep":        {"c", "agents_list", strings.Repeat("[", 100) + strings.Repeat("]", 100), "invalid input: "},
		"unknown member":  {"c", "agents_list", `{"color":"red"}`, "invalid: "},
		"unknown agent":   {"c", "agent_ask", `{"to":"nobody","content":"x"}`, "unknown_agent: "},
		"itself":          {"c", "agent_ask", `{"to":"a","content":"x"}`, "loop: "},
		"another agent's": {"c", "agent_cancel", `{"task_id":"0190b5c0-0000-7000-8000-000000000000"}`, "unknown_task: "},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
				a, _ := join(t, h, coven.Options{}, "a")
				a.call(c.id, c.tool, c.input)
				if r := a.result(); r.GetRequestId() != c.id || !strings.HasPrefix(r.GetError(), c.want) {
					t.Errorf("got %v, want an error %q to call %q", r, c.want, c.id)
				}
				a.call("again", "agents_list", "{}")
				if r := a.result(); r.GetOutputJson() == "" {
					t.Errorf("the next call: got %v, want its output", r)
				}
				a.hangUp()
			})
		})
	}
}

func TestARequestIDInUseIsRefusedAndFreeAgainOnceAnswered(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		b, _ := join(t, h, coven.Options{}, "b")
		a.call("c", "agent_ask", `{"to":"b","content":"x"}`)
		p := b.prompt()
		a.call("c", "agents_list", "{}")
		if r := a.result(); r.GetError() != "duplicate request ID" {
			t.Errorf("got %v, want the error %q", r, "duplicate request ID")
		}
		b.fail(p.GetRequestId(), "broken")
		if r := a.result(); r.GetError() != "internal: broken" {
			t.Errorf("got %v, want the error of b", r)
		}
		a.call("c", "agents_list", "{}")
		if r := a.result(); r.GetOutputJson() == "" {
			t.Errorf("got %v, want the list", r)
		}
		a.hangUp()
		b.hangUp()
	})
}

func TestTheRunningToolsOfAnAgentAreLimited(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{MaxToolCalls: 2}, "a")
		b, _ := join(t, h, coven.Options{DefaultMaxConcurrent: 8}, "b")
		for _, id := range []string{"1", "2", "3"} {
			a.call(id, "agent_ask", `{"to":"b","content":"x"}`)
		}
		if r := a.result(); r.GetRequestId() != "3" || !strings.HasPrefix(r.GetError(), "overloaded: ") {
			t.Errorf("got %v, want the third refused as overloaded", r)
		}
		for range 2 {
			b.done(b.prompt().GetRequestId(), "")
			a.result()
		}
		a.hangUp()
		b.hangUp()
	})
}

func TestAResultThatIsTooLargeBecomesAnError(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{MaxMessageBytes: 8 << 10}, "a")
		b, _ := join(t, h, coven.Options{}, "b")
		a.call("c", "agent_ask", `{"to":"b","content":"x"}`)
		b.done(b.prompt().GetRequestId(), strings.Repeat("x", 8<<10))
		if r := a.result(); !strings.HasPrefix(r.GetError(), "too_large: ") || !strings.Contains(r.GetError(), "8192") {
			t.Errorf("got %v, want too_large with the limit", r)
		}
		a.hangUp()
		b.hangUp()
	})
}

func TestALostConnectionCancelsWhatItsToolsAsked(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		b, _ := join(t, h, coven.Options{}, "b", "cancellation")
		a.call("c", "agent_ask", `{"to":"b","content":"x"}`)
		p := b.prompt()
		a.hangUp()
		if got := b.receive().GetCancelRequest(); got.GetRequestId() != p.GetRequestId() {
			t.Errorf("got %v, want the task of the agent that left cancelled", got)
		}
		b.respond(&pb.MessageResponse{RequestId: p.GetRequestId(), Event: &pb.MessageResponse_Cancelled{Cancelled: &pb.Cancelled{}}})
		synctest.Wait()
		b.hangUp()
	})
}

func TestTheErrorOfAToolIncludesTheOutputBeforeTheFailure(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{MaxMessageBytes: 8 << 10}, "a")
		b, _ := join(t, h, coven.Options{}, "b")
		a.call("c", "agent_ask", `{"to":"b","content":"x"}`)
		p := b.prompt()
		b.text(p.GetRequestId(), "half")
		b.fail(p.GetRequestId(), "broken")
		want := "internal: broken\n\n" + `{"task_id":"` + p.GetRequestId() + `","state":"failed","text":"half","error":{"code":"internal","message":"broken"}}`
		if got := a.result().GetError(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		a.call("c", "agent_ask", `{"to":"b","content":"x"}`)
		p = b.prompt()
		b.text(p.GetRequestId(), strings.Repeat("x", 8<<10))
		b.fail(p.GetRequestId(), "broken")
		if got := a.result().GetError(); got != "internal: broken" {
			t.Errorf("output too large: got %q, want the error alone", got)
		}
		if got := h.Counters()["coven.refused.too_large"]; got != 1 {
			t.Errorf("counted: got %d, want 1", got)
		}
		a.hangUp()
		b.hangUp()
	})
}

func TestCallToolReturnsTheOutputBeforeTheFailure(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		hire(t, h, core.Card{ID: "b"}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			if r.Content == "speak" {
				if err := say(core.Text{Text: "half"}); err != nil {
					return err
				}
			}
			return core.NewFault(core.CodeBudget, "spent:\n\n{\"left\":0}")
		})
		outputs := map[string]string{}
		hire(t, h, core.Card{ID: "a"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			for _, content := range []string{"speak", "fail"} {
				output, err := covenclient.CallTool(ctx, "agent_ask", json.RawMessage(`{"to":"b","content":"`+content+`"}`))
				if f := core.AsFault(err); f == nil || f.Code != core.CodeBudget || f.Message != "spent:\n\n{\"left\":0}" {
					t.Errorf("%s: got %v, want the fault of b", content, err)
				}
				outputs[content] = string(output)
			}
			return nil
		})
		q := ask(t, h)
		q.until(q.question("a", "x"), core.KindDone)
		if !strings.Contains(outputs["speak"], `"text":"half"`) || outputs["fail"] != "" {
			t.Errorf("got outputs %v, want that of speak alone", outputs)
		}
	})
}
