package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// whatComes is more than any test has.
const whatComes = 1 << 20

// What all feeds share is bounded: one that reads nothing for long gets the rest from the tasks
// themselves and from the journal, and the others do not notice.
func TestAFeedThatFallsFarBehindIsToldEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := memory.New(1 << 30)
		g := &testHub{t, coretest.NewHub(t, hub.Options{Memory: budget, Limits: hub.Limits{FinishedTasks: 2}})}
		agent, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 8 }), g.connect("asker")
		early := g.ask(asker, "a") // which each feed reads by itself
		slow, quick := newTold(t), newTold(t)
		slowFeed, leave := slow.feed(g.hub, operator)
		defer leave()
		quickFeed, leaveQuick := quick.feed(g.hub, operator)
		defer leaveQuick()
		open := g.ask(asker, "a")
		slow.take(slowFeed, whatComes) // in the middle of it
		big, most := strings.Repeat("x", 64<<10), int64(0)
		var ids []core.TaskID
		for range 200 {
			one := g.ask(asker, "a")
			ids = append(ids, one.ID())
			g.report(agent, one, core.Text{Text: big}, core.Done{})
			g.report(agent, open, core.Text{Text: "-"})
			g.report(agent, early, core.Text{Text: "."})
			quick.take(quickFeed, whatComes)
			most = max(most, budget.HeldAs(memory.Sending))
		}
		if most < 1<<20 || most > 9<<20 {
			t.Errorf("got %d bytes at most for feeds, want what is shared to be counted, and at most about 8 MiB", most)
		}
		for slow.take(slowFeed, whatComes) > 0 {
		}
		later := g.ask(asker, "a") // it is live again
		g.report(agent, later, core.Done{})
		g.report(agent, open, core.Done{})
		g.report(agent, early, core.Done{})
		for name, r := range map[string]*told{"slow": slow, "quick": quick} {
			f := map[string]*hub.Feed{"slow": slowFeed, "quick": quickFeed}[name]
			for r.take(f, whatComes) > 0 {
			}
			for _, id := range append(ids, open.ID(), later.ID()) {
				r.whole(id, 1)
			}
			r.whole(early.ID(), 3)
			if len(r.gaps) > 0 {
				t.Errorf("%s: got the gaps %v, want none", name, r.gaps)
			}
		}
		leave()
		leaveQuick()
		if held := budget.HeldAs(memory.Sending); held != 0 {
			t.Errorf("got %d bytes held once nobody looks, want 0", held)
		}
	})
}

// Feeds share what they read, but each is shown only what its principal may see.
func TestFeedsShowTheirOwnTasksAsTheyAreAndThoseOfOthersWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, err := redact.New(nil, []string{"tops3cretvalue"})
		if err != nil {
			t.Fatal(err)
		}
		g := &testHub{t, coretest.NewHub(t, hub.Options{Redact: func() *redact.Redactor { return secret }})}
		agent := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 8 })
		ann, ben := core.Principal{ID: "ann", Operator: true}, core.Principal{ID: "ben", Operator: true}
		part := hub.ComponentIdentity("part", "").Principal
		readers := map[string]*told{}
		feeds := map[string]*hub.Feed{}
		for _, p := range []core.Principal{ann, ben, part} {
			readers[p.ID] = newTold(t)
			f, leave := readers[p.ID].feed(g.hub, p)
			defer leave()
			feeds[p.ID] = f
		}
		byAnn, byBen := g.ask(g.connectAs(ann), "a"), g.ask(g.connectAs(ben), "a")
		for _, piece := range []string{"it is ", "tops", "3cret", "value", " really", " to"} {
			g.report(agent, byAnn, core.Text{Text: piece})
			g.report(agent, byBen, core.Text{Text: piece})
		}
		for name, r := range readers { // the last word may begin a secret, and comes a second later
			r.take(feeds[name], whatComes)
		}
		g.sleep(2 * redact.HoldTime)
		const plain, hidden = "it is tops3cretvalue really to", "it is " + redact.Mark + " really to"
		for name, want := range map[string][2]string{"ann": {plain, hidden}, "ben": {hidden, plain}, part.ID: {plain, plain}} {
			r := readers[name]
			r.take(feeds[name], whatComes)
			if d := cmp.Diff(want, [2]string{r.text[byAnn.ID()], r.text[byBen.ID()]}); d != "" {
				t.Errorf("%s is shown (-want +got):\n%s", name, d)
			}
		}
		g.report(agent, byAnn, core.Done{})
		g.report(agent, byBen, core.Done{})
		for name, r := range readers {
			r.take(feeds[name], whatComes)
			r.whole(byAnn.ID(), 1)
			r.whole(byBen.ID(), 1)
		}
	})
}

// The JSON of an event that is shared is that of the event.
func TestAFeedEncodesEventsAsTheyAre(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("asker")
		s := g.connectAs(operator)
		f, err := s.Feed("")
		if err != nil {
			t.Fatal(err)
		}
		one := g.ask(asker, "a")
		g.report(agent, one, core.Text{Text: "grüße"}, core.Done{})
		for got, want := 0, one.Events(); got < len(want); {
			b, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Events {
				text, err := b.AppendJSON([]byte("before"), i)
				plain, _ := want[got].MarshalJSON()
				if err != nil || string(text) != "before"+string(plain) {
					t.Errorf("got %s and %v, want before%s", text, err, plain)
				}
				f.Append(nil, b.Task, b.Events[i])
				got++
			}
		}
	})
}

// A feed whose session was closed, such as for rules that have changed, gets nothing more.
func TestAFeedWhoseSessionHasEndedReadsNoFurther(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("asker")
		s, other := g.connectAs(operator), g.connectAs(operator)
		f, err := s.Feed("")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Feed(""); err != nil {
			t.Fatal(err)
		}
		one := g.ask(asker, "a")
		waits := make(chan error)
		s.Close(core.NewFault(core.CodeNotAuthorized, "the rules have changed"))
		go func() {
			_, err := f.Next(context.Background())
			waits <- err
		}()
		if err := <-waits; core.AsFault(err).Code != core.CodeNotAuthorized {
			t.Errorf("got %v, want the reason at once", err)
		}
		g.report(agent, one, core.Done{})
	})
}

// A feed that waits is woken by the first event of a task, each time.
func TestAFeedThatWaitsIsWoken(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("asker")
		const feeds = 3
		ends := make(chan string)
		for i := range feeds {
			s := g.connectAs(operator)
			f, err := s.Feed("")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					b, err := f.Next(context.Background())
					if err != nil {
						return
					}
					for _, e := range b.Events {
						f.Append(nil, b.Task, e)
						if e.Body.Kind().Ends() {
							ends <- fmt.Sprint(i)
						}
					}
				}
			}()
		}
		for range 10 {
			synctest.Wait() // all of them wait
			one := g.ask(asker, "a")
			synctest.Wait()
			g.report(agent, one, core.Done{})
			told := map[string]bool{}
			for range feeds {
				told[<-ends] = true
			}
			if len(told) != feeds {
				t.Errorf("got %v, want all feeds to be told", told)
			}
		}
	})
}

// Many feeds take from the same tasks while these are asked and answered.
func TestFeedsThatReadAtTheSameTimeAreAllToldEverythingOnce(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{Limits: hub.Limits{FinishedTasks: 64}})
	agent, asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "asker"}})
	defer agent.Close(nil)
	defer asker.Close(nil)
	if err := agent.Join(core.Card{ID: "a", Features: able, MaxConcurrent: 8}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	const feeds, tasks, askers = 8, 200, 4
	var readers, work sync.WaitGroup
	for range feeds {
		s := h.Connect(hub.Identity{Principal: operator})
		defer s.Close(nil)
		f, err := s.Feed("")
		if err != nil {
			t.Fatal(err)
		}
		readers.Go(func() {
			r := newTold(t)
			for ends := 0; ends < askers*tasks; {
				b, err := f.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range b.Events {
					r.note(b.Task, e)
					f.Append(nil, b.Task, e)
					if e.Body.Kind().Ends() {
						ends++
					}
				}
			}
			for id := range r.seqs {
				r.whole(id, 1)
			}
		})
	}
	for range askers {
		work.Go(func() {
			for range tasks {
				one, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Keep: true, Unwatched: true})
				if err != nil {
					t.Error(err)
					return
				}
				_ = agent.Report(one.ID(), core.Text{Text: "so"}, nil)
				_ = agent.Report(one.ID(), core.Done{}, nil)
			}
		})
	}
	work.Wait()
	readers.Wait()
}
