package acp

import (
	"context"
	"errors"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// breaking is an outlet that breaks as a result is to be sent, when nobody looks any
// more at what it had.
type breaking struct{}

func (breaking) hold() {}

func (breaking) flush() {}

func (breaking) away() bool { return false }

func (breaking) reclaim() []owing { return nil }

func (breaking) send(_ context.Context, m message) error {
	if m.kind != KindResult {
		return nil
	}
	m.lost()
	return errors.New("broken")
}

func TestAResultThatFindsTheConnectionBrokenIsStillOwed(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		doer := s.plainAgent("doer", core.Card{})
		lost := newSession(s.hub, Options{Peers: s.peers}.withDefaults(), breaking{})
		lost.identify("kit")
		e, err := Decode([]byte(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it"}}`), 1<<20)
		if err == nil {
			err = lost.act(t.Context(), e)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.report(doer, s.assigned(doer), core.Done{Text: "done"})
		if err := lost.pump(t.Context()); err == nil {
			t.Error("the pump: got no error, want that the connection broke")
		}
		lost.close(core.NewFault(core.CodeUnreachable, "gone"))
		kit := s.enter("kit")
		if got := expect[Result](kit, KindResult, "d1"); got.Outcome != "done" {
			t.Errorf("result: got %+v, want done", got)
		}
	})
}
