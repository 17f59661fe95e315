package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

var errStop = errors.New("stop")

// diary notes what happened, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, want) {
		t.Errorf("got %q, want %q", d.lines, want)
	}
}

func TestTasksRunInOrderAtMostAsManyAsThereAreWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		tasks := agent.Run(t.Context(), 2, 3, func(_ context.Context, id string, task int) {
			d.note("%s=%d begins", id, task)
			<-time.After(time.Duration(task) * time.Second)
			d.note("%s ends", id)
		})
		for i, full := range []bool{false, false, false, true} {
			if got := tasks.Add(fmt.Sprint("t", i), i+1); (got != nil) != full || full && got.Code != core.CodeOverloaded {
				t.Errorf("task %d: got %v, want it refused as overloaded: %t", i, got, full)
			}
			synctest.Wait()
		}
		if got := tasks.Add("t2", 9); got != nil {
			t.Errorf("an id that waits: got %v, want it ignored", got)
		}
		tasks.Close()
		if got := tasks.Len(); got != 0 {
			t.Errorf("after the end: got %d at hand, want none", got)
		}
		d.want(t, "t0=1 begins", "t1=2 begins", "t0 ends", "t2=3 begins", "t1 ends", "t2 ends")
	})
}

func TestACancelReachesATaskThatRunsAndOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		tasks := agent.Run(t.Context(), 1, 2, func(ctx context.Context, id, _ string) {
			<-ctx.Done()
			d.note("%s: %v", id, context.Cause(ctx))
		})
		tasks.Add("a", "task a")
		tasks.Add("b", "task b")
		synctest.Wait()
		note := func(task string) { d.note("cancel of %s", task) }
		for id, want := range map[string]bool{"b": true, "c": false} {
			if got := tasks.Cancel(id, errStop, note); got != want {
				t.Errorf("cancel of %s: got %t, want %t", id, got, want)
			}
		}
		tasks.Cancel("b", errors.New("again"), nil)
		d.want(t, "cancel of task b")
		tasks.Cancel("a", errStop, nil)
		tasks.Close()
		d.want(t, "cancel of task b", "a: stop", "b: stop")
	})
}

func TestATaskThatIsReleasedMakesRoomForAnotherOfItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := make(chan struct{}), make(chan struct{})
		var tasks *agent.Tasks[chan struct{}]
		tasks = agent.Run(t.Context(), 2, 1, func(_ context.Context, id string, task chan struct{}) {
			if task == first {
				tasks.Release(id)
			}
			<-task
		})
		tasks.Add("a", first)
		synctest.Wait()
		if _, found := tasks.Find("a"); found || tasks.Cancel("a", errStop, nil) {
			t.Error("released: got it found, want not")
		}
		if got := tasks.Add("a", second); got != nil {
			t.Errorf("the id again: got %v, want it taken", got)
		}
		close(first)
		synctest.Wait()
		if task, found := tasks.Find("a"); !found || task != second {
			t.Error("after the first has ended: got the second lost, want it at hand")
		}
		close(second)
		tasks.Close()
	})
}

func TestTheEndOfTheConnectionEndsAllTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var d diary
		tasks := agent.Run(ctx, 2, 3, func(ctx context.Context, id string, _ struct{}) {
			<-ctx.Done()
			d.note("%v", context.Cause(ctx))
		})
		for _, id := range []string{"a", "b", "c"} {
			tasks.Add(id, struct{}{})
		}
		cancel(errStop)
		tasks.Close()
		d.want(t, "stop", "stop", "stop")
	})
}
