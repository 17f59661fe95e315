package command_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestABenchThatWouldMeasureNothingIsAUsageError(t *testing.T) {
	for _, flag := range []string{"--rounds=0", "--time=0s", "--time=-1s", "--agents=-1", "--crowd=0", "--hub-env=X", "--hub-env==x", "--base-binary=/nope", "--hub-binary=/nope"} {
		code, out, stderr := run(t, "bench", "--rows", "none", flag) // no row, so that nothing runs if the flag is accepted
		name, _, _ := strings.Cut(flag, "=")
		if code != command.ExitUsage || !strings.Contains(stderr, name) || out != "" {
			t.Errorf("%s: got %d, %q and %q, want %d and the flag named", flag, code, out, stderr, command.ExitUsage)
		}
	}
	if code, _, stderr := run(t, "bench", "--rows", "none", "--time=1d", "--rounds=0"); code != command.ExitUsage || !strings.Contains(stderr, "--rounds") {
		t.Errorf("got %d and %q, want a time in days accepted and the rounds refused", code, stderr)
	}
}
