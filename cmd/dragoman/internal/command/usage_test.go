package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestTheBarsOfTheDaysAreAsLongAsWhatWasUsed(t *testing.T) {
	var days []usage.Total
	for i := range 16 {
		days = append(days, usage.Total{Key: fmt.Sprintf("2026-01-%02d", i+1), Tokens: core.Usage{Input: 1}, Events: 1})
	}
	days[13].Tokens = core.Usage{Input: 300, Output: 100}
	days[14].Tokens = core.Usage{CacheRead: 1000} // which counts as nothing
	days[15].Tokens = core.Usage{Output: 800}
	var out strings.Builder
	if err := printDays(&out, days, 37); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"DAY TOTAL", "2026-01-03 1 ▏"}
	if d := cmp.Diff(want, got[:2]); d != "" || len(got) != 1+shownDays {
		t.Errorf("got %d lines, want %d, and (-want +got):\n%s", len(got), 1+shownDays, d)
	}
	want = []string{"2026-01-14 400 " + strings.Repeat("█", 10), "2026-01-15 0", "2026-01-16 800 " + strings.Repeat("█", 20)}
	if d := cmp.Diff(want, got[len(got)-3:]); d != "" {
		t.Errorf("the last days (-want +got):\n%s", d)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 37 {
			t.Errorf("got %d cells in %q, want at most 37", n, line)
		}
	}
}

func TestTheBudgetsAreATable(t *testing.T) {
	var out strings.Builder
	resets := time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC)
	err := printBudgets(&out, []client.BudgetStatus{
		{By: "agent", Key: "ben", Tokens: 1000, Per: "day", Used: 800, Percent: 80, Resets: &resets},
		{By: "thread", Key: "th", Tokens: 7, Per: "total"},
		{By: "requester", Key: "ann", Per: "day", Percent: 50, Cost: core.Money{Nanos: 25e8, Currency: "USD"}, UsedCost: core.Money{Nanos: 125e7, Currency: "USD"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"BUDGET OF USED LIMIT PER % RESETS", "agent ben 800 1000 day 80 2026-01-06T00:00:00Z", "thread th 0 7 total 0 -", "requester ann 1.25 USD 2.50 USD day 50 -"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestUsageShowsWhatItCostAndWhatIsUnpriced(t *testing.T) {
	usd := core.Money{Nanos: 12_300_000, Currency: "USD"}
	for want, total := range map[string]usage.Total{
		"0.0123 USD":             {Events: 2, Cost: usd},
		"0.0123 USD, 1 unpriced": {Events: 3, Unpriced: 1, Cost: usd},
		"unpriced":               {Events: 2, Unpriced: 2},
		"0.00 USD":               {Events: 1, Cost: core.Money{Currency: "USD"}},
		"-":                      {Events: 1}, // of a hub before it had prices
	} {
		if got := costOf(total); got != want {
			t.Errorf("%+v: got %q, want %q", total, got, want)
		}
	}
}

func TestABarEndsInEighthsOfACell(t *testing.T) {
	for _, c := range []struct {
		n, most int64
		want    string
	}{{0, 8, ""}, {8, 8, "██"}, {4, 8, "█"}, {5, 8, "█▎"}, {1, 1 << 60, "▏"}, {1 << 60, 1 << 60, "██"}} {
		if got := bar(c.n, c.most, 2); got != c.want {
			t.Errorf("%d of %d: got %q, want %q", c.n, c.most, got, c.want)
		}
	}
}
