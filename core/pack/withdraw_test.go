package pack_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestTheCallsOfACallerAreWithdrawnByTheirIDs(t *testing.T) {
	r, caller, other := newRegistry(nil), &peer{}, &peer{}
	p := r.provide(t, "p", "x")
	r.call(caller, "1", "x", `{}`)
	r.call(other, "1", "x", `{}`)
	first := p.next(t)
	r.Take(first)
	if got := r.Waiting(caller); len(got) != 1 || got[0].ID != "1" {
		t.Errorf("got the calls %+v that wait, want the first", got)
	}
	r.Withdraw(caller, []string{"1", "unknown"}, core.NewFault(core.CodeCancelled, "enough"))
	caller.wants(t, "the caller", `1 of "p": fault cancelled`)
	other.wants(t, "another caller")
	p.wants(t, "the pack", "execute x {}", "execute x {}", "withdraw")
	if got := r.Waiting(caller); got != nil {
		t.Errorf("got %v, want no call that waits", got)
	}
	if diff := cmp.Diff(map[string]int{"tool.withdrawn": 1}, r.counts); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	r.Stop(core.NewFault(core.CodeUnreachable, "over"))
}

func TestOnlyItsPackLearnsWhoWaitsForAnExecution(t *testing.T) {
	r, caller := newRegistry(nil), &peer{}
	p, q := r.provide(t, "p", "x"), r.provide(t, "q")
	r.call(caller, "1", "x", `{}`)
	e := p.next(t)
	if call, err := r.Caller(p, e.ID); call.Caller != pack.Peer(caller) || call.ID != "1" || err != nil {
		t.Errorf("got %+v and %v, want the call", call, err)
	}
	_, err := r.Caller(q, e.ID)
	wantFault(t, "another pack", err, core.CodeNotAuthorized)
	if err := r.Answer(p, e.ID, tool.Result{Output: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	_, err = r.Caller(p, e.ID)
	wantFault(t, "an answered call", err, core.CodeConflict)
}

func TestTheCallsThatWaitAreCounted(t *testing.T) {
	r, caller := newRegistry(func(o *pack.Options) { o.Limits.Calls = 4 }), &peer{}
	p := r.provide(t, "p", "x")
	var waiting atomic.Int32
	call := func(id, tool string) {
		r.Call(pack.Call{Caller: caller, ID: id, Tool: tool, Waiting: &waiting})
	}
	wants := func(when string, want int32) {
		t.Helper()
		if got := waiting.Load(); got != want {
			t.Errorf("%s: got %d calls that wait, want %d", when, got, want)
		}
	}
	call("0", "unknown")
	wants("refused", 0)
	for _, id := range []string{"1", "2", "3", "4"} {
		call(id, "x")
	}
	wants("given to the pack", 4)
	if err := r.Answer(p, p.next(t).ID, tool.Result{Output: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	wants("one answered before it was taken", 3)
	r.Withdraw(caller, []string{"2"}, core.NewFault(core.CodeCancelled, "enough"))
	wants("one withdrawn", 2)
	taken := p.next(t)
	for !r.Take(taken) {
		taken = p.next(t)
	}
	r.Leave(caller, core.NewFault(core.CodeUnreachable, "gone"))
	wants("the caller left, and the pack has taken one of two", 1)
	if err := r.Answer(p, taken.ID, tool.Result{Output: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	wants("that one answered", 0)
	r.Stop(core.NewFault(core.CodeUnreachable, "over"))
	wants("stopped", 0)
}
