package hub_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// reads is the short form of a reader.
type reads struct {
	Who    string
	Role   task.Role
	Seq    uint64
	Behind int
}

func (g *testHub) readers(p core.Principal, id core.TaskID) (all []reads) {
	g.t.Helper()
	got, err := g.hub.Readers(g.t.Context(), p, id)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, r := range got {
		if strings.HasPrefix(r.Principal.ID, core.PartPrefix+"reader-") {
			continue // the reader of the promise checker
		}
		all = append(all, reads{r.Principal.ID, r.Role, r.Seq, r.Behind})
	}
	return all
}

func TestTheReadersOfATaskAreListedWithTheirPositions(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker, viewer := g.agent("a", able), g.connect("r"), g.operator("v")
		asked := g.ask(asker, "a")
		g.report(agent, asked, core.Text{Text: "one"}, core.Text{Text: "two"})
		if err := viewer.Watch(asked, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := viewer.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		asker.AwaitEnd(asked)
		want := []reads{
			{"a", task.Agent, 1, 1}, // its assignment, not what it said itself
			{"r", task.Requester, 0, 4}, {"v", task.Viewer, 4, 0},
			{"r", task.Waiter, 0, 0}, // the end alone, which has not come
		}
		got := g.readers(asker.Identity().Principal, asked.ID())
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("while it runs (-want +got):\n%s", d)
		}
		g.wantFault("by a stranger", func() error {
			_, err := g.hub.Readers(t.Context(), core.Principal{ID: "x"}, asked.ID())
			return err
		}(), core.CodeUnknownTask)
		viewer.Close(nil)
		g.report(agent, asked, core.Done{})
	})
}

func TestATaskThatIsOnlyInTheJournalHasNoReaders(t *testing.T) {
	withHub(t, hub.Limits{FinishedTasks: 1}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		type listed struct{ Readers *[]task.ReaderStatus }
		if got := call[listed](g, a, "task_readers", g.forgotten(a, b, core.Done{})); got.Readers == nil || len(*got.Readers) != 0 {
			t.Errorf("got %+v, want an empty list", got)
		}
	})
}
