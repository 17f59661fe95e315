package hub_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// onBudget runs a test with a hub that has budgets, under a fake clock that starts at
// midnight UTC.
func onBudget(t *testing.T, opts hub.Options, test func(*testHub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(&testHub{t, coretest.NewHub(t, opts)}) })
}

func daily(by usage.By, key string, tokens int64) hub.Options {
	return hub.Options{Budgets: []usage.Budget{{By: by, Key: key, Tokens: tokens, Per: usage.Daily}}}
}

// total returns the usage of a key.
func (g *testHub) total(by usage.By, key string) usage.Total {
	g.t.Helper()
	all, _, err := g.hub.Usage(g.t.Context(), operator, by)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, x := range all {
		if x.Key == key {
			return x
		}
	}
	return usage.Total{}
}

// injections returns the contents of the injections into a task.
func injections(task *task.Task) (all []string) {
	for _, e := range task.Events() {
		if in, ok := e.Body.(core.Injected); ok {
			all = append(all, in.Content)
		}
	}
	return all
}

func TestUsageHasItsCostFromItsAgentOrThePrices(t *testing.T) {
	opts := hub.Options{Prices: usage.Prices{Currency: "EUR", Models: map[string]usage.Price{"big": {Input: 2e9, Output: 10e9}}}}
	opts.Budgets = []usage.Budget{{By: usage.ByRequester, Key: "asker", Cost: core.Money{Nanos: 1e9, Currency: "EUR"}, Per: usage.Daily}}
	onBudget(t, opts, func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("asker")
		task := g.ask(asker, "a")
		told := core.Money{Nanos: 999_000_000, Currency: "EUR"}
		g.report(a, task, core.Usage{Input: 100, Model: "big"}, core.Usage{Output: 1, Cost: told}, core.Usage{Output: 1, Model: "small"}, core.Done{})
		want := usage.Total{Key: "a", Tokens: core.Usage{Input: 100, Output: 2}, Events: 3, Unpriced: 1, Cost: core.Money{Nanos: 999_200_000, Currency: "EUR"}}
		if d := cmp.Diff(want, g.total(usage.ByAgent, "a")); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		for _, e := range task.Events() {
			if u, ok := e.Body.(core.Usage); ok && u.Model == "big" && u.Cost != (core.Money{Nanos: 200_000, Currency: "EUR"}) {
				t.Errorf("the event: got %+v, want its cost in it", u)
			}
		}
		task = g.ask(asker, "a")
		g.report(a, task, core.Usage{Input: 400, Model: "big"}, core.Done{})
		_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "more"}, hub.OpenOptions{})
		if f := core.AsFault(err); f == nil || f.Code != core.CodeBudget || !strings.Contains(f.Message, "may use 1.00 EUR a day") {
			t.Errorf("after 1 EUR: got %v, want the budget used up", err)
		}
	})
}

func TestOnlyUsageEventsCount(t *testing.T) {
	onBudget(t, daily(usage.ByAgent, "a", 1_000_000), func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("asker")
		task := g.ask(asker, "a")
		g.report(a, task, core.Usage{Input: 30, Output: 12}, core.Done{TokensUsed: 42})
		if err := a.Report(task.ID(), core.Usage{Output: 1}, nil); err == nil {
			t.Error("usage after the end: got no error, want it refused")
		}
		want := usage.Total{Key: string(task.ID()), Tokens: core.Usage{Input: 30, Output: 12}, Events: 1, Unpriced: 1}
		if d := cmp.Diff(want, g.total(usage.ByTask, string(task.ID()))); d != "" {
			t.Errorf("the task (-want +got):\n%s", d)
		}
		if got := g.total(usage.ByAgent, "a").Tokens.Total(); got != 42 {
			t.Errorf("got %d tokens, want 42: Done repeats the usage", got)
		}
	})
}

func TestUsageSumsNeitherOverflowNorGoNegative(t *testing.T) {
	onBudget(t, daily(usage.ByAgent, "a", 10), func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("asker")
		task := g.ask(asker, "a")
		g.report(a, task, core.Usage{Input: -5, Output: 4})
		if got := g.total(usage.ByAgent, "a").Tokens; got != (core.Usage{Output: 4}) {
			t.Errorf("got %+v, want 4 of output", got)
		}
		for range 4 {
			g.report(a, task, core.Usage{Input: 1<<63 - 1, Output: 1<<63 - 1, Thinking: 1<<63 - 1})
		}
		if got := g.total(usage.ByAgent, "a").Tokens; got.Total() <= 0 {
			t.Errorf("got %+v, want no overflow", got)
		}
		_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "x"}, hub.OpenOptions{})
		g.wantFault("beyond the budget", err, core.CodeBudget)
	})
}

func TestARequesterWithoutTokensIsRefused(t *testing.T) {
	for by, key := range map[usage.By]string{usage.ByAgent: "a", usage.ByRequester: "asker", usage.ByThread: "th"} {
		t.Run(string(by), func(t *testing.T) {
			onBudget(t, daily(by, key, 100), func(g *testHub) {
				a, asker := g.agent("a", 0), g.connect("asker")
				req := core.Request{To: core.ToAgent("a"), Content: "go", Thread: "th"}
				task := g.open(asker, req)
				g.report(a, task, core.Usage{Output: 99}, core.Done{})
				task = g.open(asker, req)
				g.report(a, task, core.Usage{Output: 900}, core.Text{Text: "it is not cut"}, core.Done{})

				refused, err := asker.Open(req, hub.OpenOptions{})
				g.wantFault("beyond the budget", err, core.CodeBudget)
				for _, w := range []string{string(by), key, "999", "100 tokens a day", "2000-01-02T00:00:00Z"} {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("got %q, want it to contain %s", err, w)
					}
				}
				if r := refused.Receipt(); r.Stage != core.StageRefused || r.Fault.Code != core.CodeBudget || refused.Answer().End != core.KindFailed {
					t.Errorf("got the receipt %+v, want it recorded as refused", r)
				}
				if n := g.hub.Counters()["refused.budget"]; n != 1 {
					t.Errorf("got %d refusals counted, want 1", n)
				}

				other := map[usage.By]core.Request{
					usage.ByAgent:     {To: core.ToAgent("b"), Thread: "th"},
					usage.ByThread:    {To: core.ToAgent("a"), Thread: "other"},
					usage.ByRequester: {To: core.ToAgent("a"), Thread: "th"},
				}[by]
				g.agent("b", 0)
				if by == usage.ByRequester {
					asker = g.connect("another")
				}
				g.open(asker, other)
			})
		})
	}
}

func TestABudgetStartsOverAtMidnight(t *testing.T) {
	onBudget(t, daily(usage.ByAgent, "a", 100), func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("asker")
		task := g.ask(asker, "a")
		g.report(a, task, core.Usage{Output: 100}, core.Done{})
		ask := func() error {
			task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "x"}, hub.OpenOptions{})
			if err == nil {
				g.report(a, task, core.Done{})
			}
			return err
		}
		g.sleep(24*time.Hour - time.Nanosecond)
		g.wantFault("at the last moment of the day", ask(), core.CodeBudget)
		g.sleep(time.Nanosecond)
		if err := ask(); err != nil {
			t.Errorf("at midnight: got %v, want no error", err)
		}
		for day, want := range map[string]int64{"2000-01-01": 100, "2000-01-02": 0} {
			if got := g.total(usage.ByDay, day).Tokens.Total(); got != want {
				t.Errorf("%s: got %d tokens, want %d", day, got, want)
			}
		}
	})
}

func TestATaskForAnyAgentGoesToOneWithinItsBudget(t *testing.T) {
	onBudget(t, daily(usage.ByAgent, "a", 10), func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("asker")
		g.report(a, g.ask(asker, "*"), core.Usage{Output: 10}, core.Done{})
		b := g.agent("b", 0)
		for range 3 {
			task := g.ask(asker, "*")
			if task.Agent() != "b" {
				t.Errorf("got agent %s, want b", task.Agent())
			}
			g.report(b, task, core.Done{})
		}
	})
}

func TestAnAcceptedTaskRunsAfterTheBudgetIsSpent(t *testing.T) {
	onBudget(t, daily(usage.ByAgent, "a", 10), func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("asker")
		first, queued := g.ask(asker, "a"), g.ask(asker, "a")
		g.report(a, first, core.Usage{Output: 10}, core.Done{})
		if queued.State() != task.Running {
			t.Errorf("got %s, want running", queued.State())
		}
		g.report(a, queued, core.Usage{Output: 10}, core.Done{})
	})
}

func TestAnAgentIsWarnedOfABudgetOncePerTask(t *testing.T) {
	opts := daily(usage.ByAgent, usage.Everybody, 100)
	onBudget(t, opts, func(g *testHub) {
		takes := g.agent("takes", core.FeatureInjection, func(c *core.Card) { c.MaxConcurrent = 2 })
		unreadable, asker := g.agent("unreadable", 0), g.connect("asker")
		one, two, three := g.ask(asker, "takes"), g.ask(asker, "takes"), g.ask(asker, "unreadable")
		g.report(takes, one, core.Usage{Output: 79})
		if got := injections(one); len(got) != 0 {
			t.Errorf("at 79%%: got %q, want nothing", got)
		}
		g.report(takes, one, core.Usage{Output: 1}, core.Usage{Output: 1})
		g.report(takes, two, core.Usage{Output: 2}, core.Usage{Output: 50})
		g.report(unreadable, three, core.Usage{Output: 99})
		for task, want := range map[*task.Task]string{one: "80% consumed. 20 tokens", two: "83% consumed. 17 tokens"} {
			if got := injections(task); len(got) != 1 || !strings.Contains(got[0], want) {
				t.Errorf("got %q, want one with %q", got, want)
			}
		}
		if got := injections(three); len(got) != 0 {
			t.Errorf("an agent without injections: got %q, want nothing", got)
		}
		warned := 0
		for _, e := range g.events(takes) {
			if in, ok := e.Body.(core.Injected); ok {
				warned++
				if in.Priority != core.InjectionImmediate || in.Source != "system" || in.ID == "" {
					t.Errorf("got %+v, want it immediate and from the system", in)
				}
			}
		}
		if warned != 2 {
			t.Errorf("got %d warnings to the agent, want one in each task", warned)
		}
		for _, e := range g.events(unreadable) {
			if e.Body.Kind() == core.KindInjected {
				t.Errorf("got %+v, want no event that the agent did not declare", e)
			}
		}
	})
}

func TestABudgetWarningIsRepeatedOnAnotherDay(t *testing.T) {
	onBudget(t, daily(usage.ByAgent, "a", 100), func(g *testHub) {
		a, asker := g.agent("a", core.FeatureInjection), g.connect("asker")
		task := g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(100 * time.Hour)})
		g.report(a, task, core.Usage{Output: 90})
		g.sleep(24 * time.Hour)
		g.report(a, task, core.Usage{Output: 10})
		if got := injections(task); len(got) != 1 {
			t.Errorf("got %q, want one warning on the new day", got)
		}
		g.report(a, task, core.Usage{Output: 75})
		if got := injections(task); len(got) != 2 {
			t.Errorf("got %q, want another warning", got)
		}
	})
}

func TestUsageBeforeARetryCountsForItsAgent(t *testing.T) {
	store := &coretest.MemoryUsage{}
	onBudget(t, hub.Options{UsageStore: store}, func(g *testHub) {
		a, b, asker := g.agent("a", 0), g.agent("b", 0), g.connect("asker")
		sessions := map[core.AgentID]*hub.Session{"a": a, "b": b}
		task := g.ask(asker, "*")
		first := task.Agent()
		g.report(sessions[first], task, core.Usage{Input: 5}, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "not now")})
		second := task.Agent()
		if second == first {
			t.Fatalf("got a retry with %s again, want the other agent", second)
		}
		g.report(sessions[second], task, core.Usage{Input: 7}, core.Done{})
		if err := task.Recorded(g.t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		kept := map[core.AgentID]int64{}
		if err := store.Replay(context.Background(), func(s usage.Record) bool {
			kept[s.Agent] += s.Tokens.Input
			return true
		}); err != nil {
			t.Fatal(err)
		}
		for agent, want := range map[core.AgentID]int64{first: 5, second: 7} {
			if got := g.total(usage.ByAgent, string(agent)).Tokens.Input; got != want || kept[agent] != want {
				t.Errorf("%s: got %d, and %d kept, want %d", agent, got, kept[agent], want)
			}
		}
	})
}

// A restarted hub has the usage and the budgets of the one before, over any number of
// restarts: the usage events in the journal are not counted again.
func TestUsageCountsOnceAfterEveryStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, kept := &coretest.MemoryUsage{}, journal.NewMemory(journal.Retention{})
		opts := daily(usage.ByRequester, "asker", 100)
		opts.UsageStore, opts.Journal = store, kept
		var id core.TaskID
		for life := range 3 {
			h := hub.New(opts)
			g := &testHub{t, h}
			if err := h.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			a, asker := g.agent("a", 0), g.connect("asker")
			if life == 0 {
				task := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "th"})
				id = task.ID()
				g.report(a, task, core.Usage{Input: 60, CacheRead: 1000}, core.Usage{Output: 40}, core.Done{TokensUsed: 100})
			} else if _, err := h.Task(t.Context(), core.Principal{ID: "asker"}, id); err != nil {
				t.Errorf("life %d: got %v, want the task from the journal", life, err)
			}
			for by, key := range map[usage.By]string{
				usage.ByAgent: "a", usage.ByRequester: "asker", usage.ByThread: "th", usage.ByTask: string(id), usage.ByDay: "2000-01-01",
			} {
				want := usage.Total{Key: key, Tokens: core.Usage{Input: 60, Output: 40, CacheRead: 1000}, Events: 2, Unpriced: 2}
				if d := cmp.Diff(want, g.total(by, key)); d != "" {
					t.Errorf("life %d, by %s (-want +got):\n%s", life, by, d)
				}
			}
			_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "more"}, hub.OpenOptions{})
			g.wantFault("beyond the budget", err, core.CodeBudget)
			a.Close(nil)
			asker.Close(nil)
			if err := h.Close(t.Context(), "restart"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// stubborn is a store whose first writes return an error after they were made.
type stubborn struct {
	*coretest.MemoryUsage
	mu   sync.Mutex
	left int
}

func (s *stubborn) Append(ctx context.Context, all ...usage.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.MemoryUsage.Append(ctx, all...); err != nil || s.left == 0 {
		return err
	}
	s.left--
	return errors.New("the disk is slow")
}

func TestARetriedUsageRecordCountsOnce(t *testing.T) {
	store := &stubborn{MemoryUsage: &coretest.MemoryUsage{}, left: 3}
	onBudget(t, hub.Options{UsageStore: store}, func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("asker")
		task := g.ask(asker, "a")
		g.report(a, task, core.Usage{Input: 1}, core.Usage{Input: 2}, core.Done{})
		if err := task.Recorded(g.t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		var got []uint64
		if err := store.Replay(context.Background(), func(s usage.Record) bool {
			got = append(got, s.Seq)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]uint64{3, 4}, got); d != "" {
			t.Errorf("stored when the task is recorded (-want +got):\n%s", d)
		}
		if n := g.hub.Counters()["journal.refused"]; n != 3 {
			t.Errorf("got %d refusals counted, want 3", n)
		}
	})
}
