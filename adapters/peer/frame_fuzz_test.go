package peer_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// FuzzFrame gives a hub a frame of another one: it is executed, or ends the connection.
func FuzzFrame(f *testing.F) {
	const id = "01234567-0123-7123-8123-0123456789ab"
	for _, s := range []string{
		`h{"version":1,"program":"x"}`, `h{"version":2}`, "l\x01" + `o{"opened":{"seq":1,"kind":"opened"},"from":{"id":"ann"}}`, "l\x01d{}", "l\x02d{}", "l", "l\x01", "g\x01", "g", "l\x01" + `d{"by":{"id":"ann"}}`,
		"l\x01" + `n{"what":"none"}`, "q\x01" + `{"by":{"id":"ann"},"what":"none"}`, "q", "a\x01{}", "a", "l\x01" + `d{"by":{"id":"ann"},"call":{"act":"cancel","command":{"task":"` + id + `"}}}`, "f" + id, "u" + id, "e" + id + "\n{}", "e" + id, "", "z",
	} {
		f.Add([]byte(s))
	}
	a := connected(f, "a")["a"]
	a.hubs.HubUp("b", 1)
	f.Fuzz(func(t *testing.T, frame []byte) {
		one, other := coretest.Pipe[[]byte, []byte](10)
		b := a.add(peer.Options{Name: "b"})
		defer b.Close()
		if err := other.Send(t.Context(), frame); err != nil {
			t.Fatal(err)
		}
		if err := other.Close(link.Reason{Cause: link.Normal}); err != nil {
			t.Fatal(err)
		}
		b.Run(t.Context(), one) // it ends, whatever the frame was
	})
}
