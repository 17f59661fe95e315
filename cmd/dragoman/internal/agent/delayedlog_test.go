package agent_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
)

func TestNothingIsLoggedBeforeTheAgentHasJoined(t *testing.T) {
	var terminal bytes.Buffer
	wire := &agent.DelayedLog{Handler: slog.NewTextHandler(&terminal, nil), Begun: new(atomic.Bool)}
	log := slog.New(wire).With("agent", "a").WithGroup("frame")
	log.Warn("not understood")
	if got := terminal.String(); got != "" {
		t.Errorf("before it has joined: got %q, want nothing", got)
	}
	wire.Begun.Store(true)
	log.Warn("not understood", "type", "x")
	if got := terminal.String(); !strings.Contains(got, "agent=a frame.type=x") {
		t.Errorf("after: got %q, want the line", got)
	}
}
