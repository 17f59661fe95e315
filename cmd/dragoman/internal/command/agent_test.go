package command_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestAnAgentThatNeverJoinedDoesNotLeave(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var out, log bytes.Buffer
	args := []string{"agent", "--wait", "--dialect", "acp", "--name", "bell", "--hub", "http://127.0.0.1:1", "--", "cat"}
	command.Run(ctx, args, command.Streams{Out: nopCloser{&out}, Err: &log})
	if strings.Contains(log.String(), "left") || !strings.Contains(log.String(), "waiting for a hub") {
		t.Errorf("got the log %s, want that it waits and not that it left", log.String())
	}
}
