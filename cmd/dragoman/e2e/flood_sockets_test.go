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

// pausableConn is a connection whose reader a test can stop.
type pausableConn struct {
	link.Conn[[]byte, []byte]
	reading sync.RWMutex // locked for as long as it does not
}

func (d *pausableConn) Receive(ctx context.Context) ([]byte, error) {
	d.reading.RLock()
	defer d.reading.RUnlock()
	return d.Conn.Receive(ctx)
}

// Half of the chunks are sent after the reader has stopped, half after other requests were
// answered. No buffer between the hub and the reader holds them.
const delugeChunks = 50_000

func delugeChunk(i int) string { return fmt.Sprintf("%05d %s\n", i, strings.Repeat("~", 600)) }

// A Coven agent sends 50,000 chunks over gRPC to an ACP peer that does not read its WebSocket. In
// the meantime the agent answers others in three dialects with 5,000 chunks each. The flood ends
// without waiting for its reader, and the reader then gets all of it.
func TestAFloodOverSocketsLosesNothingAndSlowsNobody(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) {
		// A peer that does not read answers no ping either.
		c.WebSocket.PingInterval, c.WebSocket.WriteTimeout = ample, ample
	})
	h.startAgentWith(t, coven.Name, "torrent", func(ctx context.Context, r core.Request, say func(core.Body) error) error {
		in := parseInstruction(r.Content)
		if in.verb != "deluge" {
			return h.handle(ctx, r, say)
		}
		for i := range delugeChunks {
			if i == delugeChunks/2 {
				h.signal(in.key+" half", nil)
				if _, err := h.wait(ctx, in.key+" released"); err != nil {
					return context.Cause(ctx)
				}
			}
			if err := say(core.Text{Text: delugeChunk(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	paused := new(pausableConn)
	sleeper := acpDialect("ACP", true, func(t *testing.T, h *testHub) frames {
		conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: h.url()}, "/ws/acp", nil, client.MaxACPBytes)
		if err != nil {
			t.Fatal(err)
		}
		paused.Conn = conn
		return frames{paused, func() {}}
	}).connect(t, h, "sleeper")
	defer sleeper.leave()
	join := func(dialect *clientDialect) requester {
		return dialect.connect(t, h, "quick-"+strings.ToLower(strings.Fields(dialect.name)[0]))
	}
	acp, pi, tools := join(acpOverWebSocket()), join(piOverWebSocket()), join(covenByTools())
	for _, other := range []requester{acp, pi, tools} {
		defer other.leave()
	}

	key := h.key()
	flooded := sleeper.begin(query{to: "torrent", content: "deluge " + key, deadline: ample})
	h.await(t, key+" text")
	paused.reading.Lock() // once the frame that is under way is read
	h.await(t, key+" half")
	for name, other := range map[string]requester{"pi": pi, "Coven": tools} {
		got := other.begin(query{to: "torrent", content: "burst " + h.key(), deadline: ample}).wait(t)
		if got.Text != wholeBurst || got.Violation != "" {
			t.Errorf("%s, while half of the flood is sent: got %d bytes of %d, %s %q", name, len(got.Text), len(wholeBurst), got.End, got.Violation)
		}
	}
	h.signal(key+" released", nil)
	another := acp.begin(query{to: "torrent", content: "burst " + h.key(), deadline: ample})
	if got := another.wait(t); got.Text != wholeBurst {
		t.Errorf("in the middle of the flood: got %d bytes of %d, %s", len(got.Text), len(wholeBurst), got.End)
	}
	if end := h.end(t, key); end.Kind() != core.KindDone {
		t.Errorf("got the flood ended as %+v, want done before anything more is read", end)
	}
	select {
	case <-flooded.ended:
		t.Error("the reader had everything before it read on: the flood is too small for the buffers between")
	default:
	}

	paused.reading.Unlock()
	got := flooded.wait(t)
	for i := range delugeChunks {
		want := delugeChunk(i)
		if !strings.HasPrefix(got.Text, want) {
			t.Fatalf("got %.20q where chunk %d was due, want every chunk once and in order", got.Text, i)
		}
		got.Text = got.Text[len(want):]
	}
	if got.Text != "" || got.End != "response" || got.Violation != "" {
		t.Errorf("behind the last chunk: got %d bytes, the end %s %q, want the response alone", len(got.Text), got.End, got.Violation)
	}
}
