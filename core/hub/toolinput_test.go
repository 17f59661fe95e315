package hub_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestEveryToolOfTheHubIsDescribed(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		want := []string{"agents_list", "agent_ask", "agent_delegate", "agent_result", "agent_notify", "agent_cancel", "task_readers"}
		tools := g.hub.Tools()
		for i, tool := range tools {
			if i >= len(want) || tool.Name != want[i] {
				t.Fatalf("got the tool %s at index %d, want %v", tool.Name, i+1, want)
			}
			var schema struct {
				Type       string
				Properties map[string]json.RawMessage
				Required   []string
			}
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil || schema.Type != "object" {
				t.Errorf("%s: got the schema %s and %v, want one of an object", tool.Name, tool.InputSchema, err)
			}
			for _, name := range schema.Required {
				if schema.Properties[name] == nil {
					t.Errorf("%s: got %s required and not described, want it described", tool.Name, name)
				}
			}
			if tool.Description == "" || tool.Timeout <= 0 {
				t.Errorf("%s: got %+v, want a description and a timeout", tool.Name, tool)
			}
		}
		if len(tools) != len(want) {
			t.Errorf("got %d tools, want %d", len(tools), len(want))
		}
	})
}

func TestEveryToolRefusesInvalidInput(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able)
		for _, tool := range g.hub.Tools() {
			for _, input := range []string{`{"colour":"red"}`, `[]`, `{"to":1,"task_id":1,"capability":1}`, `{`, `{"to":"x","to":"y"}`} {
				a.CallTool("c1", tool.Name, json.RawMessage(input))
				if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeInvalid || o.Call != "c1" {
					t.Errorf("%s with %s: got %+v, want an invalid fault", tool.Name, input, o)
				}
			}
		}
	})
}

func TestAFailedToolReturnsTheReason(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		foreign := g.ask(asker, "b")
		for name, c := range map[string]struct {
			tool, input string
			want        core.Code
		}{
			"asking an unknown agent":         {"agent_ask", `{"to":"nobody","content":"hello"}`, core.CodeUnknownAgent},
			"asking nothing":                  {"agent_ask", `{"to":"b"}`, core.CodeInvalid},
			"asking without an address":       {"agent_ask", `{"content":"hello"}`, core.CodeInvalid},
			"delegating to no agent":          {"agent_delegate", `{"to":"capability:fly","content":"hello"}`, core.CodeUnknownAgent},
			"the result of nothing":           {"agent_result", `{"task_id":"never"}`, core.CodeUnknownTask},
			"the result of another principal": {"agent_result", `{"task_id":"` + string(foreign.ID()) + `"}`, core.CodeUnknownTask},
			"cancelling a task of another":    {"agent_cancel", `{"task_id":"` + string(foreign.ID()) + `"}`, core.CodeUnknownTask},
			"notifying an agent without them": {"agent_notify", `{"to":"b","topic":"tea"}`, core.CodeUnsupported},
			"telling nothing":                 {"agent_notify", `{"to":"b"}`, core.CodeInvalid},
		} {
			a.CallTool("c1", c.tool, json.RawMessage(c.input))
			if o := g.tool(a); o.Fault == nil || o.Fault.Code != c.want || o.Output != nil {
				t.Errorf("%s: got %+v, want a %s fault", name, o, c.want)
			}
		}
		g.report(b, foreign, core.Done{})
	})
}

func TestTheAskToolReportsFailureDeadlineAndLoss(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		a.CallTool("c1", "agent_ask", []byte(`{"to":"b","content":"hello"}`))
		batch, _ := g.batch(b)
		g.report(b, batch.Task, core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeBudget, "spent")})
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeBudget {
			t.Errorf("a failure: got %+v, want budget", o)
		}
		a.CallTool("c1", "agent_ask", []byte(`{"to":"b","content":"hello","timeout_seconds":1.5}`))
		g.sleep(1500 * time.Millisecond)
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeTimeout {
			t.Errorf("a deadline: got %+v, want timeout", o)
		}
		c := g.agent("c", able)
		a.CallTool("c1", "agent_ask", []byte(`{"to":"c","content":"hello"}`))
		c.Close(nil)
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeUnreachable {
			t.Errorf("a loss: got %+v, want unreachable", o)
		}
	})
}

func TestTheResultToolReturnsAnEndedTaskAtOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		task := call[asked](g, a, "agent_delegate", `{"to":"b","content":"do it","context":{"k":1}}`)
		batch, _ := g.batch(b)
		if got := string(batch.Task.Request().Context); got != `{"k":1}` || batch.Task.Request().Intent != core.IntentDelegate {
			t.Errorf("got the context %s and the intent %s, want those of the delegated task", got, batch.Task.Request().Intent)
		}
		g.report(b, batch.Task, core.Text{Text: "did it"}, core.Done{Data: json.RawMessage(`[1]`)})
		input := `{"task_id":"` + string(task.TaskID) + `"}`
		for _, input := range []string{input, strings.Replace(input, "}", `,"wait_seconds":100}`, 1)} {
			if got := call[asked](g, a, "agent_result", input); got.State != "done" || got.Text != "did it" || string(got.Data) != `[1]` {
				t.Errorf("got %+v, want done, with text and data", got)
			}
		}
		a.CallTool("c1", "agent_cancel", []byte(input))
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeConflict {
			t.Errorf("cancelling an ended task: got %+v, want a conflict", o)
		}
	})
}

func TestATaskThatEndsWithTheWaitIsReportedOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		task := call[asked](g, a, "agent_delegate", `{"to":"b","content":"do it"}`)
		batch, _ := g.batch(b)
		a.CallTool("c1", "agent_result", []byte(`{"task_id":"`+string(task.TaskID)+`","wait_seconds":5}`))
		g.report(b, batch.Task, core.Done{Text: "just in time"}) // ready, and not read yet
		g.sleep(5 * time.Second)
		if got := outputOf[asked](g, g.tool(a)); got.State != "done" || got.Text != "just in time" {
			t.Errorf("got %+v, want done", got)
		}
		if b, ok := g.batch(a); ok {
			t.Errorf("got %+v as well, want one answer", b)
		}
	})
}

// FuzzToolInput checks that every call of a tool is answered exactly once, with JSON or with
// a short fault.
func FuzzToolInput(f *testing.F) {
	for i, inputs := range [][]string{
		{``, `{}`, `{"capability":"acting"}`, `{"domain":"family.calendar"}`, `{"capability":"","domain":"."}`, `{"Capability":"x"}`, `trust`, `[]`},
		{`{"to":"b","content":"hello"}`, `{"to":"b","content":"hello","data":{"n":1e999},"timeout_seconds":0.5}`, `{"to":"b","content":"x","timeout_seconds":1e308}`,
			`{"to":"b","content":"x","timeout_seconds":1e-300}`, `{"to":"a","content":"myself"}`, `{"to":"hub","content":"x"}`, `{"to":"capability:","content":"x"}`, `{"to":"*","content":""}`},
		{`{"to":"b","content":"do it","context":{"k":1}}`, `{"to":"domain:family","content":"do it","context":null}`, `{"to":"b","content":"do it","context":"none"}`},
		{`{"task_id":"TASK"}`, `{"task_id":"TASK","wait_seconds":100}`, `{"task_id":"TASK","wait_seconds":-1}`, `{"task_id":"TASK","wait_seconds":1e308}`, `{"task_id":"never"}`},
		{`{"to":"b","topic":"tea","data":[1]}`, `{"to":"b","topic":" "}`, `{"to":"capability:acting","topic":"tea"}`},
		{`{"task_id":"TASK","reason":"enough"}`, `{"task_id":""}`, `{"task_id":"TASK","reason":null}`, `{"task_id":"TASK","task_id":"TASK"}`},
	} {
		for _, input := range inputs {
			f.Add(uint8(i), []byte(input))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, input []byte) {
		withHub(t, hub.Limits{}, func(g *testHub) {
			a := g.agent("a", able)
			g.agent("b", able|core.FeatureNotices, func(c *core.Card) { c.Capabilities, c.Domains = []string{"acting"}, []string{"family"} })
			tools := g.hub.Tools()
			given := call[asked](g, a, "agent_delegate", `{"to":"b","content":"do it"}`)
			raw := strings.ReplaceAll(string(input), "TASK", string(given.TaskID))
			a.CallTool("c1", tools[int(which)%len(tools)].Name, json.RawMessage(raw))
			g.sleep(10 * 24 * time.Hour) // longer than the timeout of any task
			var outputs []*tool.Result
			for {
				b, ok := g.batch(a)
				if !ok {
					break
				}
				if b.Tool != nil {
					outputs = append(outputs, b.Tool)
				}
			}
			if len(outputs) != 1 || outputs[0].Call != "c1" {
				t.Fatalf("got %d outputs, want one of the call", len(outputs))
			}
			o := outputs[0]
			if (o.Fault == nil) == (o.Output == nil) || o.Fault == nil && !json.Valid(o.Output) {
				t.Errorf("got the output %s and the fault %v, want JSON or a fault", o.Output, o.Fault)
			}
			if o.Fault != nil && (o.Fault.Code == core.CodeInternal || o.Fault.Message == "" || len(o.Fault.Message) > 2000) {
				t.Errorf("got %v, want a short fault that the caller can fix", o.Fault)
			}
			if len(raw) > 0 && strictjson.Check([]byte(raw), strictjson.Limits{}) != nil && (o.Fault == nil || o.Fault.Code != core.CodeInvalid) {
				t.Errorf("got %+v for input that is not JSON, want an invalid fault", o)
			}
		})
	})
}

func TestADecodingErrorShowsAFaultWithoutItsCode(t *testing.T) {
	var v struct {
		To core.Address `json:"to"`
	}
	const want = `to: address "domain:": a part of the domain is empty; write domain:family.calendar`
	if err := strictjson.Decode([]byte(`{"to":"domain:"}`), strictjson.Limits{}, &v); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
