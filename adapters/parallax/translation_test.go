package parallax

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// specimens are one event of every kind that is not between the hub and itself.
var specimens = []core.Body{
	core.Assigned{Agent: "other", Attempt: 1}, core.Accepted{}, core.SessionStarted{Session: "s"}, core.SessionLost{Reason: "gone"}, core.Thinking{Text: "hm"},
	core.Text{Text: "hello"}, core.ToolCall{ID: "c", Name: "n"}, core.ToolState{ID: "c", State: core.ToolRunning}, core.ToolResult{ID: "c"},
	core.ApprovalRequested{ID: "c", Name: "n"}, core.ApprovalDecided{ID: "c"}, core.Injected{ID: "i"}, core.InjectionAnswered{ID: "i"},
	core.File{Name: "f"}, core.Usage{Input: 1}, core.Retrying{Attempt: 1, Agent: "b", Fault: core.NewFault(core.CodeOverloaded, "full")},
	core.CancelRequested{By: "hub"}, core.ForeignFrame{Dialect: "other", Name: "dance"},
	core.Done{}, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")}, core.Cancelled{Reason: "enough"}, core.Opened{},
}

func TestThereIsASpecimenOfEveryKind(t *testing.T) {
	for _, k := range core.Kinds() {
		if !slices.ContainsFunc(specimens, func(b core.Body) bool { return b.Kind() == k }) {
			t.Errorf("%s: got no specimen, want one", k)
		}
	}
}

// wantCounted holds that the kind was counted as often as its declaration says
// that there is something to count.
func (s *stage) wantCounted(how core.Handling, b core.Body, folds bool) {
	s.Helper()
	k := b.Kind().String()
	folded, refused := int64(0), int64(0)
	switch {
	case how == core.Folded || how == core.Native && folds:
		folded = 1
	case how == core.Refused:
		refused = 1
	}
	s.counted("parallax.folded."+k, folded)
	s.counted("parallax.refused."+k, refused)
}

func TestWhatAnAgentSaysAndCannotSayIsCounted(t *testing.T) {
	for _, b := range specimens {
		i, has := wire.ItemOf(b)
		if !has || b.Kind() == core.KindForeign {
			continue // no message could say it, or it is said by another member
		}
		t.Run(b.Kind().String(), func(t *testing.T) {
			onStage(t, func(s *stage) {
				p := s.registered(Options{AgentID: "a"}, full)
				a := s.asker()
				asked := a.ask("a", "go")
				given := inside[wire.Task](p, p.hear(wire.TypeTask))
				p.say(`{"type":"task_progress","id":"m","payload":` + js(t, wire.Progress{About: given.About, Item: i}) + `}`)
				if Translation.FromAgent[b.Kind()].How == core.Refused {
					p.refused(wire.CodeUnsupported)
				}
				synctest.Wait()
				s.wantCounted(Translation.FromAgent[b.Kind()].How, b, false)
				p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","metadata":{"progress":[`+js(t, i)+`]}}}`, given))
				a.answer(asked)
				if Translation.FromAgent[b.Kind()].How == core.Refused {
					s.counted("parallax.refused."+b.Kind().String(), 2)
				}
			})
		})
	}
}

func TestWhatAnAgentCannotBeToldIsCounted(t *testing.T) {
	for _, b := range specimens {
		t.Run(b.Kind().String(), func(t *testing.T) {
			onStage(t, func(s *stage) {
				p := s.registered(Options{AgentID: "a"}, full)
				a := s.asker()
				asked := a.ask("a", "go")
				given := inside[wire.Task](p, p.hear(wire.TypeTask))
				session := &session{hub: s.hub, id: "a", tasks: newHeld()}
				session.tasks.tasks[asked.ID()] = &holding{execution: given.ExecutionID}
				if err := (core.Event{Body: b}).DeliverToAgent(&agentSink{s: session, task: asked}); err != nil {
					t.Fatal(err)
				}
				s.wantCounted(Translation.ToAgent[b.Kind()].How, b, false)
				p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, given))
				a.answer(asked)
			})
		})
	}
}

func TestWhatARequesterCannotSayIsCounted(t *testing.T) {
	for _, b := range specimens {
		i, has := wire.ItemOf(b)
		if !has || Translation.FromRequester[b.Kind()].How != core.Refused {
			continue
		}
		t.Run(b.Kind().String(), func(t *testing.T) {
			onStage(t, func(s *stage) {
				asks := s.registered(Options{AgentID: "asks"}, full)
				works := s.registered(Options{AgentID: "works"}, full)
				asks.say(`{"type":"task_request","id":"q","payload":{"to":"works","input":"x"}}`)
				given := inside[wire.Task](works, works.hear(wire.TypeTask))
				asks.say(`{"type":"task_progress","id":"m","payload":` + js(t, wire.Progress{About: given.About, Item: i}) + `}`)
				asks.refused(wire.CodeUnsupported)
				s.wantCounted(core.Refused, b, false)
				works.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, given))
			})
		})
	}
}

func TestWhatARequesterIsToldInAnotherFormIsCounted(t *testing.T) {
	for name, extended := range map[string]bool{"with extensions": true, "without": false} {
		for _, b := range specimens {
			t.Run(name+"/"+b.Kind().String(), func(t *testing.T) {
				onStage(t, func(s *stage) {
					p := s.registered(Options{AgentID: "a"}, full)
					a := s.asker()
					asked := a.ask("a", "go")
					given := inside[wire.Task](p, p.hear(wire.TypeTask))
					session := &session{hub: s.hub, opts: Options{}.withDefaults(), extensions: map[string]bool{wire.ExtensionProgress: extended, wire.ExtensionAccepted: extended}}
					if err := (core.Event{Body: b}).Deliver(&requesterSink{s: session, task: asked, ask: &asking{request: "q"}}); err != nil {
						t.Fatal(err)
					}
					how, k := Translation.ToRequester[b.Kind()].How, b.Kind()
					s.wantCounted(how, b, !extended && !k.Ends() && k != core.KindText && k != core.KindFile)
					p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, given))
					a.answer(asked)
				})
			})
		}
	}
}

func TestEveryKindOfEventHasADisposition(t *testing.T) {
	if err := Translation.Check(); err != nil {
		t.Error(err)
	}
}
