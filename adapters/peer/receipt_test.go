package peer_test

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

func TestAReceiptOfATaskAtAnotherHubWaitsForItsOwner(t *testing.T) {
	var asks inquiring
	all, _ := connectedOver(t, func(string, *hub.Options) {}, func(name string, l remote.Links) remote.Links {
		if name == "a" {
			asks.Links = l
			return &asks
		}
		return l
	}, "a", "b")
	bob := all["b"].join(t, all, core.Card{ID: "bob"})
	asked := ask(t, all["a"].person("ann"), core.ToAgent("bob"))
	held := assigned(t, bob)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := all["a"].Recorded(ctx, asked, 1); err != nil || !held.HasRecorded(1) {
		t.Errorf("got %v, want that the owner has recorded it", err)
	}
	before, got := asks.receipts.Load(), make(chan error, 1)
	go func() { got <- all["a"].Recorded(ctx, asked, 1000) }()
	for asks.receipts.Load() < before+2 && len(got) == 0 { // it asks again: the owner has not said yes
		runtime.Gosched()
	}
	cancel()
	if err, n := <-got, asks.receipts.Load()-before; err == nil || n < 2 {
		t.Errorf("got %v after the owner was asked %d times, want no receipt for what was never said", err, n)
	}
}

// inquiring counts how often a hub asks others for a receipt.
type inquiring struct {
	remote.Links
	receipts atomic.Int64
}

func (i *inquiring) Ask(ctx context.Context, to string, q rpc.Request) (json.RawMessage, error) {
	if q.What == "task.recorded" {
		i.receipts.Add(1)
	}
	return i.Links.Ask(ctx, to, q)
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
