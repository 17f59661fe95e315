package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// A hub is killed while a prompt runs, right after the response to another command. After every
// restart nothing is done twice: a failed prompt is replayed, and so is the interrupted one. A
// success that created the lost session is repeated.
func TestOutcomesOfPiCommandsSurviveAKill(t *testing.T) {
	for _, sync := range []string{"interval", "always"} {
		t.Run(sync, func(t *testing.T) {
			dir := t.TempDir()
			create := map[string]any{"id": "c", "idempotencyKey": "kc", "type": "create_session", "sessionId": "s", "agent": "mute"}
			rename := map[string]any{"id": "n", "idempotencyKey": "kn", "type": "set_session_name", "sessionId": "s", "name": "mine"}
			abort := map[string]any{"id": "x", "idempotencyKey": "kx", "type": "abort", "sessionId": "s"}
			prompt := map[string]any{"id": "p", "idempotencyKey": "kp", "type": "prompt", "sessionId": "s", "message": "never answered"}

			h := serveHub(t, dir, sync)
			muteAgent(t, h.grpc)
			c := dialPi(t, h)
			c.do(create)
			c.do(rename)
			c.do(abort)
			c.send(prompt)
			c.waitFrame(`"command_started"`, `"commandId":"p"`)
			h.kill()

			for life := range 2 {
				h = serveHub(t, dir, sync)
				c = dialPi(t, h)
				if f := c.do(create); !f.Success || f.Replayed || f.SessionVersion == nil || *f.SessionVersion != 0 {
					t.Errorf("life %d: got %s, want the session made again: it has no file yet", life, f.Raw)
				}
				if f := c.do(rename); !f.Success || f.Replayed || f.SessionVersion == nil || *f.SessionVersion != 1 {
					t.Errorf("life %d: got %s, want the session named again", life, f.Raw)
				}
				if f := c.do(abort); !f.Success || !f.Replayed || *f.SessionVersion != 2 {
					t.Errorf("life %d: got %s, want the success replayed with version 2", life, f.Raw)
				}
				const want = "Command did not finish before previous shutdown and was marked failed during recovery"
				if f := c.do(prompt); f.Error != want || !f.Replayed {
					t.Errorf("life %d: got %s, want the prompt replayed as cut off", life, f.Raw)
				}
				if f := c.do(map[string]any{"type": "get_command_history", "commandId": "p"}); strings.Count(string(f.Data), "restart_inflight_marked_failed") != 1 {
					t.Errorf("life %d: got %s, want the prompt marked as failed once", life, f.Data)
				}
				if f := c.do(map[string]any{"type": "get_startup_recovery"}); !strings.Contains(string(f.Data), `"journalPath":"`+dir+`"`) {
					t.Errorf("life %d: got %s, want the data directory on an open hub", life, f.Data)
				}
				h.kill()
			}
		})
	}
}

// A pi client that lost its hub repeats its commands, gets its session back with all messages, and
// continues.
func TestAPiSessionIsRestoredFromItsFileAfterAKill(t *testing.T) {
	t.Parallel()
	dir, sessions := t.TempDir(), t.TempDir()
	serve := func() *servedHub {
		cmd := program(t, "serve", "--data-dir", dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json")
		cmd.Env = append(cmd.Env, "DRAGOMAN_PI_SESSION_DIR="+sessions)
		return serveHubCmd(t, cmd, "always")
	}
	withNames := func(id string, command map[string]any) map[string]any {
		command["id"], command["idempotencyKey"] = id, "k"+id
		return command
	}
	create := withNames("c", map[string]any{"type": "create_session", "sessionId": "s", "agent": "a"})
	subscribe := withNames("w", map[string]any{"type": "switch_session", "sessionId": "s"})
	first := withNames("p", map[string]any{"type": "prompt", "sessionId": "s", "message": "answer one"})

	h := serve()
	leave := joinAnswerer(t, h.grpc, "a")
	c := dialPi(t, h)
	c.do(create)
	c.do(subscribe)
	if f := c.do(first); !f.Success {
		t.Fatalf("got %s, want the prompt answered", f.Raw)
	}
	c.flushSession("s")
	h.kill()
	leave()

	for life, commands := range [][]map[string]any{
		{create, subscribe, first}, {subscribe}, {create}, {}, // a client that repeats no command still names the session
	} {
		h = serve()
		leave = joinAnswerer(t, h.grpc, "a")
		c = dialPi(t, h)
		c.waitFrame(`"type":"startup_recovery_summary"`, `"initState":"ready"`, `"journalPath":"[redacted]"`)
		for _, command := range commands {
			if f := c.do(command); !f.Success || f.Replayed != (command["type"] == "prompt") {
				t.Errorf("life %d: got %s, want a success, replayed of a prompt alone", life, f.Raw)
			}
		}
		if f := c.do(map[string]any{"type": "prompt", "sessionId": "s", "message": "answer again"}); !f.Success {
			t.Errorf("life %d: got %s, want the prompt answered", life, f.Raw)
		}
		f := c.do(map[string]any{"type": "get_messages", "sessionId": "s"})
		if got, want := strings.Count(string(f.Data), `"role":"assistant"`), life+2; got != want {
			t.Errorf("life %d: got %d answers in the conversation, want %d: %s", life, got, want, f.Data)
		}
		c.flushSession("s")
		h.kill()
		leave()
	}
}

// flushSession makes the hub write the session's file: loading a file writes it first.
func (c *piConn) flushSession(session string) {
	c.t.Helper()
	var state struct{ SessionFile string }
	if err := json.Unmarshal(c.do(map[string]any{"type": "get_state", "sessionId": session}).Data, &state); err != nil {
		c.t.Fatal(err)
	}
	if f := c.do(map[string]any{"type": "load_session", "sessionPath": state.SessionFile, "sessionId": "copy"}); !f.Success {
		c.t.Fatalf("loading the file: got %s, want a success", f.Raw)
	}
}

// muteAgent joins an agent that never answers.
func muteAgent(t *testing.T, grpc string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: grpc}, core.Card{ID: "mute"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			return ctx.Err()
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
}

// piConn is a pi client of a hub in a process of its own.
type piConn struct {
	*pitest.Conn
	t      *testing.T
	events chan pitest.Frame
}

func dialPi(t *testing.T, h *servedHub) *piConn {
	t.Helper()
	conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: h.URL}, "/ws/pi", nil, 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	c := &piConn{t: t, events: make(chan pitest.Frame, 1000)}
	if c.Conn, err = pitest.Connect(t.Context(), conn, func(f pitest.Frame) { c.events <- f }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *piConn) do(command map[string]any) pitest.Frame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), watchdog)
	defer cancel()
	f, err := c.Do(ctx, command)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// send sends a command without waiting for the response.
func (c *piConn) send(command map[string]any) {
	c.t.Helper()
	frame, err := json.Marshal(command)
	if err == nil {
		err = c.Send(c.t.Context(), frame)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// waitFrame waits for a frame with all of the parts.
func (c *piConn) waitFrame(parts ...string) {
	c.t.Helper()
	limit := time.After(watchdog)
next:
	for {
		select {
		case f := <-c.events:
			for _, p := range parts {
				if !strings.Contains(string(f.Raw), p) {
					continue next
				}
			}
			return
		case <-limit:
			c.t.Fatalf("no frame with %q", parts)
		}
	}
}
