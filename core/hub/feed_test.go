package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// told is what a reader of all tasks was told, over several feeds.
type told struct {
	t    *testing.T
	at   string
	seqs map[core.TaskID][]uint64
	text map[core.TaskID]string
	ends map[core.TaskID]int
	gaps []hub.FeedBatch
}

func newTold(t *testing.T) *told {
	return &told{t: t, seqs: map[core.TaskID][]uint64{}, text: map[core.TaskID]string{}, ends: map[core.TaskID]int{}}
}

// feed begins a feed where the reader is.
func (r *told) feed(h *hub.Hub, p core.Principal) (*hub.Feed, func()) {
	r.t.Helper()
	s := h.Connect(hub.Identity{Principal: p})
	f, err := s.Feed(r.at)
	if err != nil {
		r.t.Fatal(err)
	}
	r.at = string(f.Position(nil))
	return f, func() { s.Close(nil) }
}

// take reads at most n events and returns how many. It stops early when nothing comes.
func (r *told) take(f *hub.Feed, n int) (got int) {
	r.t.Helper()
	for got < n {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		b, err := f.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return got
		}
		if err != nil {
			r.t.Fatal(err)
		}
		if b.Gap != nil || b.After != "" {
			r.gaps = append(r.gaps, b)
		}
		for _, e := range b.Events {
			if got == n {
				return got // the reader went away in the middle of a batch
			}
			r.note(b.Task, e)
			r.at = string(f.Append(nil, b.Task, e))
			got++
		}
	}
	return got
}

func (r *told) note(id core.TaskID, e core.Event) {
	for seq := e.Seq; seq <= e.End(); seq++ {
		r.seqs[id] = append(r.seqs[id], seq)
	}
	if text, ok := e.Body.(core.Text); ok {
		r.text[id] += text.Text
	}
	if e.Body.Kind().Ends() {
		r.ends[id]++
	}
}

// whole checks that every event of a task was told once, from one on.
func (r *told) whole(id core.TaskID, from uint64) {
	r.t.Helper()
	for i, seq := range r.seqs[id] {
		if seq != from+uint64(i) {
			r.t.Errorf("task %s: got the sequence %v, want it from %d without holes and repetitions", id, r.seqs[id], from)
			return
		}
	}
	if r.ends[id] != 1 {
		r.t.Errorf("task %s: got %d ends, want 1", id, r.ends[id])
	}
}

func TestAFeedResumesAtEveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kept := range []int{1, 100} { // from the journal, and from memory
			g := &testHub{t, coretest.NewHub(t, hub.Options{Limits: hub.Limits{FinishedTasks: kept}})}
			agent, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 8 }), g.connect("asker")
			before := g.ask(asker, "a") // it runs when the first feed begins
			r := newTold(t)
			_, leave := r.feed(g.hub, operator)
			leave()
			var all []*task.Task
			for i := range 6 {
				one := g.ask(asker, "a")
				all = append(all, one)
				g.report(agent, one, core.Text{Text: "a"}, core.Text{Text: "b"})
				if i%2 == 0 {
					g.report(agent, one, core.Done{Text: "ab"})
					if err := one.Recorded(t.Context(), 5); err != nil {
						t.Fatal(err)
					}
				}
			}
			for steps := 0; ; steps++ { // each feed reads one event
				f, leave := r.feed(g.hub, operator)
				n := r.take(f, 1)
				leave()
				if n == 0 {
					break
				}
				if steps == 10 {
					g.report(agent, all[1], core.Text{Text: "c"}, core.Done{})
				}
				if steps == 20 {
					g.report(agent, all[3], core.Done{})
					g.report(agent, all[5], core.Done{})
					g.report(agent, before, core.Text{Text: "so"}, core.Done{})
				}
			}
			for _, one := range all {
				r.whole(one.ID(), 1)
			}
			r.whole(before.ID(), 3) // opened and assigned were before
			if len(r.gaps) > 0 || len(r.seqs) != 7 {
				t.Errorf("with %d kept in memory: got gaps %v and %d tasks, want none and 7", kept, r.gaps, len(r.seqs))
			}
		}
	})
}

// The readers come and go at random while tasks are opened and end.
func TestAFeedThatIsCutOffAgainAndAgainIsToldEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Limits: hub.Limits{FinishedTasks: 4}})}
		agent := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 100 })
		asker := g.connect("asker")
		r := newTold(t)
		_, leave := r.feed(g.hub, operator)
		leave()
		var mu sync.Mutex
		var ids []core.TaskID
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() {
				for range 25 {
					one, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Keep: true, Unwatched: true})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					ids = append(ids, one.ID())
					mu.Unlock()
					for i := range 20 {
						if err := agent.Report(one.ID(), core.Text{Text: fmt.Sprint(i, " ")}, nil); err != nil {
							t.Error(err)
						}
					}
					if err := agent.Report(one.ID(), core.Done{}, nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() {
			work.Wait()
			close(done)
		}()
		random, over := rand.New(rand.NewPCG(1, 2)), false
		for n := 1; n > 0 || !over; {
			select {
			case <-done:
				over = true
			default:
			}
			f, leave := r.feed(g.hub, operator)
			n = r.take(f, 1+random.IntN(200))
			leave()
		}
		for _, id := range ids {
			r.whole(id, 1)
			if got := len(r.seqs[id]); got != 23 {
				t.Errorf("task %s: got %d events, want 23", id, got)
			}
		}
		if len(r.seqs) != 100 || len(r.gaps) > 0 {
			t.Errorf("got %d tasks and gaps %v, want 100 and none", len(r.seqs), r.gaps)
		}
	})
}

func TestAFeedResumesAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory(journal.Retention{})
		first := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		agent, asker := first.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 8 }), first.connect("asker")
		r := newTold(t)
		f, leave := r.feed(first.hub, operator)
		one, two := first.ask(asker, "a"), first.ask(asker, "a")
		first.report(agent, one, core.Text{Text: "a"}, core.Text{Text: "b"}, core.Text{Text: "c"})
		r.take(f, 4)
		leave()
		first.report(agent, one, core.Text{Text: "d"}, core.Done{})
		first.report(agent, two, core.Text{Text: "x"}, core.Done{})
		three := first.ask(asker, "a")
		first.report(agent, three, core.Done{})
		if err := first.hub.Close(t.Context(), "restart"); err != nil {
			t.Fatal(err)
		}

		second := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		if err := second.hub.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		f, leave = r.feed(second.hub, operator)
		defer leave()
		r.take(f, 100)
		agent, asker = second.agent("a", able), second.connect("asker")
		later := second.ask(asker, "a")
		second.report(agent, later, core.Done{})
		r.take(f, 100)
		for _, id := range []core.TaskID{one.ID(), two.ID(), three.ID(), later.ID()} {
			r.whole(id, 1)
		}
		if r.text[one.ID()] != "abcd" || len(r.gaps) > 0 {
			t.Errorf("got the text %q and gaps %v, want abcd and none", r.text[one.ID()], r.gaps)
		}
	})
}

func TestAFeedTellsWhatIsNoLongerKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &testHub{t, coretest.NewHub(t, hub.Options{})}
		agent, asker := first.agent("a", able), first.connect("asker")
		r := newTold(t)
		f, leave := r.feed(first.hub, operator)
		one := first.ask(asker, "a")
		r.take(f, 2)
		leave()
		first.report(agent, one, core.Done{})

		other := coretest.NewHub(t, hub.Options{}) // which lost its journal
		f, leave = r.feed(other, operator)
		defer leave()
		r.take(f, 10)
		want := []hub.FeedBatch{{Task: one.ID(), Gap: &task.Gap{From: 3}}, {After: one.ID()}}
		if d := cmp.Diff(want, r.gaps, cmpopts.IgnoreUnexported(hub.FeedBatch{})); d != "" {
			t.Errorf("gaps (-want +got):\n%s", d)
		}
	})
}

func TestAFeedIsForOperatorsAndNeedsItsOwnPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := coretest.NewHub(t, hub.Options{})
		s := h.Connect(hub.Identity{Principal: core.Principal{ID: "ann", Authenticated: true}})
		defer s.Close(nil)
		if _, err := s.Feed(""); core.AsFault(err).Code != core.CodeNotAuthorized {
			t.Errorf("got %v, want not_authorized", err)
		}
		o := h.Connect(hub.Identity{Principal: operator})
		defer o.Close(nil)
		for _, from := range []string{"x", "1.3", strings.Repeat("A", 24), strings.Repeat("A", 1<<16)} {
			if _, err := o.Feed(from); core.AsFault(err).Code != core.CodeInvalid {
				t.Errorf("%.30q: got %v, want invalid", from, err)
			}
		}
	})
}

// A secret that was cut in pieces stays hidden from those who resume in the middle of it.
func TestAResumedFeedShowsNoRestOfASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kept := range []int{1, 100} {
			secret, err := redact.New(nil, []string{"tops3cretvalue"})
			if err != nil {
				t.Fatal(err)
			}
			disk := journal.NewMemory(journal.Retention{})
			g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: disk, Limits: hub.Limits{FinishedTasks: kept}, Redact: func() *redact.Redactor { return secret }})}
			agent, asker := g.agent("a", able), g.connect("asker")
			r := newTold(t)
			_, leave := r.feed(g.hub, operator)
			leave()
			one := g.ask(asker, "a")
			for _, piece := range []string{"it is ", "tops", "3cret", "value", " really"} {
				g.report(agent, one, core.Text{Text: piece})
			}
			for n := 1; n > 0; {
				f, leave := r.feed(g.hub, operator)
				n = r.take(f, 1)
				leave()
				if n == 0 && r.ends[one.ID()] == 0 {
					g.report(agent, one, core.Done{})
					n = 1
				}
			}
			r.whole(one.ID(), 1)
			text := r.text[one.ID()]
			for _, part := range []string{"tops", "3cret", "value"} {
				if strings.Contains(text, part) {
					t.Errorf("got the text %q, want it without %q", text, part)
				}
			}
			if want := "it is " + redact.Mark + " really"; text != want {
				t.Errorf("got the text %q, want %q", text, want)
			}
		}
	})
}

// A position names so many running tasks. Who resumes while more run is told some of them again, and
// misses nothing.
func TestAFeedOfVeryManyRunningTasksMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Limits: hub.Limits{FinishedTasks: 1}})}
		agent, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 1000 }), g.connect("asker")
		r := newTold(t)
		f, leave := r.feed(g.hub, operator)
		var all []*task.Task
		for i := range 250 {
			one := g.ask(asker, "a")
			all = append(all, one)
			g.report(agent, one, core.Text{Text: "a"})
			if i%5 == 0 {
				g.report(agent, one, core.Done{})
			}
		}
		for random := rand.New(rand.NewPCG(1, 2)); ; {
			n := r.take(f, 1+random.IntN(300))
			if len(r.at) > hub.MaxPosition {
				t.Fatalf("got a position of %d bytes, want at most %d", len(r.at), hub.MaxPosition)
			}
			leave()
			f, leave = r.feed(g.hub, operator)
			if len(r.seqs) == len(all) && n < 300 {
				break
			}
			if len(all) == 250 && len(r.seqs) > 100 {
				for _, one := range all {
					if !one.HasEnded() {
						g.report(agent, one, core.Done{})
					}
				}
				all = append(all, g.ask(asker, "a"))
				g.report(agent, all[250], core.Text{Text: "a"}, core.Done{})
			}
		}
		r.take(f, whatComes)
		leave()
		for _, one := range all {
			got := map[uint64]bool{}
			for _, seq := range r.seqs[one.ID()] {
				got[seq] = true
			}
			if len(got) != 4 || r.ends[one.ID()] == 0 {
				t.Errorf("task %s: got the events %v, want 1 to 4", one.ID(), r.seqs[one.ID()])
			}
		}
		if len(r.gaps) > 0 {
			t.Errorf("got the gaps %v, want none", r.gaps)
		}
	})
}

// A feed that catches up more slowly than tasks are forgotten is told that it does not know them all.
func TestAFeedThatCatchesUpWhileTasksAreForgottenIsToldSo(t *testing.T) {
	tier.Full(t, "it forgets thousands of tasks")
	h := hub.New(hub.Options{Limits: hub.Limits{FinishedTasks: 1}, Journal: journal.NewMemory(journal.Retention{Bytes: 1 << 20})})
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
	if err := agent.Join(core.Card{ID: "a", Features: able, MaxConcurrent: 8}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	ask := func(who string, n int) (last *task.Task) {
		asker := h.Connect(hub.Identity{Principal: core.Principal{ID: who, Authenticated: true}})
		defer asker.Close(nil)
		for range n {
			one, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Keep: true, Unwatched: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := agent.Report(one.ID(), core.Done{}, nil); err != nil {
				t.Fatal(err)
			}
			last = one
		}
		return last
	}
	ask("quiet", 1)
	first := h.Connect(hub.Identity{Principal: operator})
	f, err := first.Feed("")
	if err != nil {
		t.Fatal(err)
	}
	at := string(f.Position(nil))
	first.Close(nil)
	ask("quiet", 300) // which stay in the list
	s := h.Connect(hub.Identity{Principal: operator})
	if f, err = s.Feed(at); err != nil {
		t.Fatal(err)
	}
	next := func() hub.FeedBatch {
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			f.Append(nil, b.Task, e)
		}
		return b
	}
	if b := next(); b.After != "" {
		t.Fatalf("got %+v first, want a task", b)
	}
	last := ask("loud", task.CatalogTasks+1000)
	for {
		b := next()
		if b.After != "" {
			break // it is told that some are missing
		}
		if b.Task == last.ID() {
			t.Fatal("got the newest task, want to be told before that some are missing")
		}
	}
	s.Close(nil)
	if err := h.Close(t.Context(), "over"); err != nil {
		t.Fatal(err)
	}
}
