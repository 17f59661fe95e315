package pack_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestACallIsExecutedAndItsAnswerReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, caller := newRegistry(nil), &peer{}
		p := r.provide(t, "p", "x")
		r.Call(pack.Call{Caller: caller, ID: "1", Tool: "x", Input: []byte(`{"a":1}`), From: core.Principal{ID: "ada"}, Agent: "a"})
		e := p.next(t)
		want := &pack.Execution{ID: e.ID, Tool: "x", Input: []byte(`{"a":1}`), Deadline: time.Now().Add(time.Second), From: core.Principal{ID: "ada"}, Agent: "a"}
		if diff := cmp.Diff(want, e, cmpopts.IgnoreUnexported(pack.Execution{})); diff != "" || e.ID == "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
		if !r.Take(e) || r.Provider(e.ID) != pack.Peer(p) {
			t.Error("got no caller waiting, want one")
		}
		if err := r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`7`)}); err != nil {
			t.Error(err)
		}
		caller.wants(t, "the caller", `1 of "p": 7`)
		wantFault(t, "a second answer", r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`8`)}), core.CodeConflict)
		if got := r.Provider(e.ID); got != nil {
			t.Errorf("provider: got %v, want none", got)
		}
		time.Sleep(time.Minute)
		caller.wants(t, "the caller")
	})
}

func TestTheWordsOfAPackGoWithItsAnswer(t *testing.T) {
	r, caller := newRegistry(nil), &peer{}
	p := r.provide(t, "p", "x")
	words := &core.Foreign{Dialect: "maps", JSON: []byte(`{"n":7}`)}
	for _, answer := range []func(id string) error{
		func(id string) error {
			return r.Answer(p, id, tool.Result{Output: json.RawMessage(`7`), Foreign: words})
		},
		func(id string) error {
			return r.Answer(p, id, tool.Result{Fault: core.NewFault(core.CodeInternal, "no"), Foreign: words})
		},
		func(id string) error {
			return r.Answer(p, id, tool.Result{Output: json.RawMessage(`sunny`), Foreign: words})
		},
	} {
		r.call(caller, "1", "x", `{}`)
		e := p.next(t)
		r.Take(e)
		_ = answer(e.ID) // what the caller gets counts
	}
	p.wants(t, "the pack", "execute x {}", "execute x {}", "execute x {}")
	caller.wants(t, "the caller", `1 of "p": 7, in maps: {"n":7}`, `1 of "p": fault internal, in maps: {"n":7}`, `1 of "p": fault invalid`)
}

func TestACallWithoutAToolOrCapabilityIsRefused(t *testing.T) {
	r, caller := newRegistry(nil), &peer{}
	p := &peer{}
	if err := r.Provide(p, "p", []tool.Definition{{Name: "x"}, {Name: "mail", Requires: []string{"mail"}}}); err != nil {
		t.Fatal(err)
	}
	r.call(caller, "1", "nothing", `{}`)
	r.call(caller, "2", "mail", `{}`)
	r.call(caller, "3", "x", `{`)
	r.call(caller, "4", "x", fmt.Sprintf(`{"a":"%0100d"}`, 1))
	r.call(caller, "5", "x", `{}`)
	r.call(caller, "6", "x", `{}`)
	r.call(caller, "7", "x", `{}`)
	caller.wants(t, "the caller",
		`1 of "": fault unsupported`, `2 of "p": fault not_authorized`, `3 of "p": fault invalid`,
		`4 of "p": fault overloaded`, `7 of "p": fault overloaded`)
	p.wants(t, "the pack", "execute x {}", "execute x {}")
	want := map[string]int{
		"refused.tool.unsupported": 1, "refused.tool.not_authorized": 1, "refused.tool.invalid": 1, "refused.tool.overloaded": 2,
	}
	if diff := cmp.Diff(want, r.counts); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	r.Stop(core.NewFault(core.CodeUnreachable, "over"))
}

func TestACallCountsUntilItsPackTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, caller := newRegistry(nil), &peer{}
		p := r.provide(t, "p", "x")
		r.call(caller, "1", "x", `{}`)
		time.Sleep(time.Millisecond)
		r.call(caller, "2", "x", `{}`)
		first, second := p.next(t), p.next(t)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.call(caller, "3", "x", `{}`)
		caller.wants(t, "the caller", `1 of "p": fault timeout`, `2 of "p": fault timeout`, `3 of "p": fault overloaded`)
		if r.Take(first) || r.Take(second) || r.Take(first) {
			t.Error("got an execution that has timed out, want none")
		}
		r.call(caller, "4", "x", `{}`)
		if e := p.next(t); !r.Take(e) || r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`1`)}) != nil {
			t.Error("got another call refused, want it accepted")
		}
		caller.wants(t, "the caller", `4 of "p": 1`)
	})
}

func TestOnlyThePackMayAnswerAndOnlyWithJSON(t *testing.T) {
	r, caller := newRegistry(nil), &peer{}
	p, q := r.provide(t, "p", "x"), r.provide(t, "q")
	r.call(caller, "1", "x", `{}`)
	e := p.next(t)
	wantFault(t, "another pack", r.Answer(q, e.ID, tool.Result{Output: json.RawMessage(`1`)}), core.CodeNotAuthorized)
	wantFault(t, "no JSON", r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`sunny`)}), core.CodeInvalid)
	caller.wants(t, "the caller", `1 of "p": fault invalid`)
	if diff := cmp.Diff(map[string]int{"tool.foreign": 1}, r.counts); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestAPackThatLeavesAnswersItsCallers(t *testing.T) {
	r, caller := newRegistry(nil), &peer{}
	p := r.provide(t, "p", "x")
	r.call(caller, "1", "x", `{}`)
	e := p.next(t)
	r.Leave(p, core.NewFault(core.CodeUnreachable, "gone"))
	caller.wants(t, "the caller", `1 of "p": fault unreachable`)
	if r.Take(e) {
		t.Error("got the call to execute, want nothing")
	}
	wantFault(t, "an answer", r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`1`)}), core.CodeConflict)
}

func TestACallOfACallerThatLeavesIsDroppedUnlessKept(t *testing.T) {
	for name, c := range map[string]struct{ taken, keep, want bool }{
		"a call that waits":              {want: false},
		"a call that is kept":            {keep: true, want: true},
		"a call that the pack has taken": {taken: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, caller := newRegistry(nil), &peer{}
			p := r.provide(t, "p", "x")
			r.Call(pack.Call{Caller: caller, ID: "1", Tool: "x", Keep: c.keep})
			e := p.next(t)
			if c.taken {
				r.Take(e)
			}
			r.Leave(caller, core.NewFault(core.CodeUnreachable, "gone"))
			if got := r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`1`)}) == nil; got != c.want {
				t.Errorf("got it answered: %t, want %t", got, c.want)
			}
		})
	}
}

func TestALateAnswerGoesToTheReceiverForLateAnswersOfItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, caller := newRegistry(nil), &peer{}
		caller.late = &late{peer: caller}
		p, q := r.provide(t, "p", "x"), r.provide(t, "q")
		r.call(caller, "1", "x", `{}`)
		e := p.next(t)
		r.Take(e)
		time.Sleep(time.Second)
		synctest.Wait()
		caller.wants(t, "the caller", `1 of "p": fault timeout`, "timed out")
		if r.Provider(e.ID) != pack.Peer(p) {
			t.Error("got no provider, want the pack")
		}
		wantFault(t, "another pack", r.Answer(q, e.ID, tool.Result{Output: json.RawMessage(`1`)}), core.CodeConflict)
		wantFault(t, "no JSON", r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`sunny`)}), core.CodeConflict)
		if err := r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`7`)}); err != nil {
			t.Errorf("got %v, want it taken", err)
		}
		caller.wants(t, "the caller", "late answer to 1 of x by p: 7 <nil>")
		wantFault(t, "a second answer", r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`8`)}), core.CodeConflict)

		caller.late.useless = true
		r.call(caller, "2", "x", `{}`)
		e = p.next(t)
		r.Take(e)
		time.Sleep(time.Second)
		synctest.Wait()
		wantFault(t, "a useless late answer", r.Answer(p, e.ID, tool.Result{Output: json.RawMessage(`7`)}), core.CodeConflict)
		want := map[string]int{"tool.timeout": 2, "tool.late": 4, "tool.late.injected": 1}
		if diff := cmp.Diff(want, r.counts); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	})
}

func TestTheOldestOfManyLateCallsIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, caller := newRegistry(nil), &peer{}
		caller.late = &late{peer: caller}
		p := r.provide(t, "p", "x")
		var all []string
		for range 257 {
			r.call(caller, "1", "x", `{}`)
			e := p.next(t)
			r.Take(e)
			all = append(all, e.ID)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if r.Provider(all[0]) != nil || r.Provider(all[1]) == nil {
			t.Error("got other calls remembered, want the latest 256")
		}
	})
}
