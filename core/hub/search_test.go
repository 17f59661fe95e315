package hub_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// found returns what a search shows of each task that it finds, over all pages.
func (g *testHub) found(p core.Principal, f task.Filter) (all []string) {
	g.t.Helper()
	for {
		page, err := g.hub.Tasks(g.t.Context(), p, f)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, s := range page.Tasks {
			all = append(all, s.Found)
		}
		if f.Before = page.Before; f.Before == "" {
			return all
		}
	}
}

// What is found does not depend on where a task is kept, nor on the size of a page.
func TestASearchFindsWhatWasAskedAndAnsweredInMemoryAndInTheJournal(t *testing.T) {
	for _, kept := range []int{1, 100} {
		withHub(t, hub.Limits{FinishedTasks: kept}, func(g *testHub) {
			a := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 8 })
			ann, bob := g.connect("ann"), g.connect("bob")
			ask := func(s *hub.Session, r core.Request) *task.Task {
				r.To = core.ToAgent("a")
				return g.open(s, r)
			}
			g.report(a, ask(ann, core.Request{Content: "Where is the Teapot?"}), core.Text{Text: "in the cup"}, core.Text{Text: "board"}, core.Done{})
			g.report(a, ask(bob, core.Request{Content: "two", Data: []byte(`{"what":"teapot"}`)}), core.Done{Data: []byte(`{"where":"garden"}`)})
			g.report(a, ask(ann, core.Request{Content: "three", Thread: "teapots"}), core.Failed{Fault: core.NewFault(core.CodeInternal, "it broke")})
			g.report(a, ask(ann, core.Request{Content: strings.Repeat("x", 100) + "\xffneedle" + strings.Repeat("y", 300)}), core.Done{})
			g.sleep(time.Second) // the journal has them
			g.report(a, ask(bob, core.Request{Content: "four"}), core.Done{})
			runs := ask(ann, core.Request{Content: "five"})
			g.report(a, runs, core.Text{Text: "so far a sieve"})
			for _, tt := range []struct {
				text string
				by   core.Principal
				want []string
			}{
				{"teapot", operator, []string{"teapots", `{"what":"teapot"}`, "Where is the Teapot?"}},
				{"TEAPOT", core.Principal{ID: "bob"}, []string{`{"what":"teapot"}`}},
				{"teapot", core.Principal{ID: "eve"}, nil},
				{"cupboard", operator, []string{"in the cupboard"}},
				{"garden", operator, []string{`{"where":"garden"}`}},
				{"it broke", operator, []string{"it broke"}},
				{"sieve", operator, []string{"so far a sieve"}},
				{"needle", operator, []string{"…" + strings.Repeat("x", 39) + "needle" + strings.Repeat("y", 160) + "…"}},
				{"t.apot", operator, nil},
				{string(runs.ID()), operator, nil}, // an id is looked up, not searched for
			} {
				for _, limit := range []int{0, 1} {
					if d := cmp.Diff(tt.want, g.found(tt.by, task.Filter{Text: tt.text, Limit: limit}), cmpopts.EquateEmpty()); d != "" {
						t.Errorf("%q by %s, %d kept in memory, limit %d (-want +got):\n%s", tt.text, tt.by.ID, kept, limit, d)
					}
				}
			}
			if got := g.found(operator, task.Filter{Text: "teapot", State: "failed"}); len(got) != 1 {
				t.Errorf("of those that failed: got %q, want the one", got)
			}
			g.report(a, runs, core.Done{})
		})
	}
}

// A secret of somebody else is not found, so that nobody can guess at it; its owner finds it while it is in
// memory, where it is as it was said.
func TestASearchDoesNotFindWhatIsRedacted(t *testing.T) {
	for _, kept := range []int{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			r, err := redact.New([]string{`sk-[a-z]{8}`}, nil)
			if err != nil {
				t.Fatal(err)
			}
			g := &testHub{t, coretest.NewHub(t, hub.Options{Limits: hub.Limits{FinishedTasks: kept}, Redact: func() *redact.Redactor { return r }})}
			a, ann := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("ann")
			g.report(a, g.open(ann, core.Request{To: core.ToAgent("a"), Content: "keep sk-abcdefgh"}), core.Done{})
			g.report(a, g.open(ann, core.Request{To: core.ToAgent("a"), Content: "which?"}), core.Text{Text: "it is sk-abc"}, core.Text{Text: "defgh"}, core.Done{})
			g.sleep(time.Second) // the journal has them
			g.report(a, g.ask(ann, "a"), core.Done{})
			for _, text := range []string{"abcdefgh", "sk-"} {
				if got := g.found(operator, task.Filter{Text: text}); len(got) > 0 {
					t.Errorf("%q, with %d kept in memory: got %q, want nothing", text, kept, got)
				}
				own := 0
				if kept > 1 {
					own = 2
				}
				if got := g.found(core.Principal{ID: "ann"}, task.Filter{Text: text}); len(got) != own {
					t.Errorf("%q by who said it, with %d kept in memory: got %q, want %d", text, kept, got, own)
				}
			}
			if d := cmp.Diff([]string{"it is [redacted]", "keep [redacted]"}, g.found(operator, task.Filter{Text: "[REDACTED]"})); d != "" {
				t.Errorf("what is shown in its place (-want +got):\n%s", d)
			}
		})
	}
}

// forgetful is a journal that has dropped everything while gone is set.
type forgetful struct {
	journal.Journal
	gone bool
}

func (f *forgetful) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if f.gone {
		return nil, journal.ErrUnknown
	}
	return f.Journal.Read(ctx, id, after, limit)
}

func TestASearchDoesNotFindWhatIsNoLongerKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &forgetful{Journal: journal.NewMemory(journal.Retention{})}
		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: disk, Limits: hub.Limits{FinishedTasks: 1}})}
		a, ann := g.agent("a", able), g.connect("ann")
		g.report(a, g.open(ann, core.Request{To: core.ToAgent("a"), Content: "needle"}), core.Done{})
		g.report(a, g.open(ann, core.Request{To: core.ToAgent("a"), Content: "where?"}), core.Done{Text: "needle"})
		g.sleep(time.Second) // the journal has them
		g.report(a, g.ask(ann, "a"), core.Done{})
		for _, disk.gone = range []bool{false, true} {
			want := 2
			if disk.gone {
				want = 0
			}
			if got := g.found(operator, task.Filter{Text: "needle"}); len(got) != want {
				t.Errorf("dropped: %t: got %q, want %d", disk.gone, got, want)
			}
		}
		disk.gone = false // for the checker of the promises
	})
}

// conversations lists the pages of conversations as "id: title (state) agents".
func (g *testHub) conversations(p core.Principal, f hub.ThreadFilter) (pages [][]string) {
	g.t.Helper()
	for {
		page, err := g.hub.Threads(g.t.Context(), p, f)
		if err != nil {
			g.t.Fatal(err)
		}
		listed := []string{}
		for _, s := range page.Threads {
			var agents []string
			for _, id := range s.Agents {
				agents = append(agents, string(id))
			}
			name := string(s.ID)
			if task.IsID(name) {
				name = "its task"
			}
			listed = append(listed, name+": "+s.Title+" ("+s.State+") "+strings.Join(agents, ","))
		}
		pages = append(pages, listed)
		if f.Before = page.Before; f.Before == "" {
			return pages
		}
	}
}

func TestConversationsAreListedOnceByTheirLatestTask(t *testing.T) {
	for _, kept := range []int{1, 100} {
		withHub(t, hub.Limits{FinishedTasks: kept}, func(g *testHub) {
			a, b := g.agent("a", able|core.FeatureNotices, func(c *core.Card) { c.MaxConcurrent = 8 }), g.agent("b", able)
			ann, bob := g.connect("ann"), g.connect("bob")
			ask := func(s *hub.Session, to *hub.Session, thread core.ThreadID, content string) *task.Task {
				return g.open(s, core.Request{To: core.ToAgent(to.AgentID()), Thread: thread, Content: content})
			}
			g.report(a, ask(ann, a, "plan", "Plan\n  the garden"), core.Done{})
			single := ask(bob, a, "", "alone at first")
			g.report(a, single, core.Done{})
			for range 12 {
				g.report(a, ask(ann, a, "plan", "go on"), core.Done{})
			}
			g.report(b, ask(ann, b, "plan", "and you?"), core.Failed{Fault: core.NewFault(core.CodeInternal, "no")})
			g.report(a, ask(bob, a, core.ThreadID(single.ID()), "no more"), core.Done{})
			g.report(a, ask(ann, a, "", strings.Repeat("word ", 40)), core.Done{})
			g.report(a, g.open(ann, core.Request{To: core.ToAgent("a"), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "x"}, Content: " "}), core.Done{})
			g.sleep(time.Second)
			long := "its task: " + strings.TrimSpace(strings.Repeat("word ", 15)[:72]) + "… (done) a"
			all := []string{long, "its task: alone at first (done) a", "plan: Plan the garden (failed) b,a"}
			for _, tt := range []struct {
				by   core.Principal
				f    hub.ThreadFilter
				want [][]string
			}{
				{operator, hub.ThreadFilter{}, [][]string{all}},
				{operator, hub.ThreadFilter{Limit: 2}, [][]string{all[:2], all[2:]}},
				{operator, hub.ThreadFilter{Limit: 1}, [][]string{all[:1], all[1:2], all[2:]}},
				{operator, hub.ThreadFilter{Agent: "b"}, [][]string{all[2:]}},
				{operator, hub.ThreadFilter{State: "failed"}, [][]string{all[2:]}},
				{operator, hub.ThreadFilter{State: "running"}, [][]string{{}}},
				{core.Principal{ID: "bob"}, hub.ThreadFilter{}, [][]string{all[1:2]}},
				{core.Principal{ID: "eve"}, hub.ThreadFilter{}, [][]string{{}}},
			} {
				if d := cmp.Diff(tt.want, g.conversations(tt.by, tt.f)); d != "" {
					t.Errorf("%+v by %s, with %d kept in memory (-want +got):\n%s", tt.f, tt.by.ID, kept, d)
				}
			}
		})
	}
}
