package nats_test

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// openTasks are the tasks that a hub has open, and the sequence numbers of their last events.
type openTasks map[core.TaskID]uint64

// next returns the next record of a task, and forgets the task if that closes it.
func (o openTasks) next(task core.TaskID, body core.Body) journal.Record {
	o[task]++
	r := journal.Record{Task: task, Event: core.Event{Seq: o[task], Epoch: 1, At: time.Now(), Body: body}}
	if moved, _ := body.(core.Retrying); body.Kind().Ends() || moved.Hub != "" && moved.Hub != "a" {
		delete(o, task)
	}
	return r
}

// any returns one of the tasks.
func (o openTasks) any(draw *rand.Rand) core.TaskID {
	all := slices.Sorted(maps.Keys(o))
	return all[draw.IntN(len(all))]
}

func TestAnHeirReadsFromTheFirstOpenTaskOnAndMissesNone(t *testing.T) {
	s := external(t)
	at := func(hub string) nats.Options {
		return nats.Options{URL: s.ClientURL(), Name: hub, Cluster: &nats.Cluster{Name: "test"}}
	}
	heir, open, draw := opened(t, at("b")), openTasks{}, rand.New(rand.NewPCG(1, 2)) //nolint:gosec // it is a test
	gone := core.Failed{Fault: core.NewFault(core.CodeUnreachable, "its hub is gone")}
	for life := range 8 {
		a := opened(t, at("a"))
		a.SetOwnerBytes(1000)
		var cut []journal.Record
		if err := a.Heads(t.Context(), func(h journal.Head) bool {
			if _, is := open[h.Task]; is {
				cut = append(cut, open.next(h.Task, gone))
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if err := a.Append(t.Context(), cut...); err != nil || len(open) > 0 {
			t.Fatalf("life %d: got %v, and %d tasks left open", life, err, len(open))
		}
		var left []core.TaskID // tasks that have moved, and their last events
		numbers := map[core.TaskID]uint64{}
		for range 100 {
			var records []journal.Record
			for range 1 + draw.IntN(4) {
				switch n := draw.IntN(10); {
				case n < 3 || len(open) == 0:
					records = append(records, open.next(core.TaskID(core.NewID()), core.Text{Text: "begun"}))
				case n < 6:
					records = append(records, open.next(open.any(draw), core.Text{Text: "and so on"}))
				case n < 8:
					records = append(records, open.next(open.any(draw), core.Done{}))
				case n < 9:
					task := open.any(draw)
					left, numbers[task] = append(left, task), open[task]+1
					records = append(records, open.next(task, core.Retrying{Hub: "c"}))
				case len(left) > 0: // it comes back
					open[left[0]] = numbers[left[0]]
					records = append(records, open.next(left[0], core.Retrying{Hub: "a"}))
					left = left[1:]
				}
			}
			if draw.IntN(10) == 0 {
				unacknowledged, cancel := context.WithCancel(t.Context())
				cancel()
				_ = a.Append(unacknowledged, records...) // it is appended again, as the recorder does
			}
			if err := a.Append(t.Context(), records...); err != nil {
				t.Fatal(err)
			}
		}
		e, err := heir.TakeOver(t.Context(), a.Life())
		if err != nil {
			t.Fatal(err)
		}
		got := openTasks{}
		if err := e.Heads(t.Context(), func(h journal.Head) bool {
			if moved, _ := h.Last.Body.(core.Retrying); moved.Hub == "" || moved.Hub == "a" {
				got[h.Task] = h.Last.Seq
			}
			return true
		}); err != nil || !maps.Equal(got, open) {
			t.Errorf("life %d: the heir found the open tasks %v and %v, want %v", life, got, err, open)
		}
		if life%2 == 0 && len(open) > 0 { // it dies when it has ended some of them
			if err := e.Append(t.Context(), open.next(open.any(draw), gone)); err != nil {
				t.Fatal(err)
			}
		}
		stream, err := a.JetStream().Stream(t.Context(), "a-tasks")
		if err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetLastMsgForSubject(t.Context(), "a.own")
		if err != nil {
			t.Fatal(err)
		}
		var owner struct{ From uint64 }
		if err := json.Unmarshal(m.Data, &owner); err != nil || owner.From < m.Sequence/2*uint64(min(life, 1)) {
			t.Errorf("life %d: the heir read from message %d of %d on (%v), want from near the end", life, owner.From, m.Sequence, err)
		}
	}
}
