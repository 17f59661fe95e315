package peer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

func TestAReceiptOfATaskAtAnotherHubWaitsForItsOwner(t *testing.T) {
	all := connected(t, "a", "b")
	bob := all["b"].join(t, all, core.Card{ID: "bob"})
	asked := ask(t, all["a"].person("ann"), core.ToAgent("bob"))
	held := assigned(t, bob)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := all["a"].Recorded(ctx, asked, 1); err != nil || !held.HasRecorded(1) {
		t.Errorf("got %v, want that the owner has recorded it", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := all["a"].Recorded(ctx, asked, 1000); err == nil {
		t.Error("got a receipt for what was never said")
	}
}

func TestTheHubOfTheRequesterCallsATaskDeliveredOnceItsAgentHasAnswered(t *testing.T) {
	all := connected(t, "a", "b")
	bob, ann := all["b"].join(t, all, core.Card{ID: "bob"}), all["a"].person("ann")
	asked := ask(t, ann, core.ToAgent("bob"))
	want := func(when string, stage core.Stage, agent core.AgentID) {
		t.Helper()
		if r := asked.Receipt(); r.Stage != stage || r.Agent != agent {
			t.Errorf("%s: got %s by %q, want %s by %q", when, r.Stage, r.Agent, stage, agent)
		}
	}
	until(t, ann, asked.ID(), core.KindAssigned) // its agent has taken nothing yet
	want("assigned", core.StageAccepted, "")
	if err := bob.Report(assigned(t, bob).ID(), core.Text{Text: "well"}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, ann, asked.ID(), core.KindText)
	want("answered", core.StageDelivered, "bob")
}

func TestReceiptsThatManyWaitForKeepNoInquiryWaiting(t *testing.T) {
	all := connected(t, "a", "b")
	all["b"].join(t, all, core.Card{ID: "bob"})
	asked := ask(t, all["a"].person("ann"), core.ToAgent("bob"))
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	for range 64 {
		waiting.Go(func() { _ = all["a"].Recorded(ctx, asked, 1000) }) // what was never said
	}
	for range 10 {
		if _, missing := all["a"].Approvals(ctx, core.Principal{ID: "ann"}); missing != nil {
			t.Fatalf("got %v missing, want its answer", missing)
		}
	}
}
