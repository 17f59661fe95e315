package supervisor_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
)

// guardArgument as the first argument makes the test binary a guard.
const guardArgument = "guard"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == guardArgument {
		supervisor.RunGuard(os.Args[2], os.Stdin)
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // of the guards
	goleak.VerifyTestMain(m)
}
