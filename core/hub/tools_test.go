package hub_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func call[Out any](g *testHub, s *hub.Session, name, input string) Out {
	g.t.Helper()
	s.CallTool("c1", name, json.RawMessage(input))
	return outputOf[Out](g, g.tool(s))
}

func outputOf[Out any](g *testHub, o *tool.Result) Out {
	g.t.Helper()
	if o.Fault != nil {
		g.t.Fatalf("got the fault %v, want an output", o.Fault)
	}
	if o.Call != "c1" {
		g.t.Fatalf("got the output of call %q, want c1", o.Call)
	}
	var out Out
	if err := json.Unmarshal(o.Output, &out); err != nil {
		g.t.Fatal(err)
	}
	return out
}

type asked struct {
	TaskID  core.TaskID     `json:"task_id"`
	AgentID core.AgentID    `json:"agent_id"`
	Text    string          `json:"text"`
	Data    json.RawMessage `json:"data"`
	State   string          `json:"state"`
	Error   *core.Fault     `json:"error"`
}

func TestTheListToolReturnsConnectedAgents(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able)
		g.agent("b", able, func(c *core.Card) { c.Capabilities, c.Domains = []string{"x"}, []string{"work"} })
		var got struct{ Agents []struct{ ID, State string } }
		for input, want := range map[string]int{`{}`: 2, `{"capability":"x"}`: 1, `{"domain":"work.mail"}`: 1, `{"capability":"y"}`: 0} {
			got = call[struct{ Agents []struct{ ID, State string } }](g, a, "agents_list", input)
			if len(got.Agents) != want {
				t.Errorf("%s: got %v, want %d agents", input, got.Agents, want)
			}
		}
	})
}

func TestTheListToolReturnsAPageAndHowManyMore(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able)
		for i := range 150 {
			g.agent(fmt.Sprintf("n%03d", i), able, func(c *core.Card) { c.Capabilities = []string{"x", strings.Repeat("long", 1<<10)} })
		}
		type page struct {
			Agents []struct{ ID string }
			More   int
			After  string
		}
		for input, want := range map[string]page{
			`{"capability":"x","limit":2}`:                {More: 148, After: "n001"},
			`{"capability":"x","limit":2,"after":"n147"}`: {},
			`{"limit":500}`:                               {More: 88, After: "n061"}, // as many as 256 KiB take
			`{}`:                                          {More: 88, After: "n061"},
		} {
			got := call[page](g, a, "agents_list", input)
			if n := len(got.Agents); got.More != want.More || got.After != want.After || n == 0 || want.After != "" && got.Agents[n-1].ID != want.After {
				t.Errorf("%s: got %d agents, %d more after %q, want %d after %q", input, n, got.More, got.After, want.More, want.After)
			}
		}
		a.CallTool("c1", "agents_list", []byte(`{"limit":0}`))
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeInvalid || !strings.Contains(o.Fault.Message, "1 to 500") {
			t.Errorf("got %+v, want it refused", o)
		}
	})
}

func TestTheAskToolAnswersOnceTheOtherAgentIsDone(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		a.CallTool("c1", "agent_ask", []byte(`{"to":"b","content":"hello"}`))
		if _, ok := g.batch(a); ok {
			t.Fatal("got a batch before the other agent answered, want none")
		}
		batch, _ := g.batch(b)
		g.report(b, batch.Task, core.Text{Text: "HEL"}, core.Text{Text: "LO"}, core.Done{Data: json.RawMessage(`{"n":1}`)})
		got := outputOf[asked](g, g.tool(a))
		if got.Text != "HELLO" || got.AgentID != "b" || string(got.Data) != `{"n":1}` {
			t.Errorf("got %+v, want HELLO and the data from b", got)
		}
	})
}

func TestATaskOfTheAskToolIsShownWhileItRuns(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		asked, err := a.Ask([]byte(`{"to":"b","content":"hello","timeout_seconds":5}`), hub.OpenOptions{})
		if err != nil {
			t.Fatalf("got %v, want a task", err)
		}
		if r := asked.Request(); r.Content != "hello" || time.Until(r.Deadline) > 5*time.Second {
			t.Errorf("got %+v, want hello within 5 s", r)
		}
		g.report(b, asked, core.Text{Text: "hi"}, core.Done{})
		if events := g.events(a); text(events) != "hi" {
			t.Errorf("got %v, want the events of the task with the answer", kinds(events))
		}
		for input, want := range map[string]core.Code{`{"to":"b"}`: core.CodeInvalid, `{"to":"c","content":"x"}`: core.CodeUnknownAgent, `{"content":1}`: core.CodeInvalid} {
			if _, err := a.Ask([]byte(input), hub.OpenOptions{}); core.AsFault(err) == nil || core.AsFault(err).Code != want {
				t.Errorf("%s: got %v, want %s", input, err, want)
			}
		}
	})
}

func TestTheResultOfADelegatedTaskIsReadLater(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		task := call[asked](g, a, "agent_delegate", `{"to":"b","content":"do it"}`)
		input := `{"task_id":"` + string(task.TaskID) + `"}`
		if got := call[asked](g, a, "agent_result", input); got.State != "running" {
			t.Errorf("got the state %q, want running", got.State)
		}
		a.CallTool("c1", "agent_result", []byte(strings.Replace(input, "}", `,"wait_seconds":5}`, 1)))
		g.sleep(5 * time.Second)
		if got := outputOf[asked](g, g.tool(a)); got.State != "running" {
			t.Errorf("after the wait: got the state %q, want running", got.State)
		}
		a.CallTool("c1", "agent_result", []byte(strings.Replace(input, "}", `,"wait_seconds":50}`, 1)))
		batch, _ := g.batch(b)
		g.report(b, batch.Task, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")})
		if got := outputOf[asked](g, g.tool(a)); got.State != "failed" || got.Error.Message != "broke" {
			t.Errorf("got %+v, want failed, broke", got)
		}
	})
}

func TestTheNotifyAndCancelToolsReturnTheOutcome(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", core.FeatureNotices)
		a.CallTool("c1", "agent_notify", []byte(`{"to":"b","topic":"tea","data":{"ready":true}}`))
		if _, ok := g.batch(a); ok {
			t.Fatal("got a receipt before the transport accepted the notice, want none")
		}
		batch, _ := g.batch(b)
		b.Delivered(batch.Task.ID())
		if got := outputOf[map[string]bool](g, g.tool(a)); !got["delivered"] {
			t.Errorf("got %v, want delivered", got)
		}
		task := call[asked](g, a, "agent_delegate", `{"to":"b","content":"do it"}`)
		if got := call[map[string]bool](g, a, "agent_cancel", `{"task_id":"`+string(task.TaskID)+`"}`); !got["cancelled"] {
			t.Errorf("got %v, want cancelled", got)
		}
	})
}

func TestTheErrorForBadToolInputSuggestsAFix(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able)
		for name, want := range map[string]core.Code{"agent_ask": core.CodeInvalid, "agent_fly": core.CodeUnsupported} {
			a.CallTool("c1", name, []byte(`{"too":"b"}`))
			o := g.tool(a)
			if o.Fault == nil || o.Fault.Code != want {
				t.Errorf("%s: got %+v, want a %s fault", name, o, want)
			}
		}
		a.CallTool("c1", "agent_ask", []byte(`{"too":"b"}`))
		if o := g.tool(a); !strings.Contains(o.Fault.Message, `"to"`) {
			t.Errorf("got %q, want the right name of the field in it", o.Fault.Message)
		}
	})
}
