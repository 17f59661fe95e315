package editor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

// asked receives a request of the hub with the method, and returns it and its id.
func (c *client) asked(method string) (message, json.Number) {
	c.Helper()
	m := c.receive()
	if m.text("method") != method {
		c.Fatalf("got %s, want %s", m.raw, method)
	}
	return m, json.Number(fmt.Sprintf("%.0f", m.at("id")))
}

func (c *client) answer(id json.Number, result string) {
	c.Helper()
	c.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// decided returns the decision that the agent coder gets next.
func (s *setup) decided() core.ApprovalDecided {
	s.Helper()
	_, b := s.next(s.coder, core.KindApprovalDecided)
	return b.(core.ApprovalDecided)
}

func TestTheUserOfTheEditorDecides(t *testing.T) {
	for outcome, want := range map[string]core.ApprovalDecided{
		`{"outcome":{"outcome":"selected","optionId":"allow_once"}}`:   {ID: "t1", Approved: true, By: "editor"},
		`{"outcome":{"outcome":"selected","optionId":"allow_always"}}`: {ID: "t1", Approved: true, All: true, By: "editor"},
		`{"outcome":{"outcome":"selected","optionId":"reject_once"}}`:  {ID: "t1", By: "editor"},
		`{"outcome":{"outcome":"selected","optionId":"other"}}`:        {ID: "t1", By: "editor", Reason: "the editor selected an option that was not offered"},
		`{"outcome":{"outcome":"cancelled"}}`:                          {ID: "t1", By: "editor", Reason: "closed without a decision"},
		`{"nonsense":1}`:                                               {ID: "t1", By: "editor", Reason: `the editor answered what is no decision: outcome.outcome: want selected or cancelled, got ""`},
	} {
		withHub(t, func(s *setup) {
			c, session := s.begun(editor.Options{}, none)
			c.prompt(2, session, "run")
			task := s.assigned()
			s.say(task, core.ToolCall{ID: "t1", Name: "rm", Input: `{"path":"/a"}`}, core.ApprovalRequested{ID: "t1", Name: "rm", Input: `{"path":"/a"}`})
			c.receive()
			m, id := c.asked("session/request_permission")
			wantParams := `{"sessionId":"` + session + `","toolCall":{"toolCallId":"t1","title":"rm","rawInput":{"path":"/a"}},"options":[` +
				`{"optionId":"allow_once","name":"Allow","kind":"allow_once"},{"optionId":"allow_always","name":"Allow all in this turn","kind":"allow_always"},` +
				`{"optionId":"reject_once","name":"Reject","kind":"reject_once"}]}`
			if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":%s}`, id, wantParams); m.raw != want {
				t.Errorf("got  %s\nwant %s", m.raw, want)
			}
			c.answer(id, outcome)
			want.InputSHA256 = "b755d9a3d6caddc4f07594cbcbe6b07990d8787d03ff3ebb01c91899f8bddd5f"
			if got := s.decided(); got != want {
				t.Errorf("%s: got %+v, want %+v", outcome, got, want)
			}
			c.answer(id, outcome) // a second answer changes nothing
			s.sayForeign(task, core.ToolResult{ID: "t1"}, `{}`)
			s.say(task, core.Done{})
			c.want(ended(2, "end_turn"))
		})
	}
}

func TestAnAnswerThatCannotBeReadIsNotAnsweredAndLeavesTheDecisionToOthers(t *testing.T) {
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"both"}}`,
		`{"jsonrpc":"2.0","id":%s,"error":"no object"}`,
		`{"jsonrpc":"2.0","id":%s,"result":{"outcome":"` + strings.Repeat("x", 20_000) + `"}}`,
	} {
		withHub(t, func(s *setup) {
			c, session := s.begun(editor.Options{MaxMessageBytes: 10_000}, none)
			c.prompt(2, session, "run")
			task := s.assigned()
			s.say(task, core.ApprovalRequested{ID: "t1", Name: "rm", Input: "{}"})
			_, id := c.asked("session/request_permission")
			c.send(answer, id)
			synctest.Wait()
			if got := s.hub.Counters()["editor.refused.response"]; got != 1 {
				t.Errorf("%.60s: got %d answers counted as refused, want 1", answer, got)
			}
			chief := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "chief", Operator: true}})
			defer chief.Close(nil)
			if err := chief.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t1", Approved: true}); err != nil {
				t.Errorf("%.60s: a decision of somebody else: got %v, want it taken", answer, err)
			}
			s.sayForeign(task, core.ToolResult{ID: "t1"}, `{}`)
			s.say(task, core.Done{})
			c.want(ended(2, "end_turn")) // and nothing before, such as an error with the id of the hub's request
		})
	}
}

func TestTheFirstDecisionCountsAndTheEditorIsTold(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		s.say(task, core.ApprovalRequested{ID: "t1", Name: "rm", Input: "{}"})
		_, id := c.asked("session/request_permission")
		chief := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "chief", Operator: true}})
		defer chief.Close(nil)
		if err := chief.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t1"}); err != nil {
			t.Fatal(err)
		}
		c.want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, id))
		if got := s.decided(); got.Approved || got.By != "chief" {
			t.Errorf("got %+v, want the decision of chief", got)
		}
		c.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,"message":"cancelled"}}`, id)

		// The agent goes on without a decision, or ends.
		s.say(task, core.ApprovalRequested{ID: "t2", Name: "rm", Input: "{}"})
		_, id = c.asked("session/request_permission")
		s.say(task, core.ToolState{ID: "t2", State: core.ToolRunning})
		c.want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, id),
			`{"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"in_progress"}`)
		s.say(task, core.ApprovalRequested{ID: "t3", Name: "rm", Input: "{}"})
		_, id = c.asked("session/request_permission")
		s.say(task, core.Done{})
		c.want(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed","content":[{"type":"content","content":{"type":"text","text":"denied"}}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"failed","content":[{"type":"content","content":{"type":"text","text":"the agent did not tell its result"}}]}`,
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, id),
			`{"sessionUpdate":"tool_call_update","toolCallId":"t3","status":"failed","content":[{"type":"content","content":{"type":"text","text":"the task ended before anybody decided on it"}}]}`,
			ended(2, "end_turn"))
	})
}

func TestUnderRulesAPermissionIsAskedOfWhoMayDecide(t *testing.T) {
	rules := coretest.Rules(t, "ada see,ask,approve", "eve see,ask")
	for who, decides := range map[string]bool{"ada": true, "eve": false} {
		withHubOf(t, hub.Options{Authorizer: rules}, func(s *setup) {
			c, session := s.begun(editor.Options{Principal: core.Principal{ID: who, Authenticated: true}}, none)
			c.prompt(2, session, "run")
			task := s.assigned()
			s.say(task, core.ApprovalRequested{ID: "t1", Name: "rm", Input: "{}"})
			if decides {
				_, id := c.asked("session/request_permission")
				c.answer(id, `{"outcome":{"outcome":"selected","optionId":"allow_once"}}`)
				if got := s.decided(); !got.Approved || got.By != who {
					t.Errorf("got %+v, want it approved by %s", got, who)
				}
			} else if got := c.receive().raw; !strings.Contains(got, "coder waits for somebody to approve rm") {
				t.Errorf("%s: got %s, want her told that somebody else decides", who, got)
			}
			s.sayForeign(task, core.ToolResult{ID: "t1"}, `{}`)
			s.say(task, core.Done{})
			c.want(ended(2, "end_turn"))
		})
	}
}

func TestACancelledTurnIsNoDenial(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		s.say(task, core.ApprovalRequested{ID: "t1", Name: "rm", Input: "{}"})
		_, id := c.asked("session/request_permission")
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
		c.answer(id, `{"outcome":{"outcome":"cancelled"}}`)
		s.next(s.coder, core.KindCancelRequested)
		synctest.Wait()
		for _, e := range task.Events() {
			if d, is := e.Body.(core.ApprovalDecided); is {
				t.Errorf("got %+v, want no decision", d)
			}
		}
		s.say(task, core.Cancelled{})
		c.want(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed","content":[{"type":"content","content":{"type":"text","text":"cancelled"}}]}`, ended(2, "cancelled"))
	})
}

func TestTheOptionsOfAnEditorAgentAreOffered(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		s.sayForeign(task, core.ApprovalRequested{ID: "t1", Name: "Write", Input: "{}"},
			`{"options":[{"optionId":"yes","name":"Go","kind":"allow_once","_meta":{"k":1}},{"optionId":"never","name":"Never","kind":"reject_always"}],"toolCall":{"title":"Write a file","kind":"edit"}}`)
		m, id := c.asked("session/request_permission")
		want := `{"options":[{"optionId":"yes","name":"Go","kind":"allow_once","_meta":{"k":1}},{"optionId":"never","name":"Never","kind":"reject_always"}],` +
			`"toolCall":{"title":"Write a file","kind":"edit","toolCallId":"t1","status":"pending"},"sessionId":"` + session + `"}`
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":%s}`, id, want); m.raw != want {
			t.Errorf("got  %s\nwant %s", m.raw, want)
		}
		c.answer(id, `{"outcome":{"outcome":"selected","optionId":"yes"}}`)
		if got := s.decided(); !got.Approved || got.All || got.Option != "yes" {
			t.Errorf("got %+v, want it approved by the option yes", got)
		}
		s.sayForeign(task, core.ToolResult{ID: "t1"}, `{}`)
		s.say(task, core.Done{})
		c.want(ended(2, "end_turn"))
	})
}

// ask puts a question of the agent coder to people, and returns its answer later.
func (s *setup) ask(input string) <-chan string {
	s.Helper()
	out := make(chan string, 1)
	s.coder.CallTool("q", "ask_user", json.RawMessage(input))
	go func() {
		for {
			b, err := s.coder.Next(context.Background())
			if err != nil {
				return
			}
			if b.Tool != nil {
				out <- string(b.Tool.Output)
				return
			}
		}
	}()
	return out
}

func TestQuestionsAreForms(t *testing.T) {
	const form = `{"elicitation":{"form":{}}}`
	for _, tt := range []struct{ ask, schema, answer, want string }{
		{
			`{"question":"When?"}`, `{"type":"object","properties":{"answer":{"type":"string","minLength":1}},"required":["answer"]}`,
			`{"action":"accept","content":{"answer":"now"}}`, `{"answered":true,"custom_text":"now"}`,
		},
		{
			`{"question":"Which?","header":"Day","options":[{"label":"Mo","description":"Monday"},{"label":"Tu"}]}`,
			`{"type":"object","properties":{"answer":{"type":"string","title":"Day","oneOf":[{"const":"Mo","title":"Mo: Monday"},{"const":"Tu","title":"Tu"}]}},"required":["answer"]}`,
			`{"action":"accept","content":{"answer":"Tu"}}`, `{"answered":true,"selected":["Tu"]}`,
		},
		{
			`{"question":"Which?","multi_select":true,"options":[{"label":"a"},{"label":"b"}]}`,
			`{"type":"object","properties":{"answer":{"type":"array","items":{"anyOf":[{"const":"a","title":"a"},{"const":"b","title":"b"}]},"minItems":1}},"required":["answer"]}`,
			`{"action":"accept","content":{"answer":["b","a"]}}`, `{"answered":true,"selected":["b","a"]}`,
		},
		{
			`{"question":"When?"}`, `{"type":"object","properties":{"answer":{"type":"string","minLength":1}},"required":["answer"]}`,
			`{"action":"decline"}`, `{"answered":false,"reason":"dismissed"}`,
		},
	} {
		withHub(t, func(s *setup) {
			c, session := s.begun(editor.Options{}, form)
			c.prompt(2, session, "run")
			task := s.assigned()
			answer := s.ask(tt.ask)
			m, id := c.asked("elicitation/create")
			schema, _ := json.Marshal(m.at("params", "requestedSchema"))
			var want any
			if err := json.Unmarshal([]byte(tt.schema), &want); err != nil {
				t.Fatal(err)
			}
			if sorted, _ := json.Marshal(want); string(schema) != string(sorted) || m.text("params", "mode") != "form" || m.text("params", "sessionId") != session {
				t.Errorf("got %s, want the schema %s", m.raw, tt.schema)
			}
			c.answer(id, tt.answer)
			if got := <-answer; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			s.say(task, core.Done{})
			c.want(ended(2, "end_turn"))
		})
	}
}

func TestAFormOfAnAgentIsShownAsItIs(t *testing.T) {
	const schema = `{"properties":{"day":{"default":"Mo","type":"string"}},"type":"object"}`
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"day":"Tu","x":1}}`: `{"answered":true,"content":{"day":"Tu","x":1}}`,
		`{"action":"decline"}`:                             `{"answered":true,"selected":["No"]}`,
		`{"action":"cancel"}`:                              `{"answered":false,"reason":"dismissed"}`,
		`{"action":"accept"}`:                              `{"answered":true,"content":{}}`,
		`{"action":"accept","content":[1]}`:                `{"answered":false,"reason":"dismissed"}`,
	} {
		withHub(t, func(s *setup) {
			c, session := s.begun(editor.Options{}, `{"elicitation":{"form":{}}}`)
			c.prompt(2, session, "run")
			task := s.assigned()
			said := make(chan string, 1)
			go func() {
				o, err := s.coder.AskPeople(context.Background(), task.ID(), question.Question{
					Text: "Which day? Answer in words.", Options: []core.Option{{Label: "No"}},
					Form: &question.Form{Message: "Which day?", Schema: json.RawMessage(schema), Decline: "No"},
				})
				out, _ := json.Marshal(o)
				said <- fmt.Sprintf("%s%v", out, err)
			}()
			m, id := c.asked("elicitation/create")
			shown, _ := json.Marshal(m.at("params", "requestedSchema"))
			if string(shown) != schema || m.text("params", "message") != "Which day?" {
				t.Errorf("got %s, want the form of the agent", m.raw)
			}
			c.answer(id, answer)
			if got := <-said; got != want+"<nil>" {
				t.Errorf("%s: got %s, want %s", answer, got, want)
			}
			s.say(task, core.Done{})
			c.want(ended(2, "end_turn"))
		})
	}
}

func TestAQuestionThatSomebodyElseAnswersIsClosed(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, `{"elicitation":{"form":{}}}`)
		c.prompt(2, session, "run")
		task := s.assigned()
		answer := s.ask(`{"question":"When?"}`)
		_, id := c.asked("elicitation/create")
		chief := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "chief", Operator: true}})
		defer chief.Close(nil)
		open := s.hub.Questions(core.Principal{ID: "chief", Operator: true})
		if _, err := chief.AnswerQuestion(t.Context(), core.Reply{Question: open[0].ID, Text: "later"}); err != nil {
			t.Fatal(err)
		}
		c.want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, id))
		<-answer
		s.say(task, core.Done{})
		c.want(ended(2, "end_turn"))
	})
}

func TestAnEditorWithoutFormsIsToldWhereToAnswer(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		answer := s.ask(`{"question":"When?","options":[{"label":"now","description":"at once"}],"timeout_seconds":5}`)
		q := s.hub.Questions(core.Principal{ID: "chief", Operator: true})[0]
		c.want(chunk("agent_message_chunk", "\nWhen?\n- now: at once\n\nThis editor has no forms. Answer in a terminal: dragoman answer "+q.ID+" OPTION\n"))
		time.Sleep(5 * time.Second)
		if got := <-answer; got != `{"answered":false,"reason":"timeout"}` {
			t.Errorf("got %s, want a timeout", got)
		}
		s.say(task, core.Done{})
		c.want(ended(2, "end_turn"))
	})
}

func TestTheNameOfAToolIsVisibleInItsPermission(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		s.say(task, core.ToolCall{ID: "t1", Name: "ls\x1b[2K\u202e", Input: `{}`}, core.ApprovalRequested{ID: "t1", Name: "ls\x1b[2K\u202e", Input: `{}`})
		const want = `"title":"ls\\x1b[2K\\u202e"`
		if m := c.receive(); !strings.Contains(m.raw, want) {
			t.Errorf("the call: got %s, want %s in it", m.raw, want)
		}
		m, id := c.asked("session/request_permission")
		if !strings.Contains(m.raw, want) {
			t.Errorf("the permission: got %s, want %s in it", m.raw, want)
		}
		c.answer(id, `{"outcome":{"outcome":"selected","optionId":"allow_once"}}`)
		s.decided()
	})
}
