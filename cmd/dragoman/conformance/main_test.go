package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// root is the path of the repository.
const root = "../../.."

// runsProgram is the variable that makes the test binary the program.
const runsProgram = "TEST_PLAYS_DRAGOMAN"

func TestMain(m *testing.M) {
	if os.Getenv(runsProgram) != "" || len(os.Args) > 1 && (os.Args[1] == service.ReapCommand || os.Args[1] == service.GuardCommand) {
		os.Exit(command.Run(context.Background(), os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	goleak.VerifyTestMain(m)
}

// hub is where a hub listens that runs as a process of its own.
type hub struct{ http, grpc string }

// startHub starts a hub with the default settings, but for the options, and returns once it is ready. When
// the test ends the hub is interrupted, and has to end well.
func startHub(t *testing.T, options ...string) hub {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := append([]string{"serve", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json"}, options...)
	cmd := exec.Command(self, all...)
	// The race detector would delay the exit by a second. Files below HOME go with the test.
	cmd.Env = append(os.Environ(), runsProgram+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+t.TempDir())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log := bufio.NewScanner(stderr)
	for log.Scan() {
		var line struct{ Message, HTTP, GRPC string }
		if json.Unmarshal(log.Bytes(), &line) == nil && line.Message == "the hub is ready" {
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				_, _ = io.Copy(io.Discard, stderr)
			}()
			t.Cleanup(func() {
				_ = cmd.Process.Signal(os.Interrupt) // it may have crashed
				<-drained
				if err := cmd.Wait(); err != nil {
					t.Errorf("the hub ended: got %v, want no error", err)
				}
			})
			return hub{line.HTTP, line.GRPC}
		}
		t.Logf("the hub: %s", log.Bytes())
	}
	t.Fatalf("the hub ended before it was ready: %v", cmd.Wait())
	return hub{}
}
