package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// A hub stores a copy of a task that is to move to it. If the record of the move is never stored where
// the task was, the copy does not count, and nobody finds it.
func TestACopyOfATaskThatDidNotMoveIsFoundByNobody(t *testing.T) {
	const id = core.TaskID("01980c3e-0000-7000-8000-000000000001") // of hub a
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	opened := core.Event{Seq: 1, Epoch: 1, At: at, Body: core.Opened{
		Task: id, From: core.Principal{ID: "ann"}, Request: core.Request{Intent: core.IntentAsk, To: core.ToCapability("think"), Content: "yes?"},
	}}
	moves := func(seq uint64, to string) core.Event {
		return core.Event{Seq: seq, Epoch: 1, At: at, Body: core.Retrying{Fault: core.NewFault(core.CodeUnreachable, "gone"), Hub: to}}
	}
	ends := core.Event{Seq: 3, Epoch: 1, At: at, Body: core.Done{}}
	cut := core.Event{Seq: 4, Epoch: 2, At: at, Body: core.Failed{Fault: core.NewFault(core.CodeUnreachable, "the hub stopped")}}
	for _, c := range []struct {
		name   string
		stored map[string][]core.Event
		want   core.Kind // 0: it is unknown
	}{
		{"the hub that had it stored nothing", map[string][]core.Event{"b": {opened, moves(2, "b")}}, 0},
		{"the hub that had it ended it", map[string][]core.Event{"a": {opened, {Seq: 2, Epoch: 1, At: at, Body: core.Failed{Fault: core.NewFault(core.CodeUnreachable, "gone")}}}, "b": {opened, moves(2, "b")}}, core.KindFailed},
		{"it was to come back", map[string][]core.Event{"a": {opened, moves(2, "c"), moves(3, "a")}, "c": {opened, moves(2, "c"), ends}}, core.KindDone},
		{"it was to come back, and the hub has started since", map[string][]core.Event{"a": {opened, moves(2, "c"), moves(3, "a"), cut}, "c": {opened, moves(2, "c"), ends}}, core.KindDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for hub, events := range c.stored {
					var records []journal.Record
					for _, e := range events {
						records = append(records, journal.Record{Task: id, Event: e})
					}
					if err := w.journal.Open(hub).Append(t.Context(), records...); err != nil {
						t.Fatal(err)
					}
				}
				for i, name := range []string{"a", "b", "c"} {
					w.start(name, i)
				}
				w.until("a has a quorum", w.hubs["a"].part.Cluster().HasQuorum)
				time.Sleep(time.Second)
				ann := core.Principal{ID: "ann"}
				for _, name := range []string{"a", "b", "c"} {
					found, err := w.hubs[name].Task(t.Context(), ann, id)
					switch {
					case c.want == 0 && core.AsFault(err) != nil && core.AsFault(err).Code == core.CodeUnknownTask:
					case c.want == 0:
						t.Errorf("at %s: got %v and %v, want an unknown task", name, found, err)
					case err != nil || found.Last().Body.Kind() != c.want:
						t.Errorf("at %s: got %v and %v, want that it ended as %s", name, found, err, c.want)
					}
				}
			})
		})
	}
}

// A hub stores the copy of a task later than the other one waits for it. The copy gets an end: else who
// takes the hub over would have to read all that it has stored since.
func TestACopyOfATaskThatDidNotMoveHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, ann := w.join("b", thinker("bob")), w.person("a")
		w.delayWrites("c", 6*time.Second, movesTo("c"))
		asked := ask(t, ann, core.ToCapability("think"))
		held := assigned(t, bob)
		w.join("c", thinker("cid"))
		if err := bob.Report(held.ID(), busy, nil); err != nil {
			t.Fatal(err)
		}
		until(t, ann, asked.ID(), core.KindFailed)
		time.Sleep(2 * time.Second) // c stores its copy, and is told that the task stays
		e, err := w.journal.Open("d").TakeOver(t.Context(), journal.Life{Hub: "c", Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Heads(t.Context(), func(h journal.Head) bool {
			t.Errorf("got the open task %s, whose last event is %+v, want none", h.Task, h.Last.Body)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		w.same(asked.ID(), "opened assigned retrying failed")
	})
}
