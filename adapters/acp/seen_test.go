package acp

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
)

func TestTheMemoryOfSeenIDsIsBounded(t *testing.T) {
	seen := newSeenIDs()
	w := peerID{"p", "kit"}
	for i := range maxSeenIDs + 5000 {
		if _, _, fresh := seen.add(w, wire.Envelope{ID: fmt.Sprint(i)}, 1); !fresh {
			t.Fatalf("id %d: got seen, want fresh", i)
		}
	}
	if n := seen.ids.Len(); n > maxSeenIDs {
		t.Errorf("got %d ids, want at most %d", n, maxSeenIDs)
	}
	if _, _, fresh := seen.add(w, wire.Envelope{ID: fmt.Sprint(maxSeenIDs + 4999)}, 1); fresh {
		t.Error("the latest: got fresh, want seen")
	}
	seen.forget(w, fmt.Sprint(maxSeenIDs+4999))
	if _, _, fresh := seen.add(w, wire.Envelope{ID: fmt.Sprint(maxSeenIDs + 4999)}, 1); !fresh {
		t.Error("a forgotten one: got seen, want fresh")
	}
}

func TestAFloodOfOnePeerEvictsNoIDsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := newSeenIDs()
		kit, fam, eve := peerID{"kit", "kit"}, peerID{"fam", "fam"}, peerID{"eve", "eve"}
		seen.add(kit, wire.Envelope{ID: "1"}, 1)
		for i := range maxSeenIDs {
			seen.add(eve, wire.Envelope{ID: fmt.Sprint(i)}, 2)
		}
		seen.add(fam, wire.Envelope{ID: "1"}, 3)
		for i := range maxSeenIDs {
			seen.add(peerID{"eve", "another of hers"}, wire.Envelope{ID: fmt.Sprint(i)}, 2)
		}
		for _, w := range []peerID{kit, fam} {
			if _, _, fresh := seen.add(w, wire.Envelope{ID: "1"}, 1); fresh {
				t.Errorf("the id of %s: got fresh, want seen", w.id)
			}
		}
		if _, _, fresh := seen.add(eve, wire.Envelope{ID: "1"}, 2); !fresh {
			t.Error("the oldest of the flooding peer: got seen, want it forgotten")
		}
		time.Sleep(KeepIDs)
		if _, _, fresh := seen.add(fam, wire.Envelope{ID: "1"}, 3); !fresh {
			t.Error("expired: got seen, want fresh")
		}
		if n := seen.ids.Len(); n != 1 {
			t.Errorf("all expired: got %d ids, want one", n)
		}
	})
}
