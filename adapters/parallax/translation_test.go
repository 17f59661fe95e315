package parallax_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// items are one event of every kind that an item can say.
var items = []core.Body{
	core.SessionStarted{Session: "s"}, core.SessionLost{Reason: "gone"}, core.Thinking{Text: "hm"}, core.Text{Text: "hello"},
	core.ToolCall{ID: "c", Name: "n"}, core.ToolState{ID: "c", State: core.ToolRunning}, core.ToolResult{ID: "c"},
	core.ApprovalRequested{ID: "c", Name: "n"}, core.ApprovalDecided{ID: "c"}, core.InjectionAnswered{ID: "i"},
	core.File{Name: "f"}, core.Usage{Input: 1}, core.Retrying{Attempt: 1, Agent: "b", Fault: core.NewFault(core.CodeOverloaded, "full")},
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
	for _, b := range items {
		i, has := wire.ItemOf(b)
		if !has || b.Kind() == core.KindForeign {
			continue // no message could say it, or it is said by another member
		}
		t.Run(b.Kind().String(), func(t *testing.T) {
			onStage(t, func(s *stage) {
				p := s.registered(parallax.Options{AgentID: "a"}, full)
				a := s.asker()
				asked := a.ask("a", "go")
				given := inside[wire.Task](p, p.hear(wire.TypeTask))
				p.say(`{"type":"task_progress","id":"m","payload":` + js(t, wire.Progress{TaskRef: given.TaskRef, Item: i}) + `}`)
				if parallax.Translation.FromAgent[b.Kind()].How == core.Refused {
					p.refused(wire.CodeUnsupported)
				}
				synctest.Wait()
				s.wantCounted(parallax.Translation.FromAgent[b.Kind()].How, b, false)
				p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","metadata":{"progress":[`+js(t, i)+`]}}}`, given))
				a.answer(asked)
				if parallax.Translation.FromAgent[b.Kind()].How == core.Refused {
					s.counted("parallax.refused."+b.Kind().String(), 2)
				}
			})
		})
	}
}

func TestWhatARequesterCannotSayIsCounted(t *testing.T) {
	for _, b := range items {
		i, has := wire.ItemOf(b)
		if !has || parallax.Translation.FromRequester[b.Kind()].How != core.Refused {
			continue
		}
		t.Run(b.Kind().String(), func(t *testing.T) {
			onStage(t, func(s *stage) {
				asks := s.registered(parallax.Options{AgentID: "asks"}, full)
				works := s.registered(parallax.Options{AgentID: "works"}, full)
				asks.say(`{"type":"task_request","id":"q","payload":{"to":"works","input":"x"}}`)
				given := inside[wire.Task](works, works.hear(wire.TypeTask))
				asks.say(`{"type":"task_progress","id":"m","payload":` + js(t, wire.Progress{TaskRef: given.TaskRef, Item: i}) + `}`)
				asks.refused(wire.CodeUnsupported)
				s.wantCounted(core.Refused, b, false)
				works.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, given))
			})
		})
	}
}

func TestEveryKindOfEventHasADisposition(t *testing.T) {
	if err := parallax.Translation.Check(); err != nil {
		t.Error(err)
	}
}
