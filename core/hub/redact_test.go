package hub_test

import (
	"testing"

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
