package acp

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// bodiesOfAllKinds is one event of every kind.
var bodiesOfAllKinds = []core.Body{
	core.Opened{}, core.Assigned{}, core.Accepted{}, core.SessionStarted{Session: "s"}, core.SessionLost{Reason: "r"}, core.Thinking{Text: "hm"},
	core.Text{Text: "ro"}, core.ToolCall{ID: "t", Name: "n", Input: "{}"}, core.ToolState{ID: "t", State: core.ToolRunning},
	core.ToolResult{ID: "t", Output: "o"}, core.ApprovalRequested{ID: "t", Name: "n", Input: "{}"}, core.ApprovalDecided{ID: "t", By: "hub"},
	core.Injected{ID: "i", Content: "c", Priority: core.InjectionNormal}, core.InjectionAnswered{ID: "i"}, core.File{Name: "f", Data: []byte{0}},
	core.Usage{Output: 1}, core.Retrying{Attempt: 1, Agent: "a", Fault: core.NewFault(core.CodeOverloaded, "later")}, core.CancelRequested{By: "hub"},
	core.ForeignFrame{Dialect: "coven", Name: "x"}, core.Done{}, core.Failed{Fault: core.NewFault(core.CodeInternal, "oops")}, core.Cancelled{Reason: "no"},
}

func TestThereIsOneEventOfEveryKind(t *testing.T) {
	for i, k := range core.Kinds() {
		if i >= len(bodiesOfAllKinds) || bodiesOfAllKinds[i].Kind() != k {
			t.Fatalf("event %d: got another kind than %s, want all kinds in order", i, k)
		}
	}
}

// counts walks a direction: what happens to one event of each kind that is declared
// folded or refused is counted as that, once.
func counts(t *testing.T, table core.Table, happen func(t *testing.T, s *stage, b core.Body)) {
	t.Helper()
	for i, k := range core.Kinds() {
		how := table[k].How
		if how != core.Folded && how != core.Refused {
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				happen(t, s, bodiesOfAllKinds[i])
				s.counted("acp."+how.String()+"."+k.String(), 1)
			})
		})
	}
}

func TestWhatARequesterIsNotToldAsItIsIsCounted(t *testing.T) {
	counts(t, Translation.ToRequester, func(t *testing.T, s *stage, b core.Body) {
		s.plainAgent("poet", core.Card{})
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("poet"), Content: "?"})
		kit := newSession(s.hub, Options{Peers: s.peers}.withDefaults(), &recorder{})
		kit.identify("kit")
		defer kit.close(nil)
		a := &asked{id: "q1", kind: KindQuery, reports: true}
		kit.asked[a.id] = a
		if err := kit.tell(s.Context(), hub.Batch{Task: task, Role: hub.Requester, Tag: a, Events: []core.Event{{Seq: 1, Body: b}}}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhatAnAgentIsNotToldAsItIsIsCounted(t *testing.T) {
	counts(t, Translation.ToAgent, func(t *testing.T, s *stage, b core.Body) {
		s.plainAgent("poet", core.Card{})
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("poet"), Content: "?"})
		out := &recorder{}
		fam := newSession(s.hub, Options{Peers: s.peers}.withDefaults(), out)
		fam.identify("fam")
		defer fam.close(nil)
		j := &job{id: "q1", kind: KindQuery, task: task.ID()}
		fam.jobs[j.id], fam.byTask[j.task] = j, j
		for range 2 {
			if err := fam.work(s.Context(), hub.Batch{Task: task, Role: hub.Agent, Events: []core.Event{{Seq: 1, Body: b}}}); err != nil {
				t.Fatal(err)
			}
			if b.Kind() == core.KindApprovalDecided {
				break // each is counted
			}
		}
		if b.Kind().Ends() && (len(out.sent) != 1 || out.sent[0].kind != KindCancel) {
			t.Errorf("got %+v, want the agent told to stop, once", out.sent)
		}
	})
}

// saying is how an agent or a requester says what the table refuses it.
var saying = map[core.Kind]string{
	core.KindApprovalRequested: `"kind":"progress","payload":{"seq":1,"approval_requested":{"id":"t","name":"n"}}`,
	core.KindApprovalDecided:   `"kind":"progress","payload":{"seq":1,"approval_decided":{"id":"t","approved":true,"by":"me"}}`,
	core.KindInjected:          `"kind":"progress","payload":{"seq":1,"injected":{"id":"i","content":"c"}}`,
	core.KindCancelRequested:   `"kind":"cancel","payload":{"reason":"no"}`,
	core.KindForeign:           `"kind":"mood","payload":{}`,
}

func TestWhatAnAgentMayNotSayIsRefusedAndCounted(t *testing.T) {
	counts(t, Translation.FromAgent, func(_ *testing.T, s *stage, b core.Body) {
		fam := s.agent("fam", `{}`)
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(KindQuery).ID
		fam.say(`{"id":"x","ref":"%s",%s}`, id, saying[b.Kind()])
		fam.refused("x", CodeUnsupported, "")
		fam.say(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		s.ended(task)
	})
}

func TestWhatARequesterMayNotSayIsRefusedAndCounted(t *testing.T) {
	counts(t, Translation.FromRequester, func(_ *testing.T, s *stage, b core.Body) {
		poet, kit := s.plainAgent("poet", core.Card{}), s.enter("kit")
		kit.say(`{"id":"q1","to":"poet","kind":"query","payload":{"question":"?"}}`)
		task := s.assigned(poet)
		kit.say(`{"id":"x","ref":"q1",%s}`, saying[b.Kind()])
		kit.refused("x", CodeUnsupported, "")
		s.report(poet, task, core.Done{})
		kit.expect(KindResponse)
	})
}

func TestForeignKindsThatAreRefusedAreCountedAndThoseThatPassAreNot(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		fam, kit := s.agent("fam", `{}`), s.enter("kit")
		s.plainAgent("poet", core.Card{})
		kit.say(`{"id":"1","to":"poet","kind":"mood"}`)
		kit.refused("1", CodeUnknownKind, "mood")
		s.counted("acp.refused.foreign", 1)
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(KindQuery).ID
		fam.say(`{"id":"x","ref":"%s","kind":"mood"}`, id)
		fam.refused("x", CodeUnknownKind, "mood")
		s.counted("acp.refused.foreign", 2)
		fam.say(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		s.ended(task)
		kit.say(`{"id":"2","to":"fam","kind":"mood"}`)
		fam.expect("mood")
		s.counted("acp.refused.foreign", 2)
	})
}

func TestAnAgentIsToldToStopWhenTheHubEndsItsTask(t *testing.T) {
	onStageWith(t, hub.Options{Limits: hub.Limits{TaskBytes: 1000}}, func(t *testing.T, s *stage) {
		fam := s.agent("fam", `{"extensions":["progress"]}`)
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(KindQuery).ID
		for i := range 20 {
			fam.say(`{"id":"p%d","kind":"progress","ref":"%s","payload":{"seq":%d,"text":"roses are red, violets are blue"}}`, i, id, i)
		}
		if got := s.ended(task); got.Fault == nil || got.Fault.Code != core.CodeTooLarge {
			t.Errorf("got %+v, want it too large", got)
		}
		if e := fam.expect(KindCancel); e.Ref != id {
			t.Errorf("got %s, want a cancel of %s", e.Raw, id)
		}
		fam.say(`{"id":"a","kind":"ack","ref":"%s","payload":{"accepted":true}}`, id)
		s.until(func() bool { a, _ := s.hub.Agent("fam"); return a.Load.Active == 0 }, "the agent has room again")
		fam.silent()
	})
}
