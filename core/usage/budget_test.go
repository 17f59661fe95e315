package usage_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func clock(now time.Time) func() time.Time { return func() time.Time { return now } }

func spent(tokens int64, at time.Time) usage.Record {
	return usage.Record{Task: "k", Agent: "ben", Requester: "ana", Thread: "th", At: at, Tokens: core.Usage{Input: tokens}}
}

func refused(t *testing.T, b *usage.Budgets, by usage.By, key string, now time.Time, texts ...string) {
	t.Helper()
	err := b.Check(by, key, clock(now))
	if !errors.Is(err, &core.Fault{Code: core.CodeBudget}) {
		t.Errorf("%s %s: got %v, want a budget fault", by, key, err)
		return
	}
	for _, w := range texts {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s %s: got %q, want it to say %q", by, key, err, w)
		}
	}
}

func allowed(t *testing.T, b *usage.Budgets, by usage.By, key string, now time.Time) {
	t.Helper()
	if err := b.Check(by, key, clock(now)); err != nil {
		t.Errorf("%s %s: got %v, want no error", by, key, err)
	}
}

func TestABudgetWarnsAtEightyPercentAndRefusesWhenSpent(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{{By: usage.ByAgent, Key: "ben", Tokens: 1000, Per: usage.Daily}})
	if near := b.Add(spent(799, noon)); len(near) != 0 {
		t.Errorf("at 799 of 1000: got %+v, want no warning", near)
	}
	near := b.Add(spent(1, noon))
	if len(near) != 1 || !near[0].Crossed() || near[0].Spent() || near[0].Percent() != 80 {
		t.Fatalf("at 800 of 1000: got %+v, want nearly spent", near)
	}
	if got, want := near[0].Warning(), `SYSTEM: Budget is 80% consumed. 200 tokens remaining. (agent "ben" may use 1000 tokens a day, and the next day begins at 2026-01-06T00:00:00Z)`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	allowed(t, b, usage.ByAgent, "ben", noon)
	if near = b.Add(spent(199, noon)); len(near) != 1 || near[0].Crossed() || near[0].Spent() {
		t.Errorf("at 999: got %+v, want still nearly spent", near)
	}
	allowed(t, b, usage.ByAgent, "ben", noon)
	if near = b.Add(spent(1, noon)); len(near) != 1 || !near[0].Crossed() || !near[0].Spent() {
		t.Errorf("at 1000: got %+v, want it spent", near)
	}
	refused(t, b, usage.ByAgent, "ben", noon, "with 1000 tokens", `agent "ben" may use 1000 tokens a day`, "2026-01-06T00:00:00Z")
	allowed(t, b, usage.ByAgent, "ali", noon)
	allowed(t, b, usage.ByRequester, "ben", noon)
}

func TestADayOfABudgetEndsAtMidnightUTC(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{{By: usage.ByThread, Key: "th", Tokens: 10, Per: usage.Daily}})
	last := time.Date(2026, 1, 5, 23, 59, 59, 999_999_999, time.UTC)
	next := last.Add(1)
	b.Add(spent(10, last))
	refused(t, b, usage.ByThread, "th", last)
	refused(t, b, usage.ByThread, "th", last.In(time.FixedZone("east", 9*60*60)))
	allowed(t, b, usage.ByThread, "th", next)
	if near := b.Add(spent(9, next)); len(near) != 1 || near[0].Used != 9 || !near[0].Crossed() {
		t.Errorf("got %+v, want 9 used on the new day", near)
	}
	b.Add(spent(100, last)) // a late record of the day before
	allowed(t, b, usage.ByThread, "th", next)
}

func TestATotalBudgetNeverResets(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{{By: usage.ByRequester, Key: "ana", Tokens: 10, Per: usage.Ever}})
	b.Add(spent(5, noon))
	b.Add(spent(5, noon.AddDate(0, 5, 0)))
	refused(t, b, usage.ByRequester, "ana", noon.AddDate(1, 0, 0), "10 tokens in total", "only the operator")
}

func TestABudgetForEverybodyAppliesToEachSeparately(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{{By: usage.ByAgent, Key: usage.Everybody, Tokens: 10, Per: usage.Daily}})
	if near := b.Add(spent(10, noon)); len(near) != 1 || near[0].Key != "ben" {
		t.Errorf("got %+v, want the status of ben", near)
	}
	refused(t, b, usage.ByAgent, "ben", noon, `agent "ben"`)
	allowed(t, b, usage.ByAgent, "ali", noon)
}

func TestATaskWithoutAThreadCountsForNoThreadBudget(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{{By: usage.ByThread, Key: usage.Everybody, Tokens: 10, Per: usage.Daily}})
	s := spent(100, noon)
	s.Thread = ""
	if near := b.Add(s); len(near) != 0 {
		t.Errorf("got %+v, want nothing", near)
	}
	allowed(t, b, usage.ByThread, "", noon)
}

func TestCacheTokensAreFree(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{{By: usage.ByAgent, Key: "ben", Tokens: 10, Per: usage.Daily}})
	s := spent(1, noon)
	s.Tokens = core.Usage{Input: 1, Output: 2, Thinking: 4, CacheRead: 1000, CacheWrite: 1000}
	if b.Add(s); b.Add(s)[0].Used != 14 {
		t.Error("got another total, want 14: input, output and thinking")
	}
}

func TestARecordCountsForEveryBudgetThatApplies(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{
		{By: usage.ByAgent, Key: "ben", Tokens: 10, Per: usage.Daily},
		{By: usage.ByAgent, Key: usage.Everybody, Tokens: 1000, Per: usage.Ever},
		{By: usage.ByRequester, Key: "ana", Tokens: 9, Per: usage.Ever},
		{By: usage.ByThread, Key: "other", Tokens: 1, Per: usage.Ever},
	})
	near := b.Add(spent(8, noon))
	if len(near) != 2 || near[0].By != usage.ByAgent || near[1].By != usage.ByRequester || near[0].Same(near[1]) {
		t.Fatalf("got %+v, want the budgets of the agent and of the requester", near)
	}
	if again := b.Add(spent(1, noon)); !again[0].Same(near[0]) || again[0].Same(b.Add(spent(8, noon.AddDate(0, 0, 1)))[0]) {
		t.Error("Same: want true on the same day and false on the next")
	}
}

func TestTotalsDoNotOverflow(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{{By: usage.ByAgent, Key: "ben", Tokens: 10, Per: usage.Daily}})
	b.Add(spent(math.MaxInt64, noon))
	b.Add(spent(math.MaxInt64, noon))
	refused(t, b, usage.ByAgent, "ben", noon)
}

func TestTasksAreRefusedOnceABudgetIsSpent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := usage.Budget{
			By: usage.ByAgent, Key: rapid.SampledFrom([]string{"a", "b", usage.Everybody}).Draw(t, "key"),
			Tokens: rapid.Int64Range(1, 50).Draw(t, "tokens"), Per: rapid.SampledFrom([]usage.Period{usage.Daily, usage.Ever}).Draw(t, "per"),
		}
		b := usage.NewBudgets([]usage.Budget{limit})
		now := noon
		used := map[string]int64{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if next := now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "hours")) * time.Hour); next.YearDay() != now.YearDay() && limit.Per == usage.Daily {
				clear(used)
				now = next
			} else {
				now = next
			}
			agent := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "agent")
			n := rapid.Int64Range(0, 20).Draw(t, "spent")
			applies := limit.Key == usage.Everybody || limit.Key == agent
			near := b.Add(usage.Record{Agent: core.AgentID(agent), At: now, Tokens: core.Usage{Output: n}})
			if applies {
				used[agent] += n
			}
			if want := applies && used[agent]*100 >= limit.Tokens*usage.NearlySpent; (len(near) > 0) != want {
				t.Fatalf("%s at %d of %d: got a warning %t, want %t", agent, used[agent], limit.Tokens, len(near) > 0, want)
			}
			for _, other := range []string{"a", "b", "c"} {
				if got, want := b.Check(usage.ByAgent, other, clock(now)) != nil, used[other] >= limit.Tokens; got != want {
					t.Fatalf("%s at %d of %d: got it refused %t, want %t", other, used[other], limit.Tokens, got, want)
				}
			}
		}
	})
}

func TestOfTooManyHoldersTheMostRecentAreKept(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{{By: usage.ByRequester, Key: usage.Everybody, Tokens: 1, Per: usage.Ever}})
	for i := range usage.MaxKeys + 1 {
		b.Add(usage.Record{Requester: fmt.Sprint(i), At: noon, Tokens: core.Usage{Input: 1}})
	}
	allowed(t, b, usage.ByRequester, "0", noon)
	refused(t, b, usage.ByRequester, "1", noon)
	refused(t, b, usage.ByRequester, fmt.Sprint(usage.MaxKeys), noon)
}
