package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// reports are what a dialect reported beside text before the end, by subject, in the same terms for
// every dialect.
type reports map[string][]string

// report records a report.
func (x *exchange) report(about, format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.reports == nil {
		x.reports = reports{}
	}
	x.reports[about] = append(x.reports[about], fmt.Sprintf(format, args...))
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
}

// reportBody records the event of a dialect that has every kind.
func (x *exchange) reportBody(body core.Body) {
	switch b := body.(type) {
	case core.ToolCall:
		x.report("tool", "call %s %s", b.Name, b.Input)
	case core.ToolState:
		x.report("tool", "%s", b.State)
	case core.ToolResult:
		x.report("tool", "result %s", b.Output)
	case core.ForeignFrame:
		x.report("foreign", "%s %s", b.Dialect, b.Name)
	case core.ApprovalRequested:
		x.report("approval", "asked %s", b.Name)
	case core.ApprovalDecided:
		x.report("approval", "%s", decisionText(b.Approved))
	case core.InjectionAnswered:
		x.report("injection", "taken %t", b.Accepted)
	case core.Usage:
		x.report("usage", "%d", b.Total())
	case core.File:
		x.report("file", "%s", b.Data)
	}
}

func decisionText(approved bool) string {
	if approved {
		return "approved"
	}
	return "denied"
}

// reportsOf returns the reports on a subject.
func (x *exchange) reportsOf(about string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reports[about]
}

// waitReport waits for a report on a subject.
func (x *exchange) waitReport(t *testing.T, about string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	for {
		x.mu.Lock()
		known := len(x.reports[about]) > 0
		if x.changed == nil {
			x.changed = make(chan struct{})
		}
		news := x.changed
		x.mu.Unlock()
		if known {
			return
		}
		select {
		case <-news:
		case <-x.ended:
			t.Fatalf("got the end %+v, want something about %s first", x.result, about)
		case <-ctx.Done():
			t.Fatalf("got nothing about %s", about)
		}
	}
}

// wantReports compares the reports on a subject, of the kinds that both dialects have. It returns the
// word for the table.
func (d *pair) wantReports(t *testing.T, x *exchange, about string, want ...string) string {
	t.Helper()
	label := "reported"
	if sent := d.answers.reports[about]; sent != nil {
		want = sent(want)
	}
	received := d.asks.reports[about]
	switch {
	case len(want) == 0:
		label = "unsaid"
	case received == nil:
		want, label = nil, "omitted"
	default:
		want = received(want)
	}
	if got := x.reportsOf(about); !slices.Equal(got, want) {
		t.Errorf("about %s: got %q, want %q", about, got, want)
	}
	return label
}

// keepAll is for a dialect that reports everything.
func keepAll(sights []string) []string { return sights }

// except is for a dialect that omits some reports.
func except(left ...string) func([]string) []string {
	return func(sights []string) []string {
		return slices.DeleteFunc(slices.Clone(sights), func(s string) bool { return slices.Contains(left, s) })
	}
}

// sum is for a dialect that adds up.
func sum(sights []string) []string {
	sum := 0
	for _, s := range sights {
		var n int
		if _, err := fmt.Sscan(s, &n); err == nil {
			sum += n
		}
	}
	return []string{fmt.Sprint(sum)}
}

// allReports is for a dialect that has every kind.
func allReports() map[string]func([]string) []string {
	return map[string]func([]string) []string{"tool": keepAll, "approval": keepAll, "injection": keepAll, "usage": keepAll, "file": keepAll}
}
