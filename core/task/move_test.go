package task_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

var going = core.NewFault(core.CodeUnreachable, "the hub is drained")

func TestTheRecordOfAMoveIsReadOnceItIsStored(t *testing.T) {
	inCluster := limits
	inCluster.Cluster = true
	s, _, _ := newStoreWith(inCluster)
	one := open(s)
	in, recorder := &inbox{}, &inbox{}
	one.Attach(in, task.Requester, nil, 0)
	one.Attach(recorder, task.Recorder, nil, 0)
	if !one.Leave("b", "", going) || one.Leave("c", "", going) {
		t.Fatal("got a task that cannot leave, or twice")
	}
	all, _ := one.Copy()
	if n := len(all); n != 2 || all[1].Seq != 2 || all[1].Body.(core.Retrying).Hub != "b" || one.Leaves() != "b" {
		t.Fatalf("got the copy %v, want the task and the record of its move", all)
	}
	wantKinds(t, one, "opened")
	if !one.Gone() || one.Gone() || !one.IsRemote() || one.Owner() != "b" {
		t.Error("got no copy of a task of b")
	}
	wantRead(t, "the requester", in, "1")
	wantRead(t, "the journal", recorder, "1 2")
	if one.SetRecorded(1); one.IsRecorded() {
		t.Error("got it recorded, want it to lack the record of its move")
	}
	if one.SetRecorded(2); !one.IsRecorded() {
		t.Error("got a task whose move is not recorded, want it recorded")
	}
	wantRead(t, "the requester", in, "2")
	if one.Extend([]core.Event{event(1, 3, core.Assigned{Agent: "bob", Attempt: 1})}); !one.IsRecorded() {
		t.Error("got a task that lacks what the next owner is to record, want it recorded")
	}
	one.Extend([]core.Event{event(1, 4, core.Done{})})
	wantRead(t, "the requester", in, "3 4 over")
	wantRead(t, "the journal, which has the rest from the other hub,", recorder, "")
}

func TestATaskThatIsToMoveMayEndBefore(t *testing.T) {
	s, _, _ := newStore()
	one := open(s)
	one.Leave("b", "", going)
	if err := one.Cancel("ann", "enough"); err != nil {
		t.Fatal(err)
	}
	if all, _ := one.Copy(); one.Gone() || all != nil {
		t.Error("got a task that moves after its end")
	}
	wantKinds(t, one, "opened", "cancel_requested", "cancelled")
}

func TestATaskThatNobodyTookStays(t *testing.T) {
	s, _, _ := newStore()
	one := open(s)
	one.Leave("b", "", going)
	if one.Stay(); one.Leaves() != "" || one.Gone() {
		t.Error("got a task that still leaves")
	}
	conclude(t, one, assign(one), core.Done{})
	wantKinds(t, one, "opened", "assigned", "done")
}

func TestOnlyATaskThatWaitsMoves(t *testing.T) {
	s, _, _ := newStore()
	running, _ := run(s)
	ended := open(s)
	ended.End(core.Failed{Fault: going})
	remote, _ := copied(t, s)
	for name, one := range map[string]*task.Task{"one that runs": running, "one that has ended": ended, "one of another hub": remote} {
		if one.Leave("b", "", going) {
			t.Errorf("%s: got it leaving", name)
		}
	}
}

func TestACopyBecomesTheTaskOfItsHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there, _, _ := newStore()
		one := open(there)
		one.Leave("b", "", going)
		all, _ := one.Copy()
		here, h, _ := newStore()
		copied := here.Remote(one.ID(), all[0])
		record := all[1]
		if here.Arrive(copied, record) {
			t.Error("got it before the record was stored")
		}
		copied.Extend(all)
		other := record
		other.Epoch++
		if here.Arrive(copied, other) {
			t.Error("got it by another record")
		}
		if !here.Arrive(copied, record) || here.Arrive(copied, record) || copied.IsRemote() {
			t.Fatal("got a remote task, or a task that has arrived twice")
		}
		if copied.Extend([]core.Event{event(1, 3, core.Done{})}) {
			t.Error("the former owner has ended it")
		}
		assign(copied)
		time.Sleep(2 * day)
		wantKinds(t, copied, "opened", "retrying", "assigned", "cancel_requested", "failed")
		if got := len(h.appended[one.ID()]); got != 3 {
			t.Errorf("got %d events that the host was told of, want those of this hub", got)
		}
		one.End(core.Failed{Fault: going})
	})
}
