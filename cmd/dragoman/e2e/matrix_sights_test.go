package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// sights are what a dialect told on the way to the end beside the text, by what it
// is about, in the same words whatever the dialect.
type sights map[string][]string

// sees notes one thing that was told.
func (x *exchange) sees(about, format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seen == nil {
		x.seen = sights{}
	}
	x.seen[about] = append(x.seen[about], fmt.Sprintf(format, args...))
	if x.news != nil {
		close(x.news)
		x.news = nil
	}
}

// seesBody notes what a dialect told that has a word for every kind.
func (x *exchange) seesBody(body core.Body) {
	switch b := body.(type) {
	case core.ToolCall:
		x.sees("tool", "call %s %s", b.Name, b.Input)
	case core.ToolState:
		x.sees("tool", "%s", b.State)
	case core.ToolResult:
		x.sees("tool", "result %s", b.Output)
	case core.ApprovalRequested:
		x.sees("approval", "asked %s", b.Name)
	case core.ApprovalDecided:
		x.sees("approval", "%s", wordOf(b.Approved))
	case core.InjectionAnswered:
		x.sees("injection", "taken %t", b.Accepted)
	case core.Usage:
		x.sees("usage", "%d", b.Total())
	case core.File:
		x.sees("file", "%s", b.Data)
	}
}

func wordOf(approved bool) string {
	if approved {
		return "approved"
	}
	return "denied"
}

// saw returns what was told about something, once the exchange has ended.
func (x *exchange) saw(about string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen[about]
}

// awaitSight waits until something is told about a matter.
func (x *exchange) awaitSight(t *testing.T, about string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	for {
		x.mu.Lock()
		known := len(x.seen[about]) > 0
		if x.news == nil {
			x.news = make(chan struct{})
		}
		news := x.news
		x.mu.Unlock()
		if known {
			return
		}
		select {
		case <-news:
		case <-x.ended:
			t.Fatalf("got the end %+v, want something about %s first", x.told, about)
		case <-ctx.Done():
			t.Fatalf("got nothing about %s", about)
		}
	}
}

// sawOf wants what was told about something, of those kinds that the dialect of who
// asked tells; it returns how that is called in the table.
func (d *duo) sawOf(t *testing.T, x *exchange, about string, want ...string) string {
	t.Helper()
	told, word := d.asks.tells[about], "told"
	if told == nil {
		want, word = nil, "untold"
	} else {
		want = told(want)
	}
	if got := x.saw(about); !slices.Equal(got, want) {
		t.Errorf("about %s: got %q, want %q", about, got, want)
	}
	return word
}

// all is the telling of a dialect that leaves nothing out.
func all(sights []string) []string { return sights }

// but is the telling of a dialect that leaves something out.
func but(left ...string) func([]string) []string {
	return func(sights []string) []string {
		return slices.DeleteFunc(slices.Clone(sights), func(s string) bool { return slices.Contains(left, s) })
	}
}

// summed is the telling of a dialect that adds up.
func summed(sights []string) []string {
	sum := 0
	for _, s := range sights {
		var n int
		if _, err := fmt.Sscan(s, &n); err == nil {
			sum += n
		}
	}
	return []string{fmt.Sprint(sum)}
}

// everything is told by a dialect with a word for every kind.
func everything() map[string]func([]string) []string {
	return map[string]func([]string) []string{"tool": all, "approval": all, "injection": all, "usage": all, "file": all}
}
