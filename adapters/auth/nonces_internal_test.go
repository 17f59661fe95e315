package auth

import (
	"strconv"
	"testing"
)

func TestAFullMemoryRefusesRatherThanForgets(t *testing.T) {
	ann, bob, eve := Fingerprint{1}, Fingerprint{2}, Fingerprint{3}
	n := nonces{most: 5, mostOfKey: 3}
	const now = 1_000_000
	add := func(key Fingerprint, at int64, nonce string, now int64, want verdict) {
		t.Helper()
		if got := n.add(key, at, nonce, now); got != want {
			t.Errorf("%s of %v: got %v, want %v", nonce, key[0], got, want)
		}
	}
	for i := range 3 {
		add(ann, now, strconv.Itoa(i), now, fresh)
	}
	add(ann, now, "3", now, full)
	add(bob, now+60, "0", now, fresh)
	add(bob, now+1, "1", now, fresh)
	add(eve, now, "0", now, full)
	add(ann, now, "0", now, replayed)
	add(ann, now, "0", now+300, replayed)
	add(eve, now+300, "0", now+300, full)
	add(ann, now, "0", now+301, replayed) // it has expired
	add(eve, now+301, "0", now+301, fresh)
	add(ann, now+301, "0", now+301, fresh)
	add(ann, now+302, "0", now+302, fresh)
	add(bob, now+60, "0", now+302, replayed)
	if n.size != 4 || n.sizes[ann] != 2 || n.sizes[bob] != 1 || len(n.seconds) != 3 {
		t.Errorf("got %d nonces, %v, in %d seconds; want 4 in 3", n.size, n.sizes, len(n.seconds))
	}
	if !n.seen(bob, now+60, "0") || n.seen(ann, now+60, "0") {
		t.Error("got a nonce of bob unknown, or one of ann known")
	}
}
