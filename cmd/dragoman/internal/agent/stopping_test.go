package agent_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/core"
)

// An agent that waits for a hub that stops or is drained is there soon after the hub is back, and says once that it waits.
func TestAnAgentIsBackSoonAfterAHubThatStoppedSlowly(t *testing.T) {
	for name, refusal := range map[string]error{
		"which says so":                        core.NewFault(core.CodeUnreachable, "the hub is stopping (shutdown): try again once it is back"),
		"which closes the connection normally": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				var log bytes.Buffer
				began, tries := time.Now(), []time.Duration{}
				err := agent.Stay(ctx, slog.New(slog.NewTextHandler(&log, nil)), 0, func(_ context.Context, joined func()) error {
					tries = append(tries, time.Since(began))
					switch {
					case len(tries) == 1:
						joined()
						return nil
					case time.Since(began) < 50*time.Second:
						return refusal
					}
					joined()
					leave()
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				for i := 2; i < len(tries); i++ {
					if pause := tries[i] - tries[i-1]; pause < time.Second || pause > 2*time.Second {
						t.Errorf("got a pause of %s before try %d, want 1 to 2 seconds", pause, i+1)
					}
				}
				if n := strings.Count(log.String(), "waiting for the hub"); n != 1 || strings.Contains(log.String(), "joining failed") {
					t.Errorf("got the log %q, want one line that it waits", log.String())
				}
			})
		})
	}
}

// What a hub that stopped has refused does not count when it is gone.
func TestAHubThatIsGoneAfterItStoppedIsTriedWithAGrowingDelay(t *testing.T) {
	refusal := core.NewFault(core.CodeUnreachable, "the hub is stopping")
	began, _ := connections(t, func(n int, joined func()) error {
		switch {
		case n == 1:
			joined()
		case n < 20:
			return refusal
		}
		return lost
	})
	if first := began[20].Sub(began[19]); first > 2*minBackoff {
		t.Errorf("got a pause of %s once the hub was gone, want at most %s", first, 2*minBackoff)
	}
	if last := began[len(began)-1].Sub(began[len(began)-2]); last < maxBackoff/2 {
		t.Errorf("got a pause of %s at last, want at least %s", last, maxBackoff/2)
	}
}
