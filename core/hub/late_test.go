package hub_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestAnOpenToolTimesOutAtTheDeadline(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(time.Minute)})
		g.report(agent, task,
			core.ToolCall{ID: "done", Name: "ls"}, core.ToolResult{ID: "done"},
			core.ToolCall{ID: "failed", Name: "ls"}, core.ToolState{ID: "failed", State: core.ToolFailed},
			core.ToolCall{ID: "runs", Name: "ls"}, core.ToolState{ID: "runs", State: core.ToolRunning},
			core.ToolCall{ID: "twice", Name: "ls"}, core.ToolResult{ID: "twice"}, core.ToolCall{ID: "twice", Name: "ls"},
			core.ApprovalRequested{ID: "held", Name: "rm"})
		before := len(g.events(asker))
		g.sleep(time.Minute)
		events := g.events(asker)
		g.wantKinds("the requester read", events, "tool_state", "tool_state", "tool_state", "cancel_requested", "failed")
		var got []core.ToolState
		for _, e := range events[:3] {
			got = append(got, e.Body.(core.ToolState))
		}
		const why = "the task timed out"
		want := []core.ToolState{
			{ID: "runs", State: core.ToolTimeout, Detail: why}, {ID: "twice", State: core.ToolTimeout, Detail: why},
			{ID: "held", State: core.ToolTimeout, Detail: why},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %d events: want (-), got (+):\n%s", before, diff)
		}
	})
}

func TestALateToolResultIsInjected(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		slow := packTool("weather")
		slow.Timeout = 2 * time.Second
		agent, asker, pack := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("r"), g.pack("sky", slow)
		first := g.ask(asker, "a")
		g.sleep(time.Millisecond) // ids are in the order of time
		second := g.ask(asker, "a")
		g.report(agent, first, core.ToolCall{ID: "c2", Name: "weather"}, core.ToolCall{ID: "c3", Name: "weather"})
		g.report(agent, second, core.ToolCall{ID: "c1", Name: "weather"})
		var late []string
		for _, call := range []string{"c1", "c2", "c3", "c4"} {
			agent.CallTool(call, "weather", nil)
			late = append(late, g.execution(pack).ID)
		}
		g.sleep(2 * time.Second)
		events := second.Events()
		if got, want := events[len(events)-1].Body, (core.ToolState{ID: "c1", State: core.ToolTimeout, Detail: "the hub gave up waiting"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		for {
			if b, ok := g.batch(agent); !ok || b.Tool != nil && b.Tool.Call == "c4" {
				break
			}
		}
		g.events(agent)
		stranger := g.pack("mail", packTool("mail"))
		g.wantFault("answered by another pack", stranger.AnswerTool(late[0], tool.Result{Output: json.RawMessage(`"72F"`)}), core.CodeConflict)
		if got := g.hub.Provider(late[0]); got != pack {
			t.Errorf("got the provider %p, want %p", got, pack)
		}
		g.answer(pack, late[0], `"72F"`)
		b, _ := g.batch(agent)
		if len(b.Events) != 1 || b.Task != second {
			t.Fatalf("got %+v, want one event of the task that shows the call", b)
		}
		in := b.Events[0].Body.(core.Injected)
		if in.ID == "" || in.Source != "pack:sky" || in.Priority != core.InjectionNormal || !strings.Contains(in.Content, "c1 of weather") || !strings.HasSuffix(in.Content, ` - "72F"`) {
			t.Errorf("got %+v, want the result, from pack:sky, with normal priority", in)
		}
		g.wantFault("answered twice", pack.AnswerTool(late[0], tool.Result{Output: json.RawMessage(`1`)}), core.CodeConflict)
		g.report(agent, second, core.InjectionAnswered{ID: in.ID, Accepted: true}, core.Done{})
		if err := pack.AnswerTool(late[1], tool.Result{Fault: core.NewFault(core.CodeInternal, "no sky today")}); err != nil {
			t.Errorf("got %v, want the other task for a failure", err)
		}
		events = first.Events()
		if in, ok := events[len(events)-1].Body.(core.Injected); !ok || !strings.HasSuffix(in.Content, "no sky today") {
			t.Errorf("got %+v, want the failure injected", events[len(events)-1].Body)
		}
		g.wantFault("of a call that neither task shows", pack.AnswerTool(late[3], tool.Result{Output: json.RawMessage(`"for whom?"`)}), core.CodeConflict)
		g.report(agent, first, core.Done{})
		third := g.ask(asker, "a")
		g.wantFault("when it works on something else", pack.AnswerTool(late[2], tool.Result{Output: json.RawMessage(`1`)}), core.CodeConflict)
		g.report(agent, third, core.Done{})
		if n := g.hub.Counters(); n["tool.late.injected"] != 2 {
			t.Errorf("got %v, want two injected", n)
		}
	})
}

func TestALateToolResultIsDroppedIfTheAgentAcceptsNoInjections(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		slow := packTool("weather")
		slow.Timeout = time.Second
		agent, asker, pack := g.agent("a", core.FeatureCancellation), g.connect("r"), g.pack("sky", slow)
		task := g.ask(asker, "a")
		agent.CallTool("c1", "weather", nil)
		e := g.execution(pack)
		g.sleep(time.Second)
		g.wantFault("a late answer", pack.AnswerTool(e.ID, tool.Result{Output: json.RawMessage(`1`)}), core.CodeConflict)
		g.report(agent, task, core.Done{})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "done")
	})
}

// An agent with one task calls a tool without a ToolCall event, as agents do whose calls
// have their own ids. The call can only belong to that task.
func TestALateResultOfACallWithoutEventsGoesToTheOnlyTask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		slow := packTool("weather")
		slow.Timeout = time.Second
		agent, asker, pack := g.agent("a", able), g.connect("r"), g.pack("sky", slow)
		task := g.ask(asker, "a")
		agent.CallTool("c1", "weather", nil)
		e := g.execution(pack)
		g.sleep(time.Second)
		g.answer(pack, e.ID, `"72F"`)
		g.report(agent, task, core.Done{})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "injected", "done")
	})
}
