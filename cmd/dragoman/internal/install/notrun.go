package install

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// required fails tests whose programs cannot be installed.
var required = flag.Bool("install.required", false, "fail where the programs of others that a test needs cannot be installed, instead of saying that it was not run")

// notRunFile is the variable with the file that lists what was not run, which go test does not
// print.
const notRunFile = "NOT_RUN"

// NotRun skips a test that could not be run, or fails it if that is not allowed.
func NotRun(t *testing.T, why string) {
	t.Helper()
	if *required {
		t.Fatal(why)
	}
	line := fmt.Sprintf("NOT RUN: %s: %s", t.Name(), why)
	if path := os.Getenv(notRunFile); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, line)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
	t.Skip(line)
}

// Needs does not run the test unless the programs are installed.
func Needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			NotRun(t, fmt.Sprintf("it needs %s: %v", program, err))
		}
	}
}
