package acp

import (
	"fmt"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestPendingResultsAreBoundedAndLostOnesAreCounted(t *testing.T) {
	p, kit := NewPeers(coretest.NewHub(t, hub.Options{}), PeersOptions{}), peerID{"kit", "kit"}
	at := time.Now()
	var due []pendingResult
	for i := range maxPending {
		due = append(due, pendingResult{id: fmt.Sprint(i), reports: i != 7, until: at.Add(time.Duration(maxPending-i) * time.Second)})
	}
	if here, lost := p.keepPending(kit, due); here != nil || lost != 0 {
		t.Errorf("as many as there is room for: got %v and %d lost, want none", here, lost)
	}
	if _, lost := p.keepPending(kit, []pendingResult{{id: "more", reports: true, until: at.Add(time.Hour)}}); lost != 0 {
		t.Errorf("a delegate without a report makes room: got %d lost, want none", lost)
	}
	if _, lost := p.keepPending(kit, []pendingResult{{id: "still more", reports: true, until: at.Add(time.Hour)}}); lost != 1 {
		t.Errorf("one above the limit: got %d lost, want 1", lost)
	}
	for _, o := range p.pending[kit] {
		if o.id == "7" || o.id == fmt.Sprint(maxPending-1) {
			t.Errorf("got %s kept, want it dropped as unwanted or kept for the shortest time", o.id)
		}
	}
	if got := len(p.pending[kit]); got != maxPending || p.pendingCount != maxPending {
		t.Errorf("got %d kept and %d counted, want %d", got, p.pendingCount, maxPending)
	}
	for i := range maxPendingTotal/maxPending - 1 {
		p.keepPending(peerID{"p", core.AgentID(fmt.Sprint(i))}, due)
	}
	if _, lost := p.keepPending(peerID{"p", "last"}, due[:2]); lost != 2 || p.pendingCount != maxPendingTotal {
		t.Errorf("above the total limit: got %d lost and %d kept, want 2 and %d", lost, p.pendingCount, maxPendingTotal)
	}
}
