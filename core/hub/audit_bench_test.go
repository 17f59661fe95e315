package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// BenchmarkStoredQuestion is a question of two pieces with its record, with and without the
// audit and the redaction. In turns, because the machine is seldom quiet.
func BenchmarkStoredQuestion(b *testing.B) {
	r, err := redact.New([]string{`sk-[A-Za-z0-9]{20,}`, `ghp_[A-Za-z0-9]{36}`}, []string{"correct-horse-battery"})
	if err != nil {
		b.Fatal(err)
	}
	for turn := range 2 {
		for _, with := range []string{"nothing", "audit", "redaction"} {
			b.Run(fmt.Sprintf("%s/%d", with, turn), func(b *testing.B) {
				opts := hub.Options{Journal: journal.NewMemory(journal.Retention{Bytes: 64 << 20})}
				switch with {
				case "audit":
					l, err := audit.Open(b.Context(), audit.Options{Store: audit.NewMemory(journal.Retention{Bytes: 4 << 20})})
					if err != nil {
						b.Fatal(err)
					}
					defer l.Close()
					opts.Auditor = l
				case "redaction":
					opts.Redact = func() *redact.Redactor { return r }
				}
				askOften(b, hub.New(opts))
			})
		}
	}
}

// askOften asks b.N questions that are answered at once.
func askOften(b *testing.B, h *hub.Hub) {
	defer h.Close(b.Context(), "the benchmark is over")
	agent, asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "test"}), h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
	if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	text := core.Text{Text: strings.Repeat("some words ", 6)}
	b.ReportAllocs()
	for b.Loop() {
		t, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: text.Text}, hub.OpenOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := agent.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
		agent.Delivered(t.ID())
		for range 2 {
			if err := agent.Report(t.ID(), text, nil); err != nil {
				b.Fatal(err)
			}
		}
		finish(b, agent, asker, t)
	}
}
