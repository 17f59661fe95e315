package hub_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// handed returns what the log of a task says of a handover.
func handed(t *task.Task) *core.Handover {
	for _, e := range t.Events() {
		if b, is := e.Body.(core.Assigned); is {
			return b.Handover
		}
	}
	return nil
}

// handover returns what the log of a task says of a handover, in words; "" for none.
func handover(t *task.Task) string {
	if h := handed(t); h != nil {
		return h.Words()
	}
	return ""
}

func fileNames(files []core.File) string {
	var all []string
	for _, f := range files {
		all = append(all, f.Name)
	}
	return strings.Join(all, " ")
}

func TestAConversationThatAnotherAgentGoesOnWithIsHandedOverOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		ask := func(to, content string, files ...core.File) *task.Task {
			return g.open(asker, core.Request{To: core.ToAgent(core.AgentID(to)), Thread: "t", Content: content, Attachments: files})
		}
		first := ask("a", "one?", core.File{Name: "plan.md", Data: []byte("plan")})
		g.report(a, first, core.File{Name: "answer.png", Data: []byte("png")}, core.Text{Text: "1"}, core.Done{})
		if got := handover(first); got != "" {
			t.Errorf("the first turn: got %q in the log, want no handover", got)
		}
		second := ask("b", "two?", core.File{Name: "own.txt", Data: []byte("own")})
		if got, want := handover(second), "handed over from a with 2 turns and 2 files"; got != want {
			t.Errorf("got %q in the log, want %q", got, want)
		}
		r := second.AgentRequest()
		if got := turns(r.History); got != "user: one? | assistant: 1" {
			t.Errorf("got the history %q, want both turns", got)
		}
		if got := fileNames(r.Attachments); got != "own.txt plan.md answer.png" || len(r.Handed) != 2 || !bytes.Equal(r.Attachments[1].Data, []byte("plan")) {
			t.Errorf("got the files %q, %v handed over, want its own first", got, r.Handed)
		}
		if got := fileNames(second.Request().Attachments); got != "own.txt" {
			t.Errorf("got the files %q in the request, want those that were attached", got)
		}
		g.report(b, second, core.Text{Text: "2"}, core.Done{})
		third := ask("b", "three?")
		if got := third.AgentRequest(); handover(third) != "" || len(got.Handed) != 0 || len(got.Attachments) != 0 {
			t.Errorf("the next turn: got %q and %d files, want nothing handed over again", handover(third), len(got.Attachments))
		}
		g.report(b, third, core.Text{Text: "3"}, core.Done{})
		back := ask("a", "four?")
		if got, want := handover(back), "handed over from b with 4 turns and 1 file"; got != want {
			t.Errorf("back at the first agent: got %q, want %q: what it does not know", got, want)
		}
		if got := fileNames(back.AgentRequest().Attachments); got != "own.txt" {
			t.Errorf("back at the first agent: got the files %q, want those since its own turn", got)
		}
	})
}

func TestAnAgentThatKeepsItsThreadsGetsOnlyWhatOthersSaidSinceItsOwnTurn(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able|core.FeatureSessions), g.agent("b", able), g.connect("r")
		g.talk(asker, a, "a", "t", "one?", "1")
		g.talk(asker, b, "b", "t", "two?", "2")
		back := g.talk(asker, a, "a", "t", "three?", "3")
		if got := turns(back.Request().History); got != "user: two? | assistant: 2" {
			t.Errorf("got the history %q, want what the other agent had", got)
		}
		if got := g.talk(asker, a, "a", "t", "four?", "4").Request().History; len(got) != 0 {
			t.Errorf("the next turn: got the history %q, want none", turns(got))
		}
	})
}

func TestAnAgentThatGotTheTurnsWithATaskThatWasCancelledOrFailedHasThem(t *testing.T) {
	for name, c := range map[string]struct {
		features core.Features
		end      []core.Body
		has      bool
	}{
		"cancelled":                  {able, []core.Body{core.Cancelled{Reason: "enough"}}, true},
		"cancelled, it keeps them":   {able | core.FeatureSessions, []core.Body{core.Cancelled{Reason: "enough"}}, true},
		"failed after output":        {able | core.FeatureSessions, []core.Body{core.Text{Text: "so far"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "no")}}, true},
		"failed before output":       {able | core.FeatureSessions, []core.Body{core.Failed{Fault: core.NewFault(core.CodeUnauthenticated, "log in")}}, false},
		"it has gone with the turns": {able | core.FeatureSessions, []core.Body{core.Text{Text: "so far"}, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "gone")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, hub.Limits{}, func(g *testHub) {
				a, b, asker, other := g.agent("a", able), g.agent("b", c.features), g.connect("r"), g.connectAs(core.Principal{ID: "other", Operator: true, Authenticated: true})
				ask := func(from *hub.Session, to core.AgentID, content string, files ...core.File) *task.Task {
					return g.open(from, core.Request{To: core.ToAgent(to), Thread: "t", Content: content, Attachments: files})
				}
				g.report(a, ask(asker, "a", "one?", core.File{Name: "plan.md", Data: []byte("plan")}), core.Text{Text: "1"}, core.Done{})
				const all = "handed over from a with 2 turns and 1 file"
				waits := ask(asker, "b", "two?") // whether it has them is not known before it is delivered
				if got := handover(waits); got != all {
					t.Errorf("got %q, want %q", got, all)
				}
				b.Delivered(waits.ID())
				g.report(b, waits, c.end...)
				again := ask(asker, "b", "three?")
				got, files := handover(again), len(again.AgentRequest().Attachments)
				if c.has != (got == "" && files == 0) {
					t.Errorf("got %q with %d files for the next task, want them: %t", got, files, !c.has)
				}
				if c.has && c.features.Has(core.FeatureSessions) && len(again.AgentRequest().History) > 0 {
					t.Errorf("got the history %q, want none that it has", turns(again.AgentRequest().History))
				}
				g.report(b, again, core.Cancelled{})
				if got := handover(ask(other, "b", "four?")); got != all {
					t.Errorf("somebody else's conversation: got %q, want %q", got, all)
				}
			})
		})
	}
}

func TestAnAgentIsGivenTheTurnsThatEndedSinceATaskThatWasCancelled(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able|core.FeatureSessions), g.connect("r")
		g.talk(asker, a, "a", "t", "one?", "1")
		cancelled := g.open(asker, core.Request{To: core.ToAgent("b"), Thread: "t", Content: "two?"})
		b.Delivered(cancelled.ID())
		g.report(b, cancelled, core.Cancelled{})
		g.talk(asker, a, "a", "t", "three?", "3")
		next := g.open(asker, core.Request{To: core.ToAgent("b"), Thread: "t", Content: "four?"})
		if got, want := handover(next), "handed over from a with 2 turns"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := turns(next.Request().History), "user: three? | assistant: 3"; got != want {
			t.Errorf("got the history %q, want %q", got, want)
		}
	})
}

// A turn that was asked earlier may end later, when the agent already had its own.
func TestATurnThatEndedDuringTheLastOneOfAnAgentIsHandedOverWithTheNext(t *testing.T) {
	for name, features := range map[string]core.Features{"keeps its threads": able | core.FeatureSessions, "keeps none": able} {
		t.Run(name, func(t *testing.T) {
			withHub(t, hub.Limits{}, func(g *testHub) {
				a, b, asker := g.agent("a", features), g.agent("b", able), g.connect("r")
				ask := func(to core.AgentID, content string, files ...core.File) *task.Task {
					g.sleep(time.Second)
					return g.open(asker, core.Request{To: core.ToAgent(to), Thread: "t", Content: content, Attachments: files})
				}
				slow := ask("b", "slow?", core.File{Name: "plan.md", Data: []byte("plan")})
				g.report(a, ask("a", "fast?"), core.Text{Text: "fast"}, core.Done{})
				g.sleep(time.Second)
				g.report(b, slow, core.Text{Text: "slow"}, core.Done{})
				third := ask("a", "and?")
				if got, want := handover(third), "handed over from b with 2 turns and 1 file"; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if got := turns(third.Request().History); !strings.Contains(got, "user: slow? | assistant: slow") {
					t.Errorf("got the history %q, want the slow turn in it", got)
				}
				g.report(a, third, core.Text{Text: "3"}, core.Done{})
				if got := handover(ask("a", "four?")); got != "" {
					t.Errorf("the next turn: got %q, want it told once", got)
				}
			})
		})
	}
}

func TestAHandoverSaysWhereTheOtherAgentWorksAndWhatIsLeftOut(t *testing.T) {
	withHub(t, hub.Limits{HistoryBytes: 1000}, func(g *testHub) {
		a, asker := g.connect("a"), g.connect("r")
		if err := a.Join(core.Card{ID: "a", Dialect: "test"}, hub.JoinOptions{Dir: "/home/anna/project"}); err != nil {
			t.Fatal(err)
		}
		g.agent("b", able)
		for range 10 {
			g.talk(asker, a, "a", "t", strings.Repeat("q", 100), strings.Repeat("a", 100))
		}
		large := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t", Content: "see", Attachments: []core.File{
			{Name: "large\x1b.iso", MediaType: "application/x-iso", Data: make([]byte, thread.FileBytes+1)}, {Name: "small.txt", Data: []byte("small")},
		}})
		g.report(a, large, core.Text{Text: "seen"}, core.Done{})
		next := g.open(asker, core.Request{To: core.ToAgent("b"), Thread: "t", Content: "go on"})
		h := handed(next)
		if h == nil || h.From != "a" || h.Turns+h.LeftOut != 22+1 || h.Files != 1 {
			t.Fatalf("got %+v in the log, want all 22 turns told or left out, and the large file left out", h)
		}
		got := next.Request().History[0].Text
		for _, want := range []string{"Agent a had this conversation.", "Its working directory is /home/anna/project.", "oldest turns, file large\\x1b.iso (application/x-iso)."} {
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %q in it", got, want)
			}
		}
		if got := fileNames(next.AgentRequest().Attachments); got != "small.txt" {
			t.Errorf("got the files %q, want the small one", got)
		}
	})
}

func TestAnAgentThatTakesNoFilesIsToldTheNamesOfThoseOfEarlierTurns(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		g.agent("b", able&^core.FeatureFiles)
		first := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t", Content: "one?", Attachments: []core.File{{Name: "plan.md", MediaType: "text/markdown", Data: []byte("plan")}}})
		g.report(a, first, core.Text{Text: "1"}, core.Done{})
		second := g.open(asker, core.Request{To: core.ToAgent("b"), Thread: "t", Content: "two?", Attachments: []core.File{{Name: "own.txt", Data: []byte("own")}}})
		r := second.AgentRequest()
		if got := fileNames(r.Attachments); got != "own.txt" {
			t.Errorf("got the files %q, want its own alone", got)
		}
		if got, want := turns(r.History), "Left out: file plan.md (text/markdown).]"; !strings.Contains(got, want) {
			t.Errorf("got the history %q, want %q in it", got, want)
		}
		if got, want := handover(second), "handed over from a with 2 turns, 1 left out"; got != want {
			t.Errorf("got %q in the log, want %q", got, want)
		}
	})
}

// The name of a thread is no secret: who may not read what was said there hands over nothing of it, and learns not even
// how much there was.
func TestARequesterHandsOverOnlyWhatItMayRead(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able)
		g.agent("b", able, func(c *core.Card) { c.MaxConcurrent = 2 })
		anna, eve := g.connectAs(core.Principal{ID: "anna", Authenticated: true}), g.connectAs(core.Principal{ID: "eve", Authenticated: true})
		asked := g.open(anna, core.Request{To: core.ToAgent("a"), Thread: "t", Content: "mine?", Attachments: []core.File{{Name: "mine", Data: []byte("x")}}})
		g.report(a, asked, core.Text{Text: "yours"}, core.Done{})
		next := g.open(eve, core.Request{To: core.ToAgent("b"), Thread: "t", Content: "go on"})
		if r := next.AgentRequest(); handed(next) != nil || len(r.History) != 0 || len(r.Attachments) != 0 {
			t.Errorf("got %q, %q and %q, want nothing of somebody else's", handover(next), turns(r.History), fileNames(r.Attachments))
		}
		own := g.open(anna, core.Request{To: core.ToAgent("b"), Thread: "t", Content: "go on"})
		if handover(own) != "handed over from a with 2 turns and 1 file" {
			t.Errorf("got %q, want her own handed over", handover(own))
		}
	})
}

func TestAConversationIsHandedOverAfterARestartWithItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory(journal.Retention{})
		before := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		a, asker := before.agent("a", able), before.connect("r")
		first := before.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t", Content: "one?", Attachments: []core.File{{Name: "plan.md", Data: []byte("plan")}}})
		before.report(a, first, core.Text{Text: "1"}, core.Done{})
		before.sleep(time.Second)

		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		if err := g.hub.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.agent("b", able)
		next := g.open(g.connect("r"), core.Request{To: core.ToAgent("b"), Thread: "t", Content: "two?"})
		if got, want := handover(next), "handed over from a with 2 turns and 1 file"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if r := next.AgentRequest(); len(r.Attachments) != 1 || string(r.Attachments[0].Data) != "plan" {
			t.Errorf("got the files %q, want the plan", fileNames(r.Attachments))
		}
	})
}
