package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/coven"
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
	anew := time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC)
	err := printBudgets(&out, []standing{
		{By: "agent", Key: "ben", Tokens: 1000, Per: "day", Used: 800, Percent: 80, Resets: &anew},
		{By: "thread", Key: "th", Tokens: 7, Per: "total"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"BUDGET OF USED LIMIT PER % RESETS", "agent ben 800 1000 day 80 2026-01-06T00:00:00Z", "thread th 0 7 total 0 -"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
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

func TestUsageIsShownAsATableAlongEveryLine(t *testing.T) {
	s := newStage(t, nil)
	spendOn(t, s.service.bound.GRPC, "http://"+s.service.bound.HTTP, core.Usage{Input: 1500, Output: 200}, core.Usage{Input: 2000, Output: 150, Thinking: 7})
	for by, key := range map[string]string{"agent": "spender", "thread": "th", "day": time.Now().UTC().Format(time.DateOnly), "requester": "", "task": ""} {
		var out earshot
		if code := run(t.Context(), []string{"usage", "--by", by, "--hub", "http://" + s.service.bound.HTTP}, streams{out: &out, err: &out}); code != exitDone {
			t.Fatalf("by %s: got the exit code %d and %s, want it done", by, code, out.String())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], strings.ToUpper(by)) || !strings.HasPrefix(lines[1], key) ||
			!strings.HasSuffix(strings.Join(strings.Fields(lines[1]), " "), "3500 350 7 0 0 3857") {
			t.Errorf("by %s: got\n%s\nwant a line of %s with 3500, 350, 7, 0, 0 and 3857", by, out.String(), key)
		}
	}
}

// spendOn has an agent of Coven answer a task in the thread th, with these usage
// events, and returns once the task is recorded.
func spendOn(t *testing.T, grpc, http string, spent ...core.Usage) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		card := core.Card{ID: "spender", Features: core.FeatureUsage}
		ended <- joins()[coven.Name](ctx, place{grpc: grpc}, card, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			for _, u := range spent {
				if err := say(u); err != nil {
					return err
				}
			}
			return say(core.Text{Text: "spent"})
		}, func(asker) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		leave()
		<-ended
	}()
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
	var task struct {
		State   string
		Receipt core.Receipt
	}
	postTask(t, http, &task)
	if task.State != "done" || task.Receipt.Stage != core.StageRecorded {
		t.Fatalf("got %+v, want it done and recorded", task)
	}
}

// postTask opens a task for the spender and waits until its end is recorded.
func postTask(t *testing.T, base string, answer any) {
	t.Helper()
	c := &client{base: base, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	resp, err := c.do(t.Context(), http.MethodPost, "/v1/tasks?wait=true", "application/json",
		map[string]string{"to": "spender", "content": "spend", "thread": "th", "receipt": "recorded"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}
