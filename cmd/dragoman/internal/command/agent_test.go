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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := &untilText{text: "waiting for a hub", then: cancel}
	args := []string{"agent", "--wait", "--dialect", "acp", "--name", "bell", "--hub", "http://127.0.0.1:1", "--", "cat"}
	command.Run(ctx, args, command.Streams{Out: nopCloser{new(bytes.Buffer)}, Err: log})
	if got := log.String(); strings.Contains(got, "left") || !strings.Contains(got, log.text) {
		t.Errorf("got the log %s, want that it waits and not that it left", got)
	}
}

// untilText keeps what is written, and calls then once a text is in it.
type untilText struct {
	bytes.Buffer
	text string
	then func()
}

func (u *untilText) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Contains(u.String(), u.text) {
		u.then()
	}
	return n, err
}
