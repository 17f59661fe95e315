package install

import (
	"flag"
	"fmt"
	"os/exec"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// required fails tests whose programs cannot be installed.
var required = flag.Bool("install.required", false, "fail where the programs of others that a test needs cannot be installed, instead of saying that it was not run")

// NotRun skips a test that could not be run and says why, or fails it if that is not allowed.
func NotRun(t *testing.T, why string) {
	t.Helper()
	if *required {
		t.Fatal(why)
	}
	t.Skip("NOT RUN: " + why)
}

// Needs leaves the test to make test-full, and does not run it there unless the programs are installed.
func Needs(t *testing.T, programs ...string) {
	t.Helper()
	tier.Full(t, "it plays programs of others")
	Has(t, programs...)
}

// Has does not run the test unless the programs are installed.
func Has(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			NotRun(t, fmt.Sprintf("it needs %s: %v", program, err))
		}
	}
}
