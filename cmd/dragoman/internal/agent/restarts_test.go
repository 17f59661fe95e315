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

// A hub that is stopped and started again has its agents back soon, however often that happens.
func TestAHubThatIsRestartedOftenHasItsAgentsBackSoon(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		end   error
		most  time.Duration
	}{
		"that stops at once": {0, nil, 2 * time.Second}, "that stops": {5 * time.Second, nil, time.Second},
		"that stops and says so": {0, core.NewFault(core.CodeUnreachable, "the hub is stopping"), 2 * time.Second}, "that is killed": {5 * time.Second, lost, time.Second},
	} {
		ended := time.Time{}
		_, err := connections(t, func(n int, joined func()) error {
			if pause := time.Since(ended); n > 1 && pause > c.most {
				t.Errorf("a hub %s: got a pause of %s before connection %d, want at most %s", name, pause, n, c.most)
			}
			joined()
			time.Sleep(c.lasts)
			ended = time.Now()
			return c.end
		})
		if err != nil {
			t.Errorf("a hub %s: got %v, want none", name, err)
		}
	}
}

// The patience for the first hub has nothing to do with a hub that stops later.
func TestAnAgentThatWaitedForItsHubSaysWhenItIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		var log bytes.Buffer
		connections := 0
		err := agent.Stay(ctx, slog.New(slog.NewTextHandler(&log, nil)), time.Minute, func(_ context.Context, joined func()) error {
			if connections++; connections > 1 {
				leave()
				return nil
			}
			joined()
			time.Sleep(5 * time.Second)
			return core.NewFault(core.CodeUnreachable, "the hub is stopping")
		})
		if err != nil || !strings.Contains(log.String(), "the connection has ended: joining again") {
			t.Errorf("got %v and the log %q, want the lost connection in it", err, log.String())
		}
	})
}
