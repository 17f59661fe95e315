package parallax_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// items has one event of each kind that has an item.
var items = []core.Body{
	core.SessionStarted{Session: "s"}, core.SessionLost{Reason: "gone"}, core.Thinking{Text: "hm"}, core.Text{Text: "hello"},
	core.ToolCall{ID: "c", Name: "n"}, core.ToolState{ID: "c", State: core.ToolRunning}, core.ToolResult{ID: "c"},
	core.ApprovalRequested{ID: "c", Name: "n"}, core.ApprovalDecided{ID: "c"}, core.InjectionAnswered{ID: "i"},
	core.File{Name: "f"}, core.Usage{Input: 1}, core.Retrying{Attempt: 1, Agent: "b", Fault: core.NewFault(core.CodeOverloaded, "full")},
}

// expectCounted checks that an event was counted as its disposition requires.
func (s *setup) expectCounted(how core.Handling, b core.Body, folds bool) {
	s.Helper()
	k := b.Kind().String()
	folded, refused := int64(0), int64(0)
	switch {
	case how == core.Folded || how == core.Native && folds:
		folded = 1
	case how == core.Refused:
		refused = 1
	}
	s.expectCount("parallax.folded."+k, folded)
	s.expectCount("parallax.refused."+k, refused)
}

func TestEventsThatAnAgentMayNotSendAreCounted(t *testing.T) {
	for _, b := range items {
		i, has := wire.ItemOf(b)
		if !has || b.Kind() == core.KindForeign {
			continue // it has no item, or is an unknown member
		}
		t.Run(b.Kind().String(), func(t *testing.T) {
			withHub(t, func(s *setup) {
				p := s.registered(parallax.Options{AgentID: "a"}, full)
				a := s.requester()
				opened := a.ask("a", "go")
				assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
				p.send(`{"type":"task_progress","id":"m","payload":` + toJSON(t, wire.Progress{TaskRef: assigned.TaskRef, Item: i}) + `}`)
				if parallax.Translation.FromAgent[b.Kind()].How == core.Refused {
					p.expectError(wire.CodeUnsupported)
				}
				synctest.Wait()
				s.expectCounted(parallax.Translation.FromAgent[b.Kind()].How, b, false)
				p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","metadata":{"progress":[`+toJSON(t, i)+`]}}}`, assigned))
				a.answer(opened)
				if parallax.Translation.FromAgent[b.Kind()].How == core.Refused {
					s.expectCount("parallax.refused."+b.Kind().String(), 2)
				}
			})
		})
	}
}

func TestEventsThatARequesterMayNotSendAreCounted(t *testing.T) {
	for _, b := range items {
		i, has := wire.ItemOf(b)
		if !has || parallax.Translation.FromRequester[b.Kind()].How != core.Refused {
			continue
		}
		t.Run(b.Kind().String(), func(t *testing.T) {
			withHub(t, func(s *setup) {
				asker := s.registered(parallax.Options{AgentID: "asker"}, full)
				worker := s.registered(parallax.Options{AgentID: "worker"}, full)
				asker.send(`{"type":"task_request","id":"q","payload":{"to":"worker","input":"x"}}`)
				assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
				asker.send(`{"type":"task_progress","id":"m","payload":` + toJSON(t, wire.Progress{TaskRef: assigned.TaskRef, Item: i}) + `}`)
				asker.expectError(wire.CodeUnsupported)
				s.expectCounted(core.Refused, b, false)
				worker.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
			})
		})
	}
}

func TestEveryKindOfEventHasADisposition(t *testing.T) {
	if err := parallax.Translation.Check(); err != nil {
		t.Error(err)
	}
}
