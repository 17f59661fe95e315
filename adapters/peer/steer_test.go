package peer_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestOfTwoDecisionsAtTwoHubsTheLaterIsRefused(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob := all["b"].join(t, all, core.Card{ID: "bob", Features: core.FeatureApprovals})
	asked := ask(t, all["a"].person("ann"), core.ToAgent("bob"))
	held := assigned(t, bob)
	waiting := func(at string, n int) {
		seen, err := all[at].Task(t.Context(), core.Principal{ID: "ann"}, asked.ID())
		if err != nil {
			t.Fatal(err)
		}
		for len(seen.Approvals()) != n {
			runtime.Gosched()
		}
	}
	for i := range 50 {
		id := fmt.Sprint(i)
		if err := bob.Report(held.ID(), core.ApprovalRequested{ID: id, Name: "rm"}, nil); err != nil {
			t.Fatal(err)
		}
		at := [...]string{"a", "c"}
		var errs [len(at)]error
		var deciding sync.WaitGroup
		for _, name := range at { // before anybody decides
			waiting(name, 1)
		}
		for k, name := range at {
			ann := all[name].person("ann")
			deciding.Go(func() {
				errs[k] = ann.Decide(t.Context(), asked.ID(), core.ApprovalDecided{ID: id, Approved: name == "a"})
			})
		}
		deciding.Wait()
		lost := core.AsFault(errs[0])
		if errs[0] == nil {
			lost = core.AsFault(errs[1])
		}
		if (errs[0] == nil) == (errs[1] == nil) || lost.Code != core.CodeConflict {
			t.Fatalf("decision %d: got %v at a and %v at c, want one that counts and one conflict", i, errs[0], errs[1])
		}
		for _, name := range at {
			waiting(name, 0)
		}
	}
}

func TestWhatTheOwnerRefusesIsToldWhereItWasGiven(t *testing.T) {
	all := connected(t, "a", "b")
	bob := all["b"].join(t, all, core.Card{ID: "bob"}) // takes no context
	ann := all["a"].person("ann")
	asked := ask(t, ann, core.ToAgent("bob"))
	assigned(t, bob)
	until(t, ann, asked.ID(), core.KindAssigned)
	if f := core.AsFault(ann.Inject(t.Context(), asked.ID(), core.Injected{Content: "hurry"})); f == nil || f.Code != core.CodeUnsupported {
		t.Errorf("got %v, want that the agent takes no context", f)
	}
	if err := ann.Inject(hub.NoWait, asked.ID(), core.Injected{Content: "hurry"}); err != nil {
		t.Errorf("without waiting: got %v, want it passed on", err)
	}
}

func TestNobodyWaitsLongForAHubThatIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob", Features: core.FeatureInjection})
		ann := w.person("a")
		asked := ask(t, ann, core.ToAgent("bob"))
		assigned(t, bob)
		until(t, ann, asked.ID(), core.KindAssigned)
		w.net.Cut("a", "b")
		began := time.Now()
		f := core.AsFault(ann.Inject(t.Context(), asked.ID(), core.Injected{Content: "hurry"}))
		if f == nil || f.Code != core.CodeUnreachable || time.Since(began) > 2*time.Second {
			t.Errorf("got %v after %s, want it unreachable within 2 s", f, time.Since(began))
		}
	})
}

func TestACommandDoesNotGoBackToTheHubThatPassedIt(t *testing.T) {
	all := connected(t, "a", "b")
	all["b"].join(t, all, core.Card{ID: "bob"})
	ann := core.Principal{ID: "ann"}
	id := core.TaskID("019c0000-0000-7000-8010-000000000001")
	opened := core.Opened{Task: id, From: ann, Request: core.Request{To: core.ToAgent("bob"), Intent: core.IntentAsk, Content: "why?"}}
	now := time.Now()
	for _, at := range all { // both know the task before one asks the other for it
		at.hubs.Extend(id, []core.Event{{Seq: 1, Epoch: 1, At: now, Body: opened}})
	}
	for at, owner := range map[string]string{"a": "b", "b": "a"} { // each believes that the other has it
		all[at].hubs.Extend(id, []core.Event{{Seq: 2, Epoch: 1, At: now, Body: core.Retrying{Hub: owner}}})
	}
	if err := all["a"].person("ann").Cancel(id, "enough"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ; all["b"].Counters()["peer.refused"] == 0; runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatal("got no refusal")
		}
	}
}
