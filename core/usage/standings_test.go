package usage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestStatusListsEveryBudgetOfTheDay(t *testing.T) {
	b := usage.NewBudgets([]usage.Budget{
		{By: usage.ByRequester, Key: usage.Everybody, Tokens: 100, Per: usage.Daily},
		{By: usage.ByAgent, Key: "ben", Tokens: 1000, Per: usage.Ever},
		{By: usage.ByThread, Key: "quiet", Tokens: 10, Per: usage.Daily},
	})
	lines := func(now time.Time) (all []string) {
		for _, s := range b.Status(now) {
			all = append(all, fmt.Sprintf("%s %s %d of %d, %d%%, until %s", s.By, s.Key, s.Used, s.Tokens, s.Percent(), s.Resets.Format(time.DateOnly)))
		}
		return all
	}
	for _, who := range []string{"ana", "bob", "bob"} {
		s := spent(40, noon)
		s.Requester = who
		b.Add(s)
	}
	want := []string{
		"requester bob 80 of 100, 80%, until 2026-01-06", "requester ana 40 of 100, 40%, until 2026-01-06",
		"agent ben 120 of 1000, 12%, until 0001-01-01", "thread quiet 0 of 10, 0%, until 2026-01-06",
	}
	if d := cmp.Diff(want, lines(noon)); d != "" {
		t.Errorf("today (-want +got):\n%s", d)
	}
	want = []string{"agent ben 120 of 1000, 12%, until 0001-01-01", "thread quiet 0 of 10, 0%, until 2026-01-07"}
	if d := cmp.Diff(want, lines(noon.AddDate(0, 0, 1))); d != "" {
		t.Errorf("tomorrow (-want +got):\n%s", d)
	}
}
