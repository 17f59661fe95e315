package acp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// ask opens a task as a requester of another dialect.
func (s *setup) ask(p *hub.Session, req core.Request) *task.Task {
	s.Helper()
	task, err := p.Open(req, hub.OpenOptions{})
	if err != nil {
		s.Fatalf("asking: got %v, want no error", err)
	}
	return task
}

// ended returns the answer of a task once it has one.
func (s *setup) ended(asked *task.Task) core.Answer {
	s.Helper()
	s.until(func() bool { return asked.State() == task.Ended }, "the task has ended")
	return asked.Answer()
}

func TestAPeerBecomesAnAgentWithItsCapabilities(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		if _, ok := s.hub.Agent(core.Principal{Operator: true}, "kit"); ok {
			t.Error("before its capabilities: got an agent, want none")
		}
		kit.send(`{"v":1,"id":"c1","from":"kit","kind":"capabilities","ref":null,"payload":{"agent_name":"Family Assistant","domains":["family","calendar"],"channels":["imessage"],"tools":["web_search"],"max_concurrent_tasks":4,"model":"gemini-3-pro","capabilities":["swim"],"extensions":["progress"],"mood":"good"}}`)
		s.until(func() bool { _, ok := s.hub.Agent(core.Principal{Operator: true}, "kit"); return ok }, "kit is an agent")
		got, _ := s.hub.Agent(core.Principal{Operator: true}, "kit")
		want := core.Card{
			ID: "kit", Name: "Family Assistant", Dialect: acp.Dialect, Capabilities: []string{"swim"}, Domains: []string{"family", "calendar"},
			Model: "gemini-3-pro", Tools: []string{"web_search"}, Channels: []string{"imessage"}, MaxConcurrent: 4,
			Features: wire.CardFeatures | wire.ProgressFeatures, Metadata: map[string]json.RawMessage{"mood": json.RawMessage(`"good"`)},
		}
		if diff := cmp.Diff(want, got.Card); diff != "" {
			t.Errorf("card (-want +got):\n%s", diff)
		}
		kit.send(`{"id":"c2","kind":"capabilities","payload":{"domains":["work"]}}`)
		s.until(func() bool {
			a, _ := s.hub.Agent(core.Principal{Operator: true}, "kit")
			return a.MaxConcurrent == 1 && a.Domains[0] == "work"
		}, "the card is replaced")
		kit.send(`{"id":"c2b","kind":"capabilities","payload":{"takes_context":false}}`)
		s.until(func() bool {
			a, _ := s.hub.Agent(core.Principal{Operator: true}, "kit")
			return a.Features == wire.CardFeatures&^core.FeatureInjection && len(a.Metadata) == 0
		}, "it takes no context")
		kit.send(`{"id":"c3","kind":"capabilities","payload":{"max_concurrent_tasks":0}}`)
		s.until(func() bool {
			a, _ := s.hub.Agent(core.Principal{Operator: true}, "kit")
			return a.Load.State == core.LoadDraining
		}, "it takes nothing")
		kit.expectNothing()
	})
}

func TestAPeerWithoutCapabilitiesGetsRequestsByItsID(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		shy, kit := s.peer("shy"), s.peer("kit")
		kit.send(`{"id":"q0","kind":"query","payload":{"question":"anybody?"}}`)
		kit.refused("q0", wire.CodePeerNotFound, "no agent")
		kit.send(`{"id":"q1","kind":"query","to":"shy","payload":{"question":"you?"}}`)
		shy.expect(wire.KindQuery)
		shy.send(`{"id":"r1","kind":"response","ref":"q1","payload":{"data":null,"summary":"me"}}`)
		if got := expect[wire.Response](kit, wire.KindResponse, "q1"); got.Summary != "me" {
			t.Errorf("got %+v, want me", got)
		}
	})
}

func TestARequestOfAnotherDialectReachesAnACPAgentAsAQuery(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		rest := s.plainSession("rest")
		task := s.ask(rest, core.Request{
			To: core.ToAgent("kit"), Content: "when?", Data: json.RawMessage(`{"week":7}`), Context: json.RawMessage(`{"tz":"UTC"}`), Domain: "family",
			MaxTokens: 9, Deadline: time.Now().Add(5 * time.Second), Attachments: []core.File{{Name: "a", MediaType: "text/plain", Data: []byte("hi")}},
			History: []core.Turn{{Role: core.RoleUser, Text: "hello"}, {Role: core.RoleAssistant, Text: "hi", Agent: "kit"}},
		})
		e := kit.expect(wire.KindQuery)
		if e.From != "rest" || e.To != "kit" || e.Ref != "" || e.ID == "" || e.TS == 0 {
			t.Errorf("envelope: got %s, want it from rest to kit", e.Raw)
		}
		want := `{"question":"when?","domain":"family","context":{"tz":"UTC","history":[{"role":"user","text":"hello"},{"role":"assistant","text":"hi","agent":"kit"}],"data":{"week":7},"files":[{"name":"a","media_type":"text/plain","data":"aGk="}]},"max_tokens":9,"deadline_ms":5000}`
		if string(e.Payload) != want {
			t.Errorf("payload: got %s\nwant %s", e.Payload, want)
		}
		synctest.Wait() // the delivery is recorded after the write
		if got := task.Receipt().Stage; got != core.StageDelivered {
			t.Errorf("receipt: got %s, want delivered", got)
		}
		kit.send(`{"id":"r1","from":"kit","to":"rest","kind":"response","ref":"%s","payload":{"data":{"files":[{"name":"b","data":"AP8="}],"day":"Mon"},"summary":"Monday","tokens_used":47,"truncated":true}}`, e.ID)
		a := s.ended(task)
		wanted := core.Answer{
			Text: "Monday", Data: json.RawMessage(`{"day":"Mon"}`), Files: []core.File{{Name: "b", Data: []byte{0, 255}}},
			Usage: core.Usage{Output: 47}, Truncated: true, TokensUsed: 47, End: core.KindDone, Agent: "kit",
		}
		if diff := cmp.Diff(wanted, a, sameMeaning); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		kit.expectNothing()
	})
}

func TestADelegateOfAnotherDialectReachesAnACPAgentAndItsResultComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		say  string
		want core.Answer
	}{
		"completed": {`"result","payload":{"status":"completed","outcome":"sent","data":[1],"error":null}`, core.Answer{Text: "sent", Data: json.RawMessage(`[1]`), End: core.KindDone}},
		"partial":   {`"result","payload":{"status":"partial","outcome":"half"}`, core.Answer{Text: "half", Truncated: true, End: core.KindDone}},
		"failed":    {`"result","payload":{"status":"failed","outcome":"no luck","error":"phone is off"}`, core.Answer{Text: "no luck", End: core.KindFailed, Fault: core.NewFault(core.CodeInternal, "phone is off")}},
		"error":     {`"error","payload":{"code":"unknown_domain","message":"not mine","retryable":false}`, core.Answer{End: core.KindFailed, Fault: core.NewFault(core.CodeUnknownDomain, "not mine")}},
		"cancelled": {`"error","payload":{"code":"cancelled","message":"stopped"}`, core.Answer{End: core.KindCancelled, Fault: core.NewFault(core.CodeCancelled, "stopped")}},
		"refused":   {`"ack","payload":{"accepted":false}`, core.Answer{End: core.KindFailed, Fault: core.NewFault(core.CodeOverloaded, "the agent refused the task")}},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				kit := s.agent("kit", `{}`)
				asked := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("kit"), Intent: core.IntentDelegate, Content: "do", Priority: core.PriorityUrgent})
				e := kit.expect(wire.KindDelegate)
				var d wire.Delegate
				if err := e.Read(&d); err != nil || d.Task != "do" || d.Priority != "urgent" || d.ReportBack != nil && !*d.ReportBack {
					t.Errorf("got %s, want an urgent delegate that wants a report", e.Raw)
				}
				if name != "refused" {
					kit.send(`{"id":"a1","kind":"ack","ref":"%s","payload":{"accepted":true,"estimated_ms":5000}}`, e.ID)
					s.until(func() bool { return asked.Receipt().Stage == core.StageAcknowledged }, "it is acknowledged")
					if asked.State() == task.Ended {
						t.Error("after the ack: got the task ended, want a wait for the result")
					}
				}
				kit.send(`{"id":"r1","ref":"%s","kind":%s}`, e.ID, c.say)
				c.want.Agent = "kit"
				if diff := cmp.Diff(c.want, s.ended(asked), sameMeaning); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
				// A second end is late: it is ignored and not refused.
				kit.send(`{"id":"r2","ref":"%s","kind":"error","payload":{"code":"internal","message":"oops"}}`, e.ID)
				s.counted("acp.late", 1)
				kit.expectNothing()
			})
		})
	}
}

func TestATaskThatAnAgentRefusesGoesToAnother(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		one := s.agent("one", `{"capabilities":["swim"]}`)
		two := s.agent("two", `{"capabilities":["swim"]}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToCapability("swim"), Intent: core.IntentDelegate, Content: "do"})
		e := one.expect(wire.KindDelegate)
		one.send(`{"id":"a1","kind":"ack","ref":"%s","payload":{"accepted":false,"reason":"busy"}}`, e.ID)
		e = two.expect(wire.KindDelegate)
		two.send(`{"id":"r1","kind":"result","ref":"%s","payload":{"status":"completed","outcome":"done"}}`, e.ID)
		if got := s.ended(task); got.Text != "done" || got.Agent != "two" {
			t.Errorf("answer: got %+v, want done by two", got)
		}
	})
}

func TestProgressOfAnAgentIsForwardedImmediately(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{"extensions":["progress"]}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("kit"), Content: "?"})
		id := kit.expect(wire.KindQuery).ID
		for i, p := range []string{
			`"thinking":"hm"`, `"text":"roses "`, `"tool_call":{"id":"t","name":"look","input":{"a": 1}}`, `"tool_state":{"id":"t","state":"completed"}`,
			`"tool_result":{"id":"t","output":"o","is_error":true}`, `"file":{"name":"f","data":"AA=="}`, `"usage":{"input":1,"output":2}`, `"text":"are red"`,
		} {
			kit.send(`{"id":"p%d","kind":"progress","ref":"%s","payload":{"seq":%d,%s}}`, i, id, i+1, p)
		}
		kit.send(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"a poem","tokens_used":3}}`, id)
		s.ended(task)
		var got []core.Body
		for _, e := range task.Events()[2:] {
			if e.Foreign != nil {
				t.Errorf("%s: got foreign %s for a requester of another dialect, want none", e.Body.Kind(), e.Foreign.JSON)
			}
			got = append(got, e.Body)
		}
		want := []core.Body{
			core.Thinking{Text: "hm"}, core.Text{Text: "roses "}, core.ToolCall{ID: "t", Name: "look", Input: `{"a": 1}`}, core.ToolState{ID: "t", State: core.ToolCompleted},
			core.ToolResult{ID: "t", Output: "o", IsError: true}, core.File{Name: "f", Data: []byte{0}}, core.Usage{Input: 1, Output: 2}, core.Text{Text: "are red"},
			core.Done{Text: "a poem", TokensUsed: 3},
		}
		if diff := cmp.Diff(want, got, sameMeaning); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := task.Answer(); got.Text != "roses are red" || got.Usage.Output != 2 {
			t.Errorf("answer: got %+v, want the pieces and the usage once", got)
		}
	})
}

func TestProgressWithoutAKnownMemberIsRefusedAndTheTaskContinues(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{"extensions":["progress"]}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("kit"), Content: "?"})
		id := kit.expect(wire.KindQuery).ID
		kit.send(`{"id":"p1","kind":"progress","ref":"%s","payload":{"seq":1}}`, id)
		kit.refused("p1", wire.CodeInvalidEnvelope, "text")
		kit.send(`{"id":"p2","kind":"progress","ref":"%s","payload":{"seq":2,"approval_requested":{"id":"t","name":"rm"}}}`, id)
		kit.refused("p2", wire.CodeUnsupported, "approval_requested")
		kit.send(`{"id":"p3","kind":"progress","ref":"%s","payload":{"seq":3,"text":7}}`, id)
		kit.refused("p3", wire.CodeInvalidEnvelope, "text")
		kit.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		if got := s.ended(task); got.Text != "ok" {
			t.Errorf("answer: got %+v, want ok", got)
		}
	})
}

func TestOnlyTheAssignedAgentMayAnswer(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, eve := s.agent("kit", `{}`), s.agent("eve", `{}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("kit"), Content: "?"})
		id := kit.expect(wire.KindQuery).ID
		eve.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"evil"}}`, id)
		eve.refused("r1", wire.CodeNotAuthorized, id)
		eve.send(`{"id":"r2","from":"kit","kind":"response","ref":"%s","payload":{"summary":"evil"}}`, id)
		eve.refused("r2", wire.CodeNotAuthorized, "kit")
		s.counted("acp.stray", 1)
		kit.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"good"}}`, id)
		if got := s.ended(task); got.Text != "good" {
			t.Errorf("answer: got %+v, want good", got)
		}
	})
}

func TestACancelReachesAnACPAgentAndItsAckEndsTheTask(t *testing.T) {
	for _, ref := range []string{"the cancel", "the delegate"} {
		t.Run("ref names "+ref, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				kit := s.agent("kit", `{}`)
				rest := s.plainSession("rest")
				task := s.ask(rest, core.Request{To: core.ToAgent("kit"), Intent: core.IntentDelegate, Content: "do"})
				id := kit.expect(wire.KindDelegate).ID
				kit.send(`{"id":"a1","kind":"ack","ref":"%s","payload":{"accepted":true}}`, id)
				if err := rest.Cancel(task.ID(), "Plans changed"); err != nil {
					t.Fatal(err)
				}
				e := kit.expect(wire.KindCancel)
				if e.Ref != id || string(e.Payload) != `{"reason":"Plans changed"}` {
					t.Errorf("got %s, want a cancel of %s with its reason", e.Raw, id)
				}
				of := map[string]string{"the cancel": e.ID, "the delegate": id}[ref]
				kit.send(`{"id":"a2","kind":"ack","ref":"%s","payload":{"accepted":true}}`, of)
				if got := s.ended(task); got.End != core.KindCancelled || got.Fault.Message != "Plans changed" {
					t.Errorf("answer: got %+v, want cancelled with the reason", got)
				}
				s.until(func() bool { a, _ := s.hub.Agent(core.Principal{Operator: true}, "kit"); return a.Load.Active == 0 }, "the agent has room again")
			})
		})
	}
}

func TestALateCancelKeepsTheResult(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		rest := s.plainSession("rest")
		task := s.ask(rest, core.Request{To: core.ToAgent("kit"), Intent: core.IntentDelegate, Content: "do"})
		id := kit.expect(wire.KindDelegate).ID
		if err := rest.Cancel(task.ID(), "no"); err != nil {
			t.Fatal(err)
		}
		cancel := kit.expect(wire.KindCancel)
		kit.send(`{"id":"a2","kind":"ack","ref":"%s","payload":{"accepted":false}}`, cancel.ID)
		kit.send(`{"id":"r2","kind":"result","ref":"%s","payload":{"status":"completed","outcome":"was done"}}`, id)
		if got := s.ended(task); got.Text != "was done" {
			t.Errorf("answer: got %+v, want the result", got)
		}
	})
}

func TestATaskPastItsDeadlineIsCancelledAndItsLateAnswerCounted(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("kit"), Content: "?", Deadline: time.Now().Add(time.Second)})
		id := kit.expect(wire.KindQuery).ID
		if e := kit.expect(wire.KindCancel); e.Ref != id {
			t.Errorf("got %s, want a cancel of %s", e.Raw, id)
		}
		if got := s.ended(task); got.Fault == nil || got.Fault.Code != core.CodeTimeout {
			t.Errorf("answer: got %+v, want timeout", got)
		}
		kit.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"late"}}`, id)
		s.counted("report.late", 1)
		s.until(func() bool { a, _ := s.hub.Agent(core.Principal{Operator: true}, "kit"); return a.Load.Active == 0 }, "the agent has room again")
		kit.expectNothing()
	})
}

func TestContextForATaskReachesAnACPAgentAsANotify(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		rest := s.plainSession("rest")
		task := s.ask(rest, core.Request{To: core.ToAgent("kit"), Content: "?"})
		id := kit.expect(wire.KindQuery).ID
		if err := rest.Inject(hub.NoWait, task.ID(), core.Injected{ID: "i1", Content: "hurry", Priority: core.InjectionImmediate, Source: "user"}); err != nil {
			t.Fatal(err)
		}
		e := kit.expect(wire.KindNotify)
		if want := `{"topic":"dragoman.context","data":{"ref":"` + id + `","id":"i1","content":"hurry","priority":"immediate","source":"rest (user)"},"importance":"high"}`; string(e.Payload) != want {
			t.Errorf("got %s\nwant %s", e.Payload, want)
		}
		s.until(func() bool { return len(task.Events()) == 4 }, "the injection is answered")
		kit.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		s.ended(task)
		want := core.InjectionAnswered{ID: "i1", Accepted: true}
		if got := task.Events()[3].Body; got != core.Body(want) {
			t.Errorf("event: got %+v, want %+v", got, want)
		}
	})
}

func TestANoticeReachesABusyACPAgent(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		rest := s.plainSession("rest")
		task := s.ask(rest, core.Request{To: core.ToAgent("kit"), Content: "?"})
		id := kit.expect(wire.KindQuery).ID
		notice := s.ask(rest, core.Request{To: core.ToAgent("kit"), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "a.b", Data: json.RawMessage(`1`)}})
		e := kit.expect(wire.KindNotify)
		if want := `{"topic":"a.b","data":1,"importance":"low"}`; string(e.Payload) != want || e.From != "rest" {
			t.Errorf("got %s, want %s from rest", e.Raw, want)
		}
		if got := s.ended(notice); got.End != core.KindDone {
			t.Errorf("the notice: got %+v, want done", got)
		}
		kit.send(`{"id":"e1","kind":"error","ref":"%s","payload":{"code":"internal","message":"do not care"}}`, e.ID)
		s.counted("acp.late", 1)
		kit.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		s.ended(task)
	})
}

func TestARequestTooLargeForAnEnvelopeIsRefusedAndTheAgentStays(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		rest := s.plainSession("rest")
		task := s.ask(rest, core.Request{To: core.ToAgent("kit"), Content: strings.Repeat("x", wire.DefaultMaxEnvelopeBytes)})
		if got := s.ended(task); got.Fault == nil || got.Fault.Code != core.CodeTooLarge {
			t.Errorf("answer: got %+v, want too_large", got)
		}
		task = s.ask(rest, core.Request{To: core.ToAgent("kit"), Content: "?"})
		kit.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, kit.expect(wire.KindQuery).ID)
		s.ended(task)
	})
}

func TestFilesOfEarlierTurnsThatDoNotFitAreNamedAndTheTaskGoesOn(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam, rest := s.agent("kit", `{}`), s.agent("fam", `{}`), s.plainSession("rest")
		ask := func(by *peer, content string, files ...core.File) string {
			task := s.ask(rest, core.Request{To: core.ToAgent(core.AgentID(by.name)), Thread: "t", Content: content, Attachments: files})
			e := by.expect(wire.KindQuery)
			by.send(`{"id":"r%s","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, e.ID, e.ID)
			s.ended(task)
			return string(e.Payload)
		}
		large := make([]byte, wire.DefaultMaxEnvelopeBytes*2/5)
		ask(kit, "one", core.File{Name: "one.png", Data: large})
		ask(kit, "two", core.File{Name: "two.png", Data: large})
		got := ask(fam, "go on")
		for _, want := range []string{`"go on\n\n[file \"one.png\"`, `[file \"two.png\"`, `"text":"two"`} {
			if !strings.Contains(got, want) {
				t.Errorf("got %.400s, want %s in it", got, want)
			}
		}
	})
}

func TestAnAgentCutOffMidTaskFailsItAsUnreachable(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		bob := s.peer("bob")
		bob.send(`{"id":"q1","to":"kit","kind":"query","payload":{"question":"?"}}`)
		kit.expect(wire.KindQuery)
		kit.disconnect()
		got := expect[wire.Error](bob, wire.KindError, "q1")
		if got.Code != wire.CodePeerNotFound || !got.Retryable {
			t.Errorf("got %+v, want peer_not_found, retryable", got)
		}
	})
}

func TestTheLoadInAPongOfAnAgentIsUsed(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		for status, want := range map[string]core.LoadState{"overloaded": core.LoadOverloaded, "busy": core.LoadBusy} {
			kit.send(`{"id":"%s","kind":"pong","payload":{"status":"%s"}}`, core.NewID(), status)
			s.until(func() bool { a, _ := s.hub.Agent(core.Principal{Operator: true}, "kit"); return a.Load.State == want }, "the load is "+status)
		}
	})
}

func TestAnAgentThatLeavesStaysDrainingWhateverItsPongSays(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam, kit := s.agent("fam", `{"max_concurrent_tasks":2}`), s.peer("kit")
		for _, id := range []string{"q1", "q2"} {
			kit.send(`{"id":"%s","to":"fam","kind":"query","payload":{"question":"?"}}`, id)
			fam.expect(wire.KindQuery)
		}
		fam.send(`{"id":"c2","kind":"capabilities","payload":{"max_concurrent_tasks":0}}`)
		fam.send(`{"id":"o1","kind":"pong","payload":{"status":"overloaded","uptime_secs":1,"active_tasks":2}}`)
		fam.send(`{"id":"r1","kind":"response","ref":"q1","payload":{"summary":"!"}}`)
		kit.expect(wire.KindResponse)
		load := func() core.LoadState {
			a, _ := s.hub.Agent(core.Principal{Operator: true}, "fam")
			return a.Load.State
		}
		if got := load(); got != core.LoadDraining {
			t.Errorf("got it %s, want it draining until it takes tasks again", got)
		}
		fam.send(`{"id":"c3","kind":"capabilities","payload":{"max_concurrent_tasks":2}}`)
		s.until(func() bool { return load() != core.LoadDraining }, "it takes tasks again")
		kit.send(`{"id":"q3","to":"fam","kind":"query","payload":{"question":"?"}}`)
		if e := fam.expect(wire.KindQuery); e.ID != "q3" {
			t.Errorf("got %s, want the question after it takes tasks again", e.Raw)
		}
	})
}

func TestARequestWithTheRefOfATaskJoinsItsChain(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, bob := s.agent("kit", `{"max_concurrent_tasks":2}`), s.agent("bob", `{}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("kit"), Content: "?"})
		id := kit.expect(wire.KindQuery).ID
		kit.send(`{"id":"q1","to":"bob","kind":"query","ref":"%s","payload":{"question":"help?"}}`, id)
		at := bob.expect(wire.KindQuery).ID
		bob.send(`{"id":"q2","to":"kit","kind":"query","payload":{"question":"and you?"}}`)
		bob.refused("q2", wire.CodeLoop, "kit")
		bob.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"no"}}`, at)
		kit.expect(wire.KindResponse)
		kit.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"no"}}`, id)
		s.ended(task)
	})
}

func TestACharacterInTwoPiecesOfProgressIsOne(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{"extensions":["progress"]}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("kit"), Content: "?"})
		id := kit.expect(wire.KindQuery).ID
		for i, p := range []string{`"text":"a\ud83d"`, `"thinking":"hm"`, `"text":"\ude00b"`, `"text":"\ud83d"`} {
			kit.send(`{"id":"p%d","kind":"progress","ref":"%s","payload":{"seq":%d,%s}}`, i, id, i+1, p)
		}
		kit.send(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"a poem"}}`, id)
		if got := s.ended(task); got.Text != "a😀b�" {
			t.Errorf("got %q, want a😀b�", got.Text)
		}
	})
}
