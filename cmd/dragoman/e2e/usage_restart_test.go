package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// A hub is killed right after a receipt says recorded, twice. After each restart it counts the
// usage of the recorded tasks once, also against the budgets.
func TestUsageAndBudgetsSurviveAKill(t *testing.T) {
	t.Setenv("DRAGOMAN_BUDGETS", "[{thread: th, tokens: 3000, per: total}]")
	for _, sync := range []string{"interval", "always"} {
		t.Run(sync, func(t *testing.T) {
			dir := t.TempDir()
			day := time.Now().UTC()
			for life := range 2 {
				h := serveHub(t, dir, sync)
				runUsageTask(t, h.grpc, h.URL, core.Usage{Input: 1000, Output: 100, CacheRead: 7}, core.Usage{Output: 400})
				wantUsage(t, h, int64(life+1))
				h.kill()
			}
			h := serveHub(t, dir, sync)
			wantUsage(t, h, 2)
			var days client.UsageTotals
			if err := h.Get(t.Context(), "/v1/usage?by=day", &days); err != nil {
				t.Fatal(err)
			}
			for _, d := range days.Totals {
				if today := time.Now().UTC(); d.Key != day.Format(time.DateOnly) && d.Key != today.Format(time.DateOnly) {
					t.Errorf("got the day %s, want %s", d.Key, day.Format(time.DateOnly))
				}
			}
			var tasks client.UsageTotals
			if err := h.Get(t.Context(), "/v1/usage?by=task", &tasks); err != nil || len(tasks.Totals) != 2 {
				t.Errorf("got the tasks %+v and %v, want two", tasks, err)
			}
			_, err := h.Do(t.Context(), "POST", "/v1/tasks", "application/json", map[string]string{"to": "spender", "content": "more", "thread": "th"})
			var refused client.Refusal
			const want = `the budget is used up, with 3000 tokens: thread "th" may use 3000 tokens in total, and only the operator can raise that`
			if !errors.As(err, &refused) || refused.Error() != want {
				t.Errorf("beyond the budget: got %v, want %s", err, want)
			}
			h.kill()
		})
	}
}

// wantUsage fails unless the hub has the usage of the number of tasks in every dimension.
func wantUsage(t *testing.T, h *servedHub, tasks int64) {
	t.Helper()
	for by, key := range map[usage.By]string{usage.ByAgent: "spender", usage.ByThread: "th", usage.ByRequester: "local"} {
		var got client.UsageTotals
		if err := h.Get(t.Context(), fmt.Sprintf("/v1/usage?by=%s", by), &got); err != nil {
			t.Fatal(err)
		}
		want := client.UsageTotals{By: string(by), Currency: "USD", Totals: []usage.Total{{
			Key: key, Tokens: core.Usage{Input: 1000 * tasks, Output: 500 * tasks, CacheRead: 7 * tasks}, Events: 2 * tasks, Unpriced: 2 * tasks,
		}}, Budgets: []client.BudgetStatus{{By: "thread", Key: "th", Tokens: 3000, Per: "total", Used: 1500 * tasks, Percent: 50 * tasks}}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("by %s (-want +got):\n%s", by, d)
		}
	}
}
