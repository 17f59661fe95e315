package e2e

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// playsProgram in the environment makes the test binary the program itself.
const playsProgram = "TEST_PLAYS_DRAGOMAN"

func TestMain(m *testing.M) {
	if os.Getenv(playsProgram) != "" || len(os.Args) > 1 && os.Args[1] == service.ReapCommand {
		os.Exit(command.Run(context.Background(), os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	goleak.VerifyTestMain(m)
}

// program is a command line of the program, to be run as a process of its own.
func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// The race detector would hold up the end of the process by a second.
	// What it writes below its home is not to stay.
	cmd.Env = append(os.Environ(), playsProgram+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+t.TempDir())
	return cmd
}
