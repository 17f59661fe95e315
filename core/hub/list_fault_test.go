package hub_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// In memory and in the journal, however long it went on before. A secret in it is for whoever asked.
func TestAListSaysWhyATaskFailed(t *testing.T) {
	for _, kept := range []int{1, 100} {
		for _, before := range []int{0, 200} {
			synctest.Test(t, func(t *testing.T) {
				r, err := redact.New([]string{`sk-[a-z]{8}`}, nil)
				if err != nil {
					t.Fatal(err)
				}
				g := &testHub{t, coretest.NewHub(t, hub.Options{Limits: hub.Limits{FinishedTasks: kept}, Redact: func() *redact.Redactor { return r }})}
				a, ann := g.agent("a", able), g.connect("ann")
				failed := g.ask(ann, "a")
				for i := range before {
					g.report(a, failed, core.ToolCall{ID: fmt.Sprint(i), Name: "look", Input: "{}"}, core.ToolResult{ID: fmt.Sprint(i)})
				}
				g.report(a, failed, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "the door of sk-abcdefgh is closed")})
				g.sleep(time.Second) // the journal has it
				done := g.ask(ann, "a")
				g.report(a, done, core.Done{})
				own := "the door of sk-abcdefgh is closed"
				if kept == 1 { // the journal has no secret
					own = "the door of [redacted] is closed"
				}
				for p, want := range map[core.Principal]string{operator: "the door of [redacted] is closed", {ID: "ann"}: own} {
					page, err := g.hub.Tasks(t.Context(), p, task.Filter{})
					if err != nil || len(page.Tasks) != 2 {
						t.Fatalf("got %+v and %v, want two tasks", page, err)
					}
					if f := page.Tasks[0].Fault; f != nil {
						t.Errorf("got the fault %v of a task that is done, want none", f)
					}
					if f := page.Tasks[1].Fault; f == nil || f.Code != core.CodeUnreachable || f.Message != want {
						t.Errorf("%s, with %d kept in memory, after %d calls: got %v, want %q", p.ID, kept, before, f, want)
					}
				}
			})
		}
	}
}
