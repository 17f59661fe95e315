package acp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// plainAgent connects an agent of another dialect, controlled by the test.
func (s *setup) plainAgent(id string, card core.Card) *hub.Session {
	s.Helper()
	p := s.plainSession(id)
	card.ID = core.AgentID(id)
	card.Dialect = "plain"
	if err := p.Join(card, hub.JoinOptions{}); err != nil {
		s.Fatalf("joining %s: got %v, want no error", id, err)
	}
	return p
}

// assigned returns the next task that an agent gets.
func (s *setup) assigned(p *hub.Session) *task.Task {
	s.Helper()
	b := s.nextBatch(p)
	if _, ok := b.Events[0].Body.(core.Assigned); b.Role != task.Agent || !ok {
		s.Fatalf("got %+v, want an assignment", b)
	}
	return b.Task
}

func (s *setup) report(p *hub.Session, task *task.Task, bodies ...core.Body) {
	s.Helper()
	for _, b := range bodies {
		if err := p.Report(task.ID(), b, nil); err != nil {
			s.Fatalf("reporting %s: got %v, want no error", b.Kind(), err)
		}
	}
}

func TestAQueryIsAnsweredByAnAgentOfAnotherDialectInOneResponse(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		agent := s.plainAgent("shout", core.Card{Name: "Shout"})
		kit := s.peer("kit")
		kit.send(`{"v":1,"id":"q1","from":"kit","to":"shout","ts":1771108000000,"kind":"query","ref":null,"payload":{"question":"hello","domain":"d","max_tokens":7,"deadline_ms":5000,"context":{"why":"test","data":[1],"files":[{"name":"a.txt","data":"aGk="}]}}}`)
		task := s.assigned(agent)
		got := task.Request()
		got.Foreign, got.Thread = nil, ""
		want := core.Request{
			Intent: core.IntentAsk, To: core.ToAgent("shout"), Content: "hello", Domain: "d", MaxTokens: 7, Priority: core.PriorityNormal,
			Data: json.RawMessage(`[1]`), Context: json.RawMessage(`{"why":"test"}`), Attachments: []core.File{{Name: "a.txt", Data: []byte("hi")}},
			Deadline: time.Now().Add(5 * time.Second), ReportBack: true,
		}
		if diff := cmp.Diff(want, got, sameMeaning); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		if p := task.From(); p.ID != "kit" || p.Dialect != acp.Dialect {
			t.Errorf("from: got %+v, want kit of acp", p)
		}
		s.report(agent, task,
			core.Thinking{Text: "hm"}, core.Text{Text: "HEL"}, core.Text{Text: "LO"}, core.File{Name: "b.bin", Data: []byte{0, 255}},
			core.Usage{Input: 3, Output: 4}, core.Done{Data: json.RawMessage(`{"n":1}`), Truncated: true})
		e := kit.expect(wire.KindResponse)
		if e.From != "shout" || e.To != "kit" || e.Ref != "q1" {
			t.Errorf("envelope: got %s, want it from shout to kit with ref q1", e.Raw)
		}
		if want := `{"data":{"n":1,"files":[{"name":"b.bin","data":"AP8="}]},"summary":"HELLO","tokens_used":7,"truncated":true}`; string(e.Payload) != want {
			t.Errorf("payload: got %s, want %s", e.Payload, want)
		}
		kit.expectNothing()
	})
}

func TestAQueryWithoutAddressIsRoutedByItsDomainOrToAnyFreeAgent(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		calendar := s.plainAgent("calendar", core.Card{Domains: []string{"family"}})
		kit := s.peer("kit")
		kit.send(`{"id":"q1","kind":"query","payload":{"question":"when?","domain":"family.calendar"}}`)
		s.report(calendar, s.assigned(calendar), core.Done{Text: "Monday"})
		if got := expect[wire.Response](kit, wire.KindResponse, "q1"); got.Summary != "Monday" {
			t.Errorf("by domain: got %+v, want Monday", got)
		}
		s.nextBatch(calendar)
		kit.send(`{"id":"q2","kind":"query","payload":{"question":"who?"}}`)
		s.report(calendar, s.assigned(calendar), core.Done{Text: "I"})
		if got := expect[wire.Response](kit, wire.KindResponse, "q2"); got.Summary != "I" {
			t.Errorf("without a domain: got %+v, want I", got)
		}
		kit.send(`{"id":"q3","kind":"query","payload":{"question":"when?","domain":"work"}}`)
		kit.refused("q3", wire.CodeUnknownDomain, "work")
		kit.send(`{"id":"q4","kind":"query","to":"family.calendar.agent","payload":{"question":"when?"}}`)
		kit.refused("q4", wire.CodePeerNotFound, "family.calendar.agent")
		kit.send(`{"id":"q5","kind":"query","to":"capability:","payload":{"question":"when?"}}`)
		kit.refused("q5", wire.CodeInvalidEnvelope, "capability:a")
		kit.send(`{"id":"q6","kind":"query","to":"hub","payload":{"question":"when?"}}`)
		kit.refused("q6", wire.CodeUnsupported, "hub")
		kit.send(`{"id":"q7","kind":"query","to":"kit","payload":{"question":"when?"}}`)
		kit.refused("q7", wire.CodeLoop, "kit")
	})
}

func TestADomainWithAnIDIsOnlyAHint(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		calendar, shop := s.plainAgent("calendar", core.Card{Domains: []string{"family"}}), s.plainAgent("shop", core.Card{Domains: []string{"groceries"}})
		kit := s.peer("kit")
		for i, domain := range []string{"family.calendar", "nobody.serves.this"} {
			for j, kind := range []string{`"query","payload":{"question"`, `"delegate","payload":{"report_back":false,"task"`} {
				kit.send(`{"id":"%d%d","to":"shop","kind":%s:"when?","domain":"%s"}}`, i, j, kind, domain)
				if kind[1] == 'd' {
					kit.expect(wire.KindAck)
				}
				task := s.assigned(shop)
				if got := task.Request().Domain; got != domain {
					t.Errorf("%s: got the domain %q, want it passed on as %q", kind, got, domain)
				}
				s.report(shop, task, core.Done{Text: "never"})
				if kind[1] == 'q' {
					kit.expect(wire.KindResponse)
				}
				s.nextBatch(shop) // the end that it reported
			}
		}
		now, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if got, err := calendar.Next(now); err == nil {
			t.Errorf("the agent of the domain: got %+v, want nothing", got)
		}
	})
}

func TestADelegateIsAcknowledgedAtOnceAndItsResultComesLater(t *testing.T) {
	for name, c := range map[string]struct {
		end  core.Body
		want string
	}{
		"completed": {core.Done{Text: "done", Data: json.RawMessage(`[1]`)}, `{"status":"completed","outcome":"done","data":[1],"error":null,"task_ref":"do it"}`},
		"partial":   {core.Done{Text: "half", Truncated: true}, `{"status":"partial","outcome":"half","error":null,"task_ref":"do it"}`},
		"failed":    {core.Failed{Fault: core.NewFault(core.CodeBudget, "no money")}, `{"status":"failed","outcome":"no money","error":"budget: no money","task_ref":"do it"}`},
		"cancelled": {core.Cancelled{Reason: "changed my mind"}, `{"status":"failed","outcome":"changed my mind","error":"cancelled: changed my mind","task_ref":"do it"}`},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				agent := s.plainAgent("doer", core.Card{})
				kit := s.peer("kit")
				kit.send(`{"id":"d1","from":"kit","to":"doer","kind":"delegate","payload":{"task":"do it","priority":"urgent","context":{"a":1}}}`)
				if got := expect[wire.Ack](kit, wire.KindAck, "d1"); !got.Accepted {
					t.Errorf("ack: got %+v, want accepted", got)
				}
				task := s.assigned(agent)
				if r := task.Request(); r.Intent != core.IntentDelegate || r.Priority != core.PriorityUrgent || !r.ReportBack || string(r.Context) != `{"a":1}` {
					t.Errorf("request: got %+v, want an urgent delegate with its context", r)
				}
				kit.expectNothing()
				time.Sleep(10 * time.Minute) // the deadline of 30 s is not for delegates
				s.report(agent, task, c.end)
				if e := kit.expect(wire.KindResult); e.Ref != "d1" || string(e.Payload) != c.want {
					t.Errorf("result: got %s, want ref d1 and %s", e.Raw, c.want)
				}
			})
		})
	}
}

func TestADelegateWithoutReportGetsNothingAfterItsAck(t *testing.T) {
	for name, end := range map[string]func(s *setup, kit *peer, agent *hub.Session, task *task.Task){
		"it is done": func(s *setup, _ *peer, agent *hub.Session, task *task.Task) {
			s.report(agent, task, core.Done{Text: "done"})
		},
		"it is taken back": func(s *setup, kit *peer, agent *hub.Session, task *task.Task) {
			kit.send(`{"id":"c1","kind":"cancel","ref":"d1"}`)
			kit.expect(wire.KindAck)
			s.nextBatch(agent)
			s.report(agent, task, core.Cancelled{Reason: "stopped"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				agent := s.plainAgent("doer", core.Card{Features: core.FeatureCancellation})
				kit := s.peer("kit")
				kit.send(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it","report_back":false}}`)
				kit.expect(wire.KindAck)
				end(s, kit, agent, s.assigned(agent))
				kit.expectNothing()
			})
		})
	}
}

func TestAFailedDelegateWithoutReportGetsALateError(t *testing.T) {
	for name, c := range map[string]struct {
		say  string
		want wire.Error
	}{
		"refused by its ack":  {`{"id":"a1","kind":"ack","ref":"d1","payload":{"accepted":false,"reason":"not today"}}`, wire.Error{Code: wire.CodeOverloaded, Message: "the agent refused the task: not today", Retryable: true}},
		"refused by an error": {`{"id":"e1","kind":"error","ref":"d1","payload":{"code":"unsupported","message":"cannot"}}`, wire.Error{Code: "unsupported", Message: "cannot"}},
		"given up":            {`{"id":"e1","kind":"error","ref":"d1","payload":{"code":"cancelled","message":"going home"}}`, wire.Error{Code: wire.CodeCancelled, Message: "going home"}},
		"left behind":         {"", wire.Error{Code: wire.CodePeerNotFound, Message: "agent fam left", Retryable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				fam, kit := s.agent("fam", `{}`), s.peer("kit")
				kit.send(`{"id":"d1","to":"fam","kind":"delegate","payload":{"task":"do it","report_back":false}}`)
				if got := expect[wire.Ack](kit, wire.KindAck, "d1"); !got.Accepted {
					t.Errorf("the ack of the hub: got %+v, want accepted", got)
				}
				fam.expect(wire.KindDelegate)
				if c.say == "" {
					fam.disconnect()
				} else {
					fam.send("%s", c.say)
				}
				if got := expect[wire.Error](kit, wire.KindError, "d1"); got.Code != c.want.Code || got.Retryable != c.want.Retryable || !strings.HasPrefix(got.Message, c.want.Message) {
					t.Errorf("the error: got %+v, want %+v", got, c.want)
				}
				kit.expectNothing()
			})
		})
	}
}

func TestADelegateWithoutAnAgentIsAnErrorAndNoAck(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		kit.send(`{"id":"d1","to":"nobody","kind":"delegate","payload":{"task":"do it"}}`)
		kit.refused("d1", wire.CodePeerNotFound, "nobody")
		kit.expectNothing()
		// The envelope was refused, so its id may be used again.
		agent := s.plainAgent("nobody", core.Card{})
		kit.send(`{"id":"d1","to":"nobody","kind":"delegate","payload":{"task":"do it"}}`)
		kit.expect(wire.KindAck)
		s.report(agent, s.assigned(agent), core.Done{})
		kit.expect(wire.KindResult)
	})
}

func TestAQueryThatIsNotAnsweredTimesOutAfterThirtySeconds(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.plainAgent("slow", core.Card{MaxConcurrent: 2})
		kit := s.peer("kit")
		began := time.Now()
		kit.send(`{"id":"q1","to":"slow","kind":"query","payload":{"question":"?"}}`)
		kit.refused("q1", wire.CodeTimeout, "deadline")
		if got := time.Since(began); got != acp.DefaultDeadline {
			t.Errorf("waited: got %s, want %s", got, acp.DefaultDeadline)
		}
		kit.send(`{"id":"q2","to":"slow","kind":"query","payload":{"question":"?","deadline_ms":1500}}`)
		kit.refused("q2", wire.CodeTimeout, "deadline")
		if got := time.Since(began); got != acp.DefaultDeadline+1500*time.Millisecond {
			t.Errorf("waited: got %s in all, want 31.5s", got)
		}
	})
}

func TestAFailureIsAnErrorWithItsCode(t *testing.T) {
	for _, code := range core.Codes() {
		t.Run(string(code), func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				agent := s.plainAgent("sick", core.Card{})
				kit := s.peer("kit")
				kit.send(`{"id":"q1","to":"sick","kind":"query","payload":{"question":"?"}}`)
				f := core.NewFault(code, "because of %s", code)
				s.report(agent, s.assigned(agent), core.Failed{Fault: f})
				got := expect[wire.Error](kit, wire.KindError, "q1")
				if diff := cmp.Diff(wire.Error{Code: wire.ErrorOf(f).Code, Message: f.Message, Retryable: f.Retryable}, got); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestACancelByRefStopsAQueryAndADelegate(t *testing.T) {
	for _, kind := range []wire.Kind{wire.KindQuery, wire.KindDelegate} {
		t.Run(string(kind), func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				agent := s.plainAgent("doer", core.Card{Features: core.FeatureCancellation})
				kit := s.peer("kit")
				kit.send(`{"id":"1","to":"doer","kind":"%s","payload":{"question":"?","task":"!"}}`, kind)
				if kind == wire.KindDelegate {
					kit.expect(wire.KindAck)
				}
				task := s.assigned(agent)
				kit.send(`{"id":"c","kind":"cancel","ref":"1","payload":{"reason":"Plans changed, no longer needed"}}`)
				if got := expect[wire.Ack](kit, wire.KindAck, "c"); !got.Accepted {
					t.Errorf("ack: got %+v, want accepted", got)
				}
				b := s.nextBatch(agent)
				if got, ok := b.Events[0].Body.(core.CancelRequested); !ok || got.By != "kit" || got.Reason != "Plans changed, no longer needed" {
					t.Fatalf("the agent: got %+v, want a cancel by kit", b.Events)
				}
				s.report(agent, task, core.Cancelled{Reason: got(b)})
				switch kind {
				case wire.KindQuery:
					kit.refused("1", wire.CodeCancelled, "Plans changed")
				default:
					if got := expect[wire.Result](kit, wire.KindResult, "1"); got.Status != wire.StatusFailed || *got.Error != "cancelled: Plans changed, no longer needed" {
						t.Errorf("result: got %+v, want failed as cancelled", got)
					}
				}
				kit.send(`{"id":"c2","kind":"cancel","ref":"1"}`)
				if got := expect[wire.Ack](kit, wire.KindAck, "c2"); got.Accepted {
					t.Errorf("a second cancel, after the end: got %+v, want not accepted", got)
				}
				kit.send(`{"id":"c3","kind":"cancel","ref":"unheard"}`)
				if got := expect[wire.Ack](kit, wire.KindAck, "c3"); got.Accepted {
					t.Errorf("a cancel of nothing: got %+v, want not accepted", got)
				}
			})
		})
	}
}

func got(b hub.Batch) string { return b.Events[0].Body.(core.CancelRequested).Reason }

func TestAPeerWithTheExtensionGetsPiecesImmediately(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		agent := s.plainAgent("poet", core.Card{})
		kit := s.peer("kit")
		kit.send(`{"id":"h","kind":"hello","payload":{"protocol_versions":[1],"features":["progress"]}}`)
		kit.expect(wire.KindHello)
		kit.send(`{"id":"q1","to":"poet","kind":"query","payload":{"question":"?"}}`)
		task := s.assigned(agent)
		s.report(agent, task, core.Thinking{Text: "hm"})
		e := kit.expect(wire.KindProgress)
		if e.From != "poet" || e.Ref != "q1" || string(e.Payload) != `{"seq":1,"thinking":"hm"}` {
			t.Errorf("got %s, want progress 1 from poet", e.Raw)
		}
		s.report(agent, task, core.Text{Text: "roses "})
		if got := string(kit.expect(wire.KindProgress).Payload); got != `{"seq":2,"text":"roses "}` {
			t.Errorf("got %s, want the first piece at once", got)
		}
		for range 600 {
			s.report(agent, task, core.Text{Text: "x"})
		}
		s.report(agent, task, core.ToolCall{ID: "t", Name: "look", Input: `{"at":"garden"}`}, core.Text{Text: "are red"}, core.Usage{Output: 3}, core.Done{})
		var text strings.Builder
		for {
			e := kit.next()
			if e.Kind == wire.KindResponse {
				var r wire.Response
				if err := e.Read(&r); err != nil {
					t.Fatal(err)
				}
				if want := "roses " + strings.Repeat("x", 600) + "are red"; r.Summary != want || text.String() != want[6:] {
					t.Errorf("got %q in pieces and %q in the end, want the whole text in both", text.String(), r.Summary)
				}
				break
			}
			_, body, err := e.Progress()
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := body.(core.Text); ok {
				text.WriteString(b.Text)
			}
		}
	})
}

func TestAPeerWithoutTheExtensionGetsNoProgressAndTheWholeText(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		agent := s.plainAgent("poet", core.Card{})
		kit := s.peer("kit")
		kit.send(`{"id":"q1","to":"poet","kind":"query","payload":{"question":"?"}}`)
		task := s.assigned(agent)
		var want strings.Builder
		for i := range 5000 {
			piece := strings.Repeat(string(rune('a'+i%26)), 64)
			want.WriteString(piece)
			s.report(agent, task, core.Text{Text: piece})
		}
		// Declaring the extension now must not lose earlier text.
		kit.send(`{"id":"h","kind":"hello","payload":{"protocol_versions":[1],"features":["progress"]}}`)
		kit.expect(wire.KindHello)
		s.report(agent, task, core.Thinking{Text: "hm"}, core.Done{})
		if got := expect[wire.Response](kit, wire.KindResponse, "q1"); got.Summary != want.String() {
			t.Errorf("got %d bytes, want %d", len(got.Summary), want.Len())
		}
		s.counted("acp.folded.thinking", 1)
	})
}

func TestAnAnswerOverTheLimitIsRefusedAndNeverCut(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		agent := s.plainAgent("poet", core.Card{MaxConcurrent: 2})
		kit := s.peer("kit")
		long := strings.Repeat("x", wire.DefaultMaxEnvelopeBytes)
		kit.send(`{"id":"q1","to":"poet","kind":"query","payload":{"question":"?"}}`)
		s.report(agent, s.assigned(agent), core.Text{Text: long}, core.Done{})
		kit.refused("q1", wire.CodeTooLarge, "progress")
		s.nextBatch(agent)

		kit.send(`{"id":"h","kind":"hello","payload":{"protocol_versions":[1],"features":["progress"]}}`)
		kit.expect(wire.KindHello)
		kit.send(`{"id":"q2","to":"poet","kind":"query","payload":{"question":"?"}}`)
		s.report(agent, s.assigned(agent), core.Text{Text: long}, core.ToolResult{ID: "t", Output: long}, core.Done{})
		received := 0
		for received < len(long) {
			e := kit.expect(wire.KindProgress)
			if len(e.Raw) > wire.DefaultMaxEnvelopeBytes {
				t.Fatalf("got an envelope of %d bytes, want at most %d", len(e.Raw), wire.DefaultMaxEnvelopeBytes)
			}
			received += len(wire.TextOf(e.Payload, "text"))
		}
		if got := kit.expect(wire.KindProgress); wire.TextOf(got.Payload, "omitted") != "tool_result" {
			t.Errorf("got %s, want a note of the omitted parts", got.Raw)
		}
		s.counted("acp.refused.tool_result", 1)
		// Progress had the whole text, so the answer need not repeat it.
		if got := expect[wire.Response](kit, wire.KindResponse, "q2"); got.Summary == "" || len(got.Summary) > 1000 {
			t.Errorf("got a summary of %d bytes, want a short one", len(got.Summary))
		}
	})
}

func TestContextIsInjectedByANotify(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		agent := s.plainAgent("doer", core.Card{Features: core.FeatureInjection, MaxConcurrent: 2})
		deaf := s.plainAgent("deaf", core.Card{})
		kit := s.peer("kit")
		kit.send(`{"id":"q1","to":"doer","kind":"query","payload":{"question":"?"}}`)
		task := s.assigned(agent)
		kit.send(`{"id":"n1","kind":"notify","payload":{"topic":"dragoman.context","data":{"ref":"q1","content":"hurry","priority":"immediate","source":"user"}}}`)
		b := s.nextBatch(agent)
		want := core.Injected{ID: "n1", Content: "hurry", Priority: core.InjectionImmediate, Source: "kit", Claimed: "user"}
		if diff := cmp.Diff(core.Body(want), b.Events[0].Body); diff != "" {
			t.Errorf("injected (-want +got):\n%s", diff)
		}
		s.report(agent, task, core.Done{})
		kit.expect(wire.KindResponse)

		kit.send(`{"id":"q2","to":"deaf","kind":"query","payload":{"question":"?"}}`)
		task = s.assigned(deaf)
		kit.send(`{"id":"n2","kind":"notify","payload":{"topic":"dragoman.context","data":{"ref":"q2","content":"hurry"}}}`)
		kit.refused("n2", wire.CodeUnsupported, "deaf")
		s.report(deaf, task, core.Done{})
	})
}

func TestANotifyReachesAnAgentAndAFailureIsReported(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		agent := s.plainAgent("ear", core.Card{Features: core.FeatureNotices})
		s.plainAgent("deaf", core.Card{})
		kit := s.peer("kit")
		kit.send(`{"id":"n1","to":"ear","kind":"notify","payload":{"topic":"hans.location","data":{"location":"heading to gym","eta_back":"2h"},"importance":"medium"}}`)
		task := s.assigned(agent)
		want := &core.Notice{Topic: "hans.location", Data: json.RawMessage(`{"location":"heading to gym","eta_back":"2h"}`), Importance: core.ImportanceMedium}
		if diff := cmp.Diff(want, task.Request().Notice); diff != "" {
			t.Errorf("notice (-want +got):\n%s", diff)
		}
		agent.Delivered(task.ID())
		kit.expectNothing()
		kit.send(`{"id":"n2","to":"deaf","kind":"notify","payload":{"topic":"a"}}`)
		kit.refused("n2", wire.CodeUnsupported, "deaf")
		kit.send(`{"id":"n3","kind":"notify","payload":{"topic":"a"}}`)
		kit.refused("n3", wire.CodePeerNotFound, `nobody subscribes to "a"`)
	})
}
