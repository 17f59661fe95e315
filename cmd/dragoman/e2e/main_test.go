package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/firstprocess"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// runsProgram is the variable that makes the test binary the program.
const runsProgram = "TEST_PLAYS_DRAGOMAN"

func TestMain(m *testing.M) {
	if text := os.Getenv(playsFlooder); text != "" {
		if err := playFlooder(text); err != nil {
			fmt.Fprintln(os.Stderr, "the flooder:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(playsNATS) != "" {
		if err := playNATS(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "the NATS server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if speaks := os.Getenv(playsChild); speaks != "" {
		playChild(speaks)
		os.Exit(0)
	}
	if code, ran := firstprocess.Run(); ran { // of a container
		os.Exit(code)
	}
	if os.Getenv(runsProgram) != "" || len(os.Args) > 1 && (os.Args[1] == service.ReapCommand || os.Args[1] == service.GuardCommand) {
		os.Exit(command.Run(context.Background(), os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	goleak.VerifyTestMain(m)
}

// program returns a command that runs the program as a process of its own.
func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// The race detector would delay the exit by a second. Files below HOME go with the test.
	cmd.Env = append(os.Environ(), runsProgram+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=")
	return cmd
}
