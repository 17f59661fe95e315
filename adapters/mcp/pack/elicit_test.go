package pack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// person is ada, whose task the agent works on.
type person struct {
	*hub.Session
	g    *testHub
	task *task.Task
}

// person opens a task for the agent, in which it calls the tool c.
func (g *testHub) person(name string) *person {
	g.t.Helper()
	p := &person{Session: g.connect("ada"), g: g}
	to, _ := core.ParseAddress("a")
	var err error
	if p.task, err = p.Open(core.Request{To: to, Content: "go", Thread: "trip"}, hub.OpenOptions{}); err != nil {
		g.t.Fatal(err)
	}
	p.WatchQuestions(question.View{Thread: "trip", Agent: "a", For: core.Principal{ID: "ada"}})
	if err := g.caller.Report(p.task.ID(), core.ToolCall{ID: "c", Name: "p." + name, Input: "{}"}, nil); err != nil {
		g.t.Fatal(err)
	}
	g.caller.CallTool("c", "p."+name, nil)
	return p
}

// asked waits for the next question.
func (p *person) asked() question.Question {
	p.g.t.Helper()
	for {
		b, err := p.Next(p.g.t.Context())
		if err != nil {
			p.g.t.Fatalf("waiting for a question: got %v, want one", err)
		}
		if b.Question != nil && b.Question.Outcome == nil {
			return b.Question.Question
		}
	}
}

func (p *person) reply(q question.Question, r core.Reply) {
	p.g.t.Helper()
	r.Question = q.ID
	if _, err := p.AnswerQuestion(p.g.t.Context(), r); err != nil {
		p.g.t.Errorf("answering %q: got %v, want no error", q.Text, err)
	}
}

// result waits for the result of the call, and ends the task.
func (p *person) result() *tool.Result {
	p.g.t.Helper()
	for {
		b, err := p.g.caller.Next(p.g.t.Context())
		if err != nil {
			p.g.t.Fatalf("waiting for the result: got %v, want one", err)
		}
		if b.Tool != nil {
			if err := p.g.caller.Report(p.task.ID(), core.Done{}, nil); err != nil {
				p.g.t.Error(err)
			}
			return b.Tool
		}
	}
}

func TestAQuestionOfTheServerIsOneToThePeopleOfTheTask(t *testing.T) {
	const erase = `{"properties":{"sure":{"title":"Are you sure","type":"boolean"}},"required":["sure"],"type":"object"}` // sorted by the SDK
	setUp := func(s *sdk.Server) {
		sdk.AddTool(s, &sdk.Tool{Name: "erase"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			answer, asked := r.Params.InputResponses["ok"]
			if !asked {
				return &sdk.CallToolResult{RequestState: `{"opaque":1}`, InputRequests: sdk.InputRequestMap{"ok": &sdk.ElicitParams{
					Mode: "form", Message: "Erase everything?",
					RequestedSchema: json.RawMessage(erase),
				}}}, nil, nil
			}
			if r.Params.RequestState != `{"opaque":1}` {
				t.Errorf("got the state %q, want it as it was sent", r.Params.RequestState)
			}
			b, err := json.Marshal(answer)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}, nil, err
		})
	}
	withPeers(t, setUp, func(g *testHub, p *pack.Pack, _ *sdk.Server) {
		g.run(p)
		for want, reply := range map[string]core.Reply{
			`{\"action\":\"accept\",\"content\":{\"sure\":true}}`:                 {Selected: []string{"Yes"}},
			`{\"action\":\"accept\",\"content\":{\"sure\":false}}`:                {Text: "no"},
			`{\"action\":\"accept\",\"content\":{\"sure\":true,\"why\":[\"1\"]}}`: {Content: json.RawMessage(`{"sure":true,"why":["1"]}`)},
			`{\"action\":\"decline\"}`:                                            {Selected: []string{"Decline to answer"}},
			`{\"action\":\"cancel\"}`:                                             {Dismissed: true},
		} {
			ada := g.person("erase")
			q := ada.asked()
			if q.Text != "p.erase asks: Erase everything?\nAre you sure" || q.Agent != "a" || len(q.Options) != 3 {
				g.t.Errorf("got %+v, want the question of the server", q)
			}
			if f := q.Form; f == nil || f.Name != "ok" && f.Name != "" || // only modern servers name it
				f.Message != "p.erase asks: Erase everything?" || string(f.Schema) != erase || f.Decline != "Decline to answer" {
				g.t.Errorf("got the form %+v, want that of the server", f)
			}
			ada.reply(q, reply)
			if got := ada.result(); !strings.Contains(string(got.Output), want) {
				g.t.Errorf("got %s and %v, want %s", got.Output, got.Fault, want)
			}
		}
	})
}

func TestAnAnswerThatDoesNotFitTheFormIsAskedForAgain(t *testing.T) {
	setUp := func(s *sdk.Server) {
		sdk.AddTool(s, &sdk.Tool{Name: "book"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			answer, asked := r.Params.InputResponses["when"]
			if !asked {
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"when": &sdk.ElicitParams{
					Mode: "form", Message: "When?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"day":{"type":"integer"},"hour":{"type":"integer"}},"required":["day"]}`),
				}}}, nil, nil
			}
			b, err := json.Marshal(answer)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}, nil, err
		})
	}
	withPeers(t, setUp, func(g *testHub, p *pack.Pack, _ *sdk.Server) {
		g.run(p)
		ada := g.person("book")
		ada.reply(ada.asked(), core.Reply{Text: "day: Monday"})
		q := ada.asked()
		for _, text := range []string{q.Text, q.Form.Message} {
			if !strings.HasPrefix(text, "p.book asks: When?") || !strings.Contains(text, "The last answer did not fit: ") || !strings.Contains(text, "day") {
				g.t.Errorf("got %q, want what does not fit", text)
			}
		}
		ada.reply(q, core.Reply{Content: json.RawMessage(`{"day":1}`)})
		if got := ada.result(); !strings.Contains(string(got.Output), `{\"action\":\"accept\",\"content\":{\"day\":1}}`) {
			g.t.Errorf("got %s and %v, want the answer that fits", got.Output, got.Fault)
		}
	})
}

func TestAQuestionThatNobodyCanAnswerIsDeclined(t *testing.T) {
	setUp := func(s *sdk.Server) {
		sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			answer, asked := r.Params.InputResponses["q"]
			if !asked {
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Mode: "url", Message: "Log in", URL: "https://example.com/login", ElicitationID: "1"}}}, nil, nil
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer.(*sdk.ElicitResult).Action}}}, nil, nil
		})
	}
	withPeers(t, setUp, func(g *testHub, p *pack.Pack, _ *sdk.Server) {
		g.run(p)
		g.wantOutput("ask", `{}`, `{"text":"decline"}`) // the caller works on no task
		ada := g.person("ask")
		q := ada.asked()
		if !strings.Contains(q.Text, "https://example.com/login") {
			g.t.Errorf("got %q, want the address", q.Text)
		}
		ada.reply(q, core.Reply{Selected: []string{"Done"}})
		if got := ada.result(); string(got.Output) != `{"text":"accept"}` {
			g.t.Errorf("got %+v, want it accepted", got)
		}
	})
}

// begun calls a tool for ada, and returns the call that the server got.
func (g *testHub) begun(s *script) (*person, message) {
	ada := g.person("x")
	return ada, s.wants("tools/call")
}

func TestALegacyQuestionIsOfTheOnlyCall(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"How many?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":5}}}}}`
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		ada, m := g.begun(s)
		s.write(ask)
		q := ada.asked()
		ada.reply(q, core.Reply{Text: "seven"})
		q = ada.asked()
		if !strings.Contains(q.Text, "did not fit: want a number") {
			t.Errorf("got %q, want it to say what was wrong", q.Text)
		}
		ada.reply(q, core.Reply{Text: "3"})
		if got := s.read(); string(got.ID) != `"q"` || string(got.Result) != `{"action":"accept","content":{"n":3}}` {
			t.Errorf("got %+v, want the answer", got)
		}

		other := g.start("y", `{}`)
		second := s.wants("tools/call")
		s.write(ask)
		if got := s.read(); string(got.Result) != `{"action":"decline"}` {
			t.Errorf("got %s while two calls run, want it declined: nobody knows whose it is", got.Result)
		}
		s.answer(second, `{"content":[]}`)
		<-other

		s.write(ask)
		q = ada.asked()
		s.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`)
		if got := s.read(); string(got.Result) != `{"action":"cancel"}` {
			t.Errorf("got %s after the server withdrew the question, want it cancelled", got.Result)
		}
		s.answer(m, `{"content":[]}`)
		if got := ada.result(); got.Fault != nil {
			t.Errorf("got %v, want a result", got.Fault)
		}
	})
}

func TestAQuestionIsDeclinedBeforeTheCallEnds(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		ada, m := g.begun(s)
		s.write(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Really?","requestedSchema":{"type":"object","properties":{}}}}`)
		ada.asked()
		if got := s.read(); string(got.Result) != `{"action":"decline"}` { // after 299 s without progress
			t.Errorf("got %+v, want it declined", got)
		}
		s.answer(m, `{"content":[]}`)
		if got := ada.result(); got.Fault != nil {
			t.Errorf("got %v, want a result", got.Fault)
		}
	})
}

func TestAQuestionThatCannotBeAskedIsRefusedWithTheReason(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		ada, m := g.begun(s)
		for params, want := range map[string]string{
			`{"mode":"voice","message":"?"}`:                                                                        "mode",
			`{"mode":"url","message":"?","url":"javascript:alert(1)"}`:                                              "url",
			`{"message":"?","requestedSchema":[]}`:                                                                  "requestedSchema",
			`{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`:              "a: the type is",
			`{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{}}}}}`:    "enum or anyOf",
			`{"message":"` + strings.Repeat("x", 17<<10) + `","requestedSchema":{"type":"object","properties":{}}}`: "limit",
		} {
			s.write(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":%s}`, params)
			if got := s.read(); !strings.Contains(string(got.Error), want) || !strings.Contains(string(got.Error), "-32602") {
				t.Errorf("%.80s: got %s, want an error with %q", params, got.Error, want)
			}
		}
		s.answer(m, `{"content":[]}`)
		ada.result()
	})
}

func TestTheEndOfACallEndsItsQuestion(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		ada, m := g.begun(s)
		s.write(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Really?"}}`)
		ada.asked()
		if err := ada.Cancel(ada.task.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for range 2 {
			got := s.read()
			seen[got.Method+string(got.Result)] = true
		}
		if !seen[`{"action":"cancel"}`] || !seen["notifications/cancelled"] {
			t.Errorf("got %v, want the question and the call cancelled", seen)
		}
		s.answer(m, `{"content":[]}`)
		if got := ada.result(); got.Fault == nil || got.Fault.Code != core.CodeCancelled {
			t.Errorf("got %+v, want the call cancelled", got)
		}
	})
}

// A server may ask on the stream that it offers for GET, whether or not its tools ever change.
func TestAQuestionOnTheStreamOfAServerWhoseToolsDoNotChangeIsAsked(t *testing.T) {
	questions, answers := make(chan string, 1), make(chan message, 1)
	e := &endpoint{
		capabilities: `{"tools":{}}`,
		answered:     func(m message) { answers <- m },
		resume: func(w http.ResponseWriter, r *http.Request) {
			write := stream(w)
			write(": begins\n\n")
			select {
			case question := <-questions:
				write("data: %s\n\n", question)
				<-r.Context().Done()
			case <-r.Context().Done():
			}
		},
		answer: func(w http.ResponseWriter, r *http.Request, m message) {
			questions <- `{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`
			select {
			case a := <-answers:
				jsonBody(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}`, m.ID, a.Result))(w, r)
			case <-r.Context().Done():
			}
		},
	}
	g, r := e.serve(t, pack.Options{})
	ada := g.person("x")
	ada.reply(ada.asked(), core.Reply{Text: "Eve"})
	if got := ada.result(); string(got.Output) != `{"data":{"action":"accept","content":{"name":"Eve"}}}` {
		t.Errorf("got %s and %v, want the answer of the person", got.Output, got.Fault)
	}
	r.stop()
	_ = r.wait()
	if n := g.counts.of("no_stream"); n != 0 {
		t.Errorf("got %d complaints about a stream, want none", n)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	lists := 0
	for _, request := range e.requests {
		if request == "POST tools/list" {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("got %d lists of tools that do not change, want 1: %q", lists, e.requests)
	}
}

func TestAServerWithoutAStreamWhoseToolsDoNotChangeIsNotComplainedOf(t *testing.T) {
	refused := make(chan struct{})
	e := &endpoint{capabilities: `{"tools":{}}`, resume: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusMethodNotAllowed)
		close(refused) // a second GET would panic
	}}
	g, r := e.serve(t, pack.Options{})
	<-refused
	r.stop()
	_ = r.wait()
	if n := g.counts.of("no_stream"); n != 0 {
		t.Errorf("got %d complaints, want none", n)
	}
}
