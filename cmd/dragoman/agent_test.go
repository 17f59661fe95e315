package main

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
)

func TestWhatAnAgentCannotReadIsLoggedOnlyOnceItHasJoined(t *testing.T) {
	var terminal earshot
	wire := &later{Handler: slog.NewTextHandler(&terminal, nil), begun: new(atomic.Bool)}
	log := slog.New(wire).With("agent", "a").WithGroup("frame")
	log.Warn("not understood")
	if got := terminal.String(); got != "" {
		t.Errorf("before it has joined: got %q, want nothing: it may be the door of something else", got)
	}
	wire.begun.Store(true)
	log.Warn("not understood", "type", "x")
	if got := terminal.String(); !strings.Contains(got, "agent=a frame.type=x") {
		t.Errorf("once it has: got %q, want the line", got)
	}
}
