package peer_test

import (
	"log/slog"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// FuzzFrame gives a hub a frame of another one: it is executed, or ends the connection.
func FuzzFrame(f *testing.F) {
	const id = "01234567-0123-7123-8123-0123456789ab"
	for _, s := range []string{
		`h{"version":1,"program":"x"}`, `h{"version":2}`, `o{"opened":{"seq":1,"kind":"opened"},"from":{"id":"ann"}}`, `d{}`, `d{"by":{"id":"ann"}}`,
		`d{"by":{"id":"ann"},"call":{"act":"cancel","command":{"task":"` + id + `"}}}`, "f" + id, "u" + id, "e" + id + "\n{}", "e" + id, "", "z",
	} {
		f.Add([]byte(s))
	}
	a := connected(f, "a")["a"]
	a.HubUp("b", 1)
	f.Fuzz(func(t *testing.T, frame []byte) {
		one, other := coretest.Pipe[[]byte, []byte](10)
		c := a.peers.Connect(a.Hub, one, peer.Options{Name: "b", Log: slog.New(slog.DiscardHandler)})
		if err := other.Send(t.Context(), frame); err != nil {
			t.Fatal(err)
		}
		if err := other.Close(link.Reason{Cause: link.Normal}); err != nil {
			t.Fatal(err)
		}
		c.Run(t.Context()) // it ends, whatever the frame was
	})
}
