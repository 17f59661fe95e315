package pi_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// stalling is a journal that blocks once it is stuck.
type stalling struct {
	journal.Journal
	stuck atomic.Bool
}

func (s *stalling) Append(ctx context.Context, records ...journal.Record) error {
	if s.stuck.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Journal.Append(ctx, records...)
}

// The hub reports the end of a task only once it is recorded, so a hub that stops while its
// journal blocks never reports it.
func TestCommandsWhoseTaskHasNoEndFailWhenTheHubStops(t *testing.T) {
	for name, line := range map[string]string{
		"a prompt":     `{"id":"x","type":"prompt","sessionId":"s","message":"one more"}`,
		"a compaction": `{"id":"x","type":"compact","sessionId":"s"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &stalling{Journal: journal.NewMemory(journal.Retention{})}
				h := hub.New(hub.Options{Journal: disk})
				s := pi.NewServer(h, pi.Options{Commands: command.Options{Rates: unlimited}, CompactAt: -1})
				t.Cleanup(s.Close)
				says := answersOf(100_000, summaryBodies...)
				joinAgent(t, h, core.Card{ID: "a"}, func(a *testAgent, b hub.Batch) {
					if assigned(b) && disk.stuck.Load() {
						a.report(b.Task, core.Text{Text: "half of it, "})
						<-time.After(time.Second)
					}
					says(a, b)
				})
				c := dial(t, s, pi.ConnOptions{})
				c.open("s", "a")
				c.ok(promptCommand)
				c.ok(promptCommand)
				disk.stuck.Store(true)
				c.send(line)
				<-time.After(2 * time.Second)
				if err := h.Close(t.Context(), "over"); err == nil {
					t.Fatal("closing: got no error, want the error of the journal")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				s.Drain(ctx)
				if took := time.Since(start); took > time.Second {
					t.Errorf("the commands in flight ended after %s, want at once", took)
				}
				if f := c.until(`"response"`, `"id":"x"`); name == "a compaction" && f.Success {
					t.Errorf("got %s, want no summary of an unknown end", f.Raw)
				}
				if said := c.count("agent_end", "half of it, ", `"stopReason":"error"`); name == "a prompt" && said == 0 {
					t.Error("got no end with what was said and that it was cut off")
				}
			})
		})
	}
}
