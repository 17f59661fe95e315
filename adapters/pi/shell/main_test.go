package shell_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/pi/reaper"
)

// reaperArgument as the first argument makes the test binary a reaper.
const reaperArgument = "reap"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == reaperArgument {
		os.Exit(reaper.Run(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}
