package peer_test

import (
	"context"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// BenchmarkQuestion measures a question to an agent of the own hub and to one of another hub,
// which is connected by a pipe in memory.
func BenchmarkQuestion(b *testing.B) {
	for _, at := range []string{"a", "b"} {
		name := map[string]string{"a": "local", "b": "elsewhere"}[at]
		b.Run(name, func(b *testing.B) {
			all := connected(b, "a", "b")
			bob := all[at].join(b, all, core.Card{ID: "bob"})
			go answer(bob)
			ann := all["a"].person("ann")
			b.ReportAllocs()
			for b.Loop() {
				one := ask(b, ann, core.ToAgent("bob"))
				until(b, ann, one.ID(), core.KindDone)
			}
		})
	}
}

// answer answers every task of an agent.
func answer(s *hub.Session) {
	for {
		n, err := s.Next(context.Background())
		if err != nil {
			return
		}
		if n.Task != nil && n.Role == task.Agent && n.Events[0].Body.Kind() == core.KindAssigned {
			_ = s.Report(n.Task.ID(), core.Text{Text: "because"}, nil)
			_ = s.Report(n.Task.ID(), core.Done{Text: "because"}, nil)
		}
	}
}
