package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
)

// A hub is killed while a prompt runs, right behind the response to another command.
// However often it starts again, what finished is replayed and the prompt replays as
// failed: nothing is done twice.
func TestWhatCameOfPiCommandsSurvivesAKill(t *testing.T) {
	for _, sync := range []string{"interval", "always"} {
		t.Run(sync, func(t *testing.T) {
			dir := t.TempDir()
			create := map[string]any{"id": "c", "idempotencyKey": "kc", "type": "create_session", "sessionId": "s", "agent": "mute"}
			rename := map[string]any{"id": "n", "idempotencyKey": "kn", "type": "set_session_name", "sessionId": "s", "name": "mine"}
			prompt := map[string]any{"id": "p", "idempotencyKey": "kp", "type": "prompt", "sessionId": "s", "message": "never answered"}

			h := serveProgram(t, dir, sync)
			muteAgent(t, h.grpc)
			c := piOf(t, h)
			made := c.do(create)
			c.do(rename)
			c.begin(prompt)
			c.heard(`"command_started"`, `"commandId":"p"`)
			h.kill()

			for life := range 2 {
				h = serveProgram(t, dir, sync)
				c = piOf(t, h)
				if f := c.do(create); !f.Success || !f.Replayed || string(f.Data) != string(made.Data) {
					t.Errorf("life %d: got %s, want %s replayed", life, f.Raw, made.Raw)
				}
				if f := c.do(rename); !f.Success || !f.Replayed || f.SessionVersion == nil || *f.SessionVersion != 1 {
					t.Errorf("life %d: got %s, want the success replayed with version 1", life, f.Raw)
				}
				const want = "Command did not finish before previous shutdown and was marked failed during recovery"
				if f := c.do(prompt); f.Error != want || !f.Replayed {
					t.Errorf("life %d: got %s, want the prompt replayed as cut off", life, f.Raw)
				}
				if f := c.do(map[string]any{"type": "get_command_history", "commandId": "p"}); strings.Count(string(f.Data), "restart_inflight_marked_failed") != 1 {
					t.Errorf("life %d: got %s, want the prompt marked as failed once", life, f.Data)
				}
				h.kill()
			}
		})
	}
}

// muteAgent joins an agent that never answers.
func muteAgent(t *testing.T, grpc string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- joins()[coven.Name](ctx, place{grpc: grpc}, core.Card{ID: "mute"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(asker) { close(in) }, slog.New(slog.DiscardHandler))
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

// piOfHub is a pi client of a hub in a process of its own.
type piOfHub struct {
	*pi.Client
	t      *testing.T
	events chan pi.Frame
}

func piOf(t *testing.T, h *served) *piOfHub {
	t.Helper()
	conn, err := dialWS(t.Context(), place{http: h.base}, "/ws/pi", nil, 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	c := &piOfHub{t: t, events: make(chan pi.Frame, 1000)}
	if c.Client, err = pi.Connect(t.Context(), conn, func(f pi.Frame) { c.events <- f }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *piOfHub) do(command map[string]any) pi.Frame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), watchdog)
	defer cancel()
	f, err := c.Do(ctx, command)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// begin sends a command and does not wait for the response.
func (c *piOfHub) begin(command map[string]any) {
	c.t.Helper()
	frame, err := json.Marshal(command)
	if err == nil {
		err = c.Send(c.t.Context(), frame)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// heard waits for a frame with all of the parts.
func (c *piOfHub) heard(parts ...string) {
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
