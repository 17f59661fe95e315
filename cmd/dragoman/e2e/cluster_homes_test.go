package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	piclient "github.com/dragoman-hub/dragoman/adapters/pi/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// worker is an agent at one hub of a cluster: it answers in capitals, what begins with "wait" once
// it is released.
type worker struct {
	asked   chan string // what it was asked to wait with
	release chan struct{}
}

func joinWorker(t *testing.T, at *clusterHub, id core.AgentID) *worker {
	t.Helper()
	w := &worker{asked: make(chan string, 100), release: make(chan struct{}, 100)}
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: at.grpc}, core.Card{ID: id}, func(ctx context.Context, r core.Request, report func(core.Body) error) error {
			if strings.HasPrefix(r.Content, "wait") {
				w.asked <- r.Content
				select {
				case <-w.release:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return report(core.Done{Text: strings.ToUpper(r.Content)})
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		leave()
		<-ended
	})
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
	return w
}

// A client of each dialect talks at one hub, goes on at the next, then at the third.
func TestClientsFindTheirOwn(t *testing.T) {
	all := startCluster(t, 3)
	w := joinWorker(t, all[1], "worker")
	for _, h := range all {
		h.until(h.name+" knows the agent", func() error { return h.Get(t.Context(), "/v1/agents/worker", new(any)) })
	}
	for name, finds := range map[string]func(t *testing.T, all hubCluster, w *worker){
		"pi": piFindsItsOwn,
	} {
		t.Run(name, func(t *testing.T) { finds(t, all, w) })
	}
}

func piFindsItsOwn(t *testing.T, all hubCluster, w *worker) {
	dial := func(h *clusterHub) *piConn {
		t.Helper()
		conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: h.URL}, "/ws/pi", nil, 10<<20)
		if err != nil {
			t.Fatal(err)
		}
		c := &piConn{t: t, events: make(chan piclient.Frame, 1000)}
		if c.Conn, err = piclient.Connect(t.Context(), conn, func(f piclient.Frame) { c.events <- f }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
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
		<-w.asked
		w.release <- struct{}{}
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
