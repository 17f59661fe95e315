package hub_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// The requester gets the answer as the agent sent it; whoever reads it from the journal gets it
// redacted, with the same sequence numbers.
func TestTheJournalIsRedactedAndTheAnswerIsNot(t *testing.T) {
	r, err := redact.New([]string{`sk-[a-z]{8}`}, []string{"correct-horse"})
	if err != nil {
		t.Fatal(err)
	}
	kept := journal.NewMemory(journal.Retention{})
	g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept, Redact: func() *redact.Redactor { return r }})}
	agent, asker := g.agent("a", able), g.connect("r")
	asked, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "my key is sk-abcdefgh"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.report(agent, asked, core.Text{Text: "it is cor"}, core.Text{Text: "rect-horse"}, core.Done{})
	if err := asked.Recorded(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if got := asked.Answer().Text; got != "it is correct-horse" {
		t.Errorf("got the answer %q, want it as the agent sent it", got)
	}
	events, err := kept.Read(t.Context(), asked.ID(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := core.Fold(events).Text; got != "it is [redacted]" {
		t.Errorf("got %q from the journal, want it redacted", got)
	}
	if got := events[0].Body.(core.Opened).Request.Content; got != "my key is [redacted]" {
		t.Errorf("got the request %q in the journal, want it redacted", got)
	}
	if got := asked.Events(); events[len(events)-1].End() != got[len(got)-1].End() {
		t.Errorf("got events to %d, want to %d", events[len(events)-1].End(), got[len(got)-1].End())
	}
}

// What an operator sees of all tasks is redacted as the journal is; who asked, and who reads a
// task by its id, gets it as it was sent.
func TestWhoWatchesAllTasksSeesNoSecretOfOthers(t *testing.T) {
	r, err := redact.New([]string{`sk-[a-z]{8}`}, []string{"correct-horse"})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Redact: func() *redact.Redactor { return r }})}
		agent, asker, screen, reader := g.agent("a", able|core.FeatureApprovals), g.connect("r"), g.operator("screen"), g.operator("reader")
		if err := screen.WatchAll(); err != nil {
			t.Fatal(err)
		}
		var seqs []uint64
		sees := func(what string, s *hub.Session, want string) {
			t.Helper()
			synctest.Wait()
			var all []string
			for _, e := range g.events(s) {
				switch b := e.Body.(type) {
				case core.Opened:
					all = append(all, b.Request.Content)
				case core.Text:
					all = append(all, b.Text)
				case core.ApprovalRequested:
					all = append(all, b.Input)
				}
				if s == screen {
					seqs = append(seqs, e.Seq)
				}
			}
			if got := strings.Join(all, "|"); got != want {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		asked, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "use sk-abcdefgh"}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Watch(asked, core.Cursor{}, "by its id"); err != nil {
			t.Fatal(err)
		}
		g.report(agent, asked, core.Accepted{}, core.Text{Text: "it is cor"})
		sees("what may be the beginning of a secret", screen, "use [redacted]")
		g.report(agent, asked, core.Text{Text: "rect-horse"}, core.Text{Text: ", or correct-"})
		sees("once it is one", screen, "it is [redacted]|")
		g.report(agent, asked, core.ToolCall{ID: "1", Name: "rm"}, core.ApprovalRequested{ID: "1", Input: `{"key":"sk-abcdefgh"}`})
		sees("behind another beginning", screen, "")
		g.sleep(redact.HoldTime)
		sees("after a second", screen, `, or correct-|{"key":"[redacted]"}`)
		g.report(agent, asked, core.Text{Text: "horses"}, core.Done{})
		sees("the end", screen, "[redacted]s")
		for i, seq := range seqs {
			if seq != uint64(i)+1 {
				t.Fatalf("got the events %v, want each once and in order", seqs)
			}
		}
		if last := asked.Events()[len(asked.Events())-1].Seq; uint64(len(seqs)) != last {
			t.Errorf("got %d events, want all %d", len(seqs), last)
		}
		const sent = `use sk-abcdefgh|it is cor|rect-horse|, or correct-|{"key":"sk-abcdefgh"}|horses`
		sees("who asked", asker, sent)
		sees("who reads it by its id", reader, sent)

		own := g.open(screen, core.Request{To: core.ToAgent("a"), Content: "mine is sk-abcdefgh"})
		g.report(agent, own, core.Done{})
		sees("of its own", screen, "mine is sk-abcdefgh")
	})
}
