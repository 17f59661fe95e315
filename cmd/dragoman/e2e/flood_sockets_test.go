package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// deaf is the end of a peer that reads nothing while it does not listen.
type deaf struct {
	link.Conn[[]byte, []byte]
	listens sync.RWMutex // locked for as long as it does not
}

func (d *deaf) Receive(ctx context.Context) ([]byte, error) {
	d.listens.RLock()
	defer d.listens.RUnlock()
	return d.Conn.Receive(ctx)
}

// Half of the deluge comes while its reader has stopped reading, half after somebody
// else was served meanwhile. No buffer between the hub and the reader holds it.
const delugeChunks = 50_000

func droplet(i int) string { return fmt.Sprintf("%05d %s\n", i, strings.Repeat("~", 600)) }

// A Coven agent says 50,000 things over gRPC to an ACP peer, over a WebSocket, that
// reads none of it. Meanwhile the same agent answers others, in three dialects, in
// 5,000 chunks each, one of them while it floods; it is done without waiting for who
// does not read; and who reads on has lost nothing.
func TestAFloodOverSocketsLosesNothingAndSlowsNobody(t *testing.T) {
	s := newStage(t, func(c *config.Config) {
		// Who does not read answers no ping, and takes nothing for as long as the others need.
		c.WebSocket.PingInterval, c.WebSocket.WriteTimeout = ample, ample
	})
	s.hire(t, coven.Name, "torrent", func(ctx context.Context, r core.Request, say func(core.Body) error) error {
		what := readScene(r.Content)
		if what.act != "deluge" {
			return s.play(ctx, r, say)
		}
		for i := range delugeChunks {
			if i == delugeChunks/2 {
				s.post(what.key+" half", nil)
				if _, err := s.wait(ctx, what.key+" released"); err != nil {
					return context.Cause(ctx)
				}
			}
			if err := say(core.Text{Text: droplet(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	ears := new(deaf)
	sleeper := acpTongue("ACP", true, func(t *testing.T, s *stage) frames {
		conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: "http://" + s.service.Addresses().HTTP}, "/ws/acp", nil, client.MaxACPBytes)
		if err != nil {
			t.Fatal(err)
		}
		ears.Conn = conn
		return frames{ears, func() {}}
	}).connect(t, s, "sleeper")
	defer sleeper.leave()
	join := func(tongue *tongue) requester {
		return tongue.connect(t, s, "quick-"+strings.ToLower(strings.Fields(tongue.name)[0]))
	}
	acp, pi, tools := join(acpOverWebSocket()), join(piOverWebSocket()), join(covenByTools())
	for _, other := range []requester{acp, pi, tools} {
		defer other.leave()
	}

	key := s.key()
	flooded := sleeper.begin(inquiry{to: "torrent", content: "deluge " + key, deadline: ample})
	s.await(t, key+" text")
	ears.listens.Lock() // once the frame that is under way is read
	s.await(t, key+" half")
	for name, other := range map[string]requester{"pi": pi, "Coven": tools} {
		got := other.begin(inquiry{to: "torrent", content: "burst " + s.key(), deadline: ample}).outcome(t)
		if got.Text != wholeBurst || got.Broken != "" {
			t.Errorf("%s, while the flood stands at half: got %d bytes of %d, %s %q", name, len(got.Text), len(wholeBurst), got.End, got.Broken)
		}
	}
	s.post(key+" released", nil)
	another := acp.begin(inquiry{to: "torrent", content: "burst " + s.key(), deadline: ample})
	if got := another.outcome(t); got.Text != wholeBurst {
		t.Errorf("in the middle of the flood: got %d bytes of %d, %s", len(got.Text), len(wholeBurst), got.End)
	}
	if end := s.end(t, key); end.Kind() != core.KindDone {
		t.Errorf("got the flood ended as %+v, want done before anything more is read", end)
	}
	select {
	case <-flooded.ended:
		t.Error("the reader had everything before it read on: the flood is too small for the buffers between")
	default:
	}

	ears.listens.Unlock()
	got := flooded.outcome(t)
	for i := range delugeChunks {
		want := droplet(i)
		if !strings.HasPrefix(got.Text, want) {
			t.Fatalf("got %.20q where chunk %d was due, want every chunk once and in order", got.Text, i)
		}
		got.Text = got.Text[len(want):]
	}
	if got.Text != "" || got.End != "response" || got.Broken != "" {
		t.Errorf("behind the last chunk: got %d bytes, the end %s %q, want the response alone", len(got.Text), got.End, got.Broken)
	}
}
