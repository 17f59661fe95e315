package hub_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// searched is a journal that records the missing tasks that were looked up.
type searched struct {
	*journal.Memory
	missed []core.TaskID
}

func (j *searched) Read(ctx context.Context, task core.TaskID, after uint64, limit int) ([]core.Event, error) {
	events, err := j.Memory.Read(ctx, task, after, limit)
	if errors.Is(err, journal.ErrUnknown) {
		j.missed = append(j.missed, task)
	}
	return events, err
}

func (j *searched) CompleteTasks(ctx context.Context, tasks []core.TaskID, yield func(core.TaskID, []core.Event) bool) error {
	for _, task := range tasks {
		if _, err := j.Read(ctx, task, 0, 0); err != nil {
			return err
		}
	}
	return j.Memory.CompleteTasks(ctx, tasks, yield)
}

// Looking up a missing task may be expensive for a journal.
func TestAStartReadsOnlyTasksThatAreInTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &searched{Memory: journal.NewMemory(journal.Retention{})}
		before := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
		a, asker := before.agent("a", able), before.connect("r")
		session := core.NewID() // a thread id that looks like a task id
		before.talk(asker, a, "a", session, "one", "1")
		before.sleep(time.Second)

		h := coretest.NewHub(t, hub.Options{Journal: kept})
		if err := h.Recover(t.Context()); err != nil {
			t.Error(err)
		}
		if len(kept.missed) > 0 {
			t.Errorf("got lookups of the missing tasks %v, want none", kept.missed)
		}
		if got, want := turns(h.Turns(t.Context(), core.Principal{Operator: true}, core.ThreadID(session))), "user: one | assistant: 1"; got != want {
			t.Errorf("got the thread %q, want %q", got, want)
		}
	})
}
