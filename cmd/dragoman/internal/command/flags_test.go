package command_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestFlagsThatDoNotApplyAreRefused(t *testing.T) {
	for _, tt := range [][]string{
		{"--state", "tasks", "ID", "--state=failed"},
		{"--limit", "tasks", "ID", "--limit=3"},
		{"--limit", "tasks", "ID", "--readers", "--limit=3"},
		{"--config", "check", "--envelope", "--config=f"},
		{"--http-addr", "check", "--envelope", "--http-addr=127.0.0.1:0"},
	} {
		if code, _, stderr := run(t, tt[1:]...); code != command.ExitUsage || !strings.Contains(stderr, tt[0]) {
			t.Errorf("%q: got %d and %q, want %d and %s named", tt[1:], code, stderr, command.ExitUsage, tt[0])
		}
	}
}
