package hub_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// cutOff is an observer of the tasks that a kill has cut off.
type cutOff struct {
	atTheEnd
	all []core.TaskID
}

func (c *cutOff) Cut(id core.TaskID, end core.Event) {
	if end.Body.Kind() == core.KindFailed {
		c.all = append(c.all, id)
	}
}

func TestAToolCallThatRanWhenTheHubWasKilledHasAnEndAfterTheStart(t *testing.T) {
	kept := journal.NewMemory(journal.Retention{})
	cut := core.TaskID(core.NewID())
	for i, b := range []core.Body{
		core.Opened{Task: cut, From: core.Principal{ID: "ann"}, Request: core.Request{Intent: core.IntentAsk, To: core.ToAgent("a"), Content: "go"}},
		core.Assigned{Agent: "a", Attempt: 1}, core.ToolCall{ID: "1"}, core.ToolCall{ID: "2"}, core.ToolResult{ID: "1"},
	} {
		if err := kept.Append(t.Context(), journal.Record{Task: cut, Event: core.Event{Seq: uint64(i + 1), Epoch: 1, At: time.Now(), Body: b}}); err != nil {
			t.Fatal(err)
		}
	}
	told := &cutOff{atTheEnd: func() {}}
	if err := coretest.NewHub(t, hub.Options{Journal: kept, Observer: told}).Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(told.all) != 1 || told.all[0] != cut {
		t.Errorf("the observer is told of %q, want the task that was cut off, once", told.all)
	}
	all, err := kept.Read(t.Context(), cut, 5, 0)
	if err != nil || len(all) != 2 {
		t.Fatalf("got %+v (%v), want two events after the start", all, err)
	}
	if state, is := all[0].Body.(core.ToolState); !is || state.ID != "2" || state.State != core.ToolFailed || all[0].Seq != 6 || all[0].Epoch != 2 {
		t.Errorf("got %+v, want the open tool call failed in a new epoch", all[0])
	}
	if all[1].Body.Kind() != core.KindFailed || all[1].Seq != 7 || all[1].Epoch != 2 {
		t.Errorf("got %+v, want the end of the task after it", all[1])
	}
}
