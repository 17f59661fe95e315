package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

func piAt(t *testing.T, h *clusterHub) *piConn {
	t.Helper()
	conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: h.URL}, "/ws/pi", nil, 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	c := &piConn{t: t, events: make(chan pitest.Frame, 1000)}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if c.Conn, err = pitest.Connect(ctx, conn, func(f pitest.Frame) { c.events <- f }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// piHome returns the hub that has the sessions of clients of pi, one of which has just connected. It may be
// another one than before: a hub that stood still on a busy machine is taken over.
func piHome(t *testing.T, all hubCluster) (home *clusterHub) {
	t.Helper()
	var latest time.Time
	for _, h := range all {
		for line := range strings.Lines(h.log()) {
			var printed struct {
				Time    time.Time
				Message string
			}
			if json.Unmarshal([]byte(line), &printed) == nil && printed.Message == "pi client connected" && printed.Time.After(latest) {
				home, latest = h, printed.Time
			}
		}
	}
	if home == nil {
		t.Fatal("no hub has logged that a client of pi has connected")
	}
	return home
}

// A client whose home is killed connects again, and goes on in its thread at another hub.
func piGoesOnElsewhere(t *testing.T, all hubCluster) {
	piAt(t, all[0])
	home := piHome(t, all)
	other := all[0]
	if other == home {
		other = all[2]
	}
	var state struct{ Thread string }
	c := piAt(t, other)
	if f := c.do(map[string]any{"type": "get_state", "sessionId": "mine"}); json.Unmarshal(f.Data, &state) != nil || state.Thread == "" {
		t.Fatalf("got %s, want the thread of the session", f.Raw)
	}
	home.kill()
	other.until("the client is disconnected", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Do(ctx, map[string]any{"type": "list_sessions"})
		if over := (*link.Reason)(nil); errors.As(err, &over) {
			return nil
		}
		return fmt.Errorf("it is connected: %w", err)
	})
	id := "again-" + core.NewID()
	other.until("it finds its thread", func() error {
		c := piAt(t, other)
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		messages, err := c.Do(ctx, map[string]any{"type": "get_messages", "sessionId": id})
		if err == nil && strings.Contains(string(messages.Data), "HELLO") {
			return nil
		}
		f, failed := c.Do(ctx, map[string]any{"type": "create_session", "sessionId": id, "thread": state.Thread}) // once: it may be made although no answer comes
		return fmt.Errorf("got %s and %w, and then %s and %w", messages.Raw, err, f.Raw, failed)
	})
}

func piFindsItsOwn(t *testing.T, all hubCluster, w *worker) {
	dial := func(h *clusterHub) *piConn {
		t.Helper()
		return piAt(t, h)
	}
	ask := func(c *piConn, text string) {
		t.Helper()
		if f := c.do(map[string]any{"type": "prompt", "sessionId": "mine", "message": text}); !f.Success {
			t.Fatalf("got %s, want the prompt taken", f.Raw)
		}
	}
	first := dial(all[0])
	for _, command := range []map[string]any{
		{"type": "create_session", "sessionId": "mine", "agent": "worker"},
		{"type": "switch_session", "sessionId": "mine"},
	} {
		if f := first.do(command); !f.Success {
			t.Fatalf("%s at a: got %s", command["type"], f.Raw)
		}
	}
	ask(first, "hello")
	first.waitFrame(`"agent_end"`, "HELLO")
	for _, h := range all[1:] {
		c := dial(h)
		if f := c.do(map[string]any{"type": "list_sessions"}); !strings.Contains(string(f.Data), `"mine"`) {
			t.Errorf("the sessions at %s: got %s, want the one of hub a", h.name, f.Data)
		}
		if f := c.do(map[string]any{"type": "switch_session", "sessionId": "mine"}); !f.Success {
			t.Errorf("switching at %s: got %s", h.name, f.Raw)
		}
		if f := c.do(map[string]any{"type": "get_messages", "sessionId": "mine"}); !strings.Contains(string(f.Data), "HELLO") {
			t.Errorf("the messages at %s: got %s, want those of hub a", h.name, f.Data)
		}
		c.send(map[string]any{"type": "prompt", "sessionId": "mine", "message": "wait at " + h.name})
		w.takes(t, "wait at "+h.name)
		c.waitFrame(`"agent_end"`, "WAIT AT "+strings.ToUpper(h.name))
		first.waitFrame(`"agent_end"`, "WAIT AT "+strings.ToUpper(h.name))
	}
	var stored struct {
		Sessions []struct{ SessionID, SessionFile string }
	}
	f := dial(all[2]).do(map[string]any{"type": "list_stored_sessions"})
	if err := json.Unmarshal(f.Data, &stored); err != nil || len(stored.Sessions) != 1 || stored.Sessions[0].SessionFile == "" {
		t.Errorf("the files at c: got %s, want the one of the session", f.Data)
	}
}
