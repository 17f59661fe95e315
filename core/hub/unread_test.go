package hub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// Who leaves before it has read the end of a task gives back what the task took, once the store
// has dropped that.
func TestWhoLeavesWithoutReadingHoldsNothing(t *testing.T) {
	large := core.Request{To: core.ToAgent("a"), Content: strings.Repeat("x", 200<<10)}
	for name, leave := range map[string]func(g *testHub, agent *hub.Session){
		"a requester, after the end": func(g *testHub, agent *hub.Session) {
			asker := g.connect("r")
			g.report(agent, g.open(asker, large), core.Done{})
			asker.Close(nil)
		},
		"one that waits for the end alone": func(g *testHub, agent *hub.Session) {
			asker := g.connect("r")
			tk, err := asker.Open(large, hub.OpenOptions{Unwatched: true})
			if err != nil {
				t.Fatal(err)
			}
			asker.AwaitEnd(tk)
			g.report(agent, tk, core.Done{})
			asker.Close(nil)
		},
		"one that begins to wait after the end": func(g *testHub, agent *hub.Session) {
			asker := g.connect("r")
			tk, err := asker.Open(large, hub.OpenOptions{Unwatched: true})
			if err != nil {
				t.Fatal(err)
			}
			g.report(agent, tk, core.Done{})
			asker.AwaitEnd(tk)
			asker.Close(nil)
		},
		"a viewer": func(g *testHub, agent *hub.Session) {
			asker, viewer := g.connect("r"), g.operator("v")
			tk := g.open(asker, large)
			if err := viewer.Watch(tk, core.Cursor{}, nil); err != nil {
				t.Fatal(err)
			}
			g.report(agent, tk, core.Done{})
			g.events(asker)
			viewer.Close(nil)
		},
		"an agent": func(g *testHub, _ *hub.Session) {
			other, asker := g.agent("b", able), g.connect("r")
			req := large
			req.To = core.ToAgent("b")
			tk := g.open(asker, req)
			if err := asker.Cancel(tk.ID(), "never mind"); err != nil {
				t.Fatal(err)
			}
			g.report(other, tk, core.Cancelled{})
			g.events(asker)
			other.Close(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withBudget(t, 0, hub.Limits{FinishedTasks: 1}, func(g *testHub, b *memory.Budget) {
				agent := g.agent("a", able, many)
				leave(g, agent)
				for range 3 { // they take the place of the large one in the store
					asker := g.connect("r")
					g.report(agent, g.ask(asker, "a"), core.Done{})
					g.events(asker)
					g.events(agent)
					g.sleep(time.Second) // the journal has them
				}
				if held := b.Held(); held > 20<<10 {
					t.Errorf("got %d bytes held, want those of the last tasks alone", held)
				}
			})
		})
	}
}
