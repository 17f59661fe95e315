package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// guidesRequired lets no test that installs something get away without.
var guidesRequired = flag.Bool("guides.required", false, "fail where what the sample agents of Parallax need cannot be installed, instead of saying that they were not run")

// notRunFile in the environment is a file for what was not run: go test is silent about
// it, and whoever called it is not to be.
const notRunFile = "NOT_RUN"

// notRun ends a test that could not be run, and says so loudly.
func notRun(t *testing.T, why string) {
	t.Helper()
	if *guidesRequired {
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

// needs wants programs that cannot be installed by who is not root.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			notRun(t, fmt.Sprintf("it needs %s: %v", program, err))
		}
	}
}

// reachedNobody is what npm and apt say where they could not connect to anybody. Whatever
// else they complain of is a failure.
var reachedNobody = regexp.MustCompile(`\b(EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|network timeout at)\b` +
	`|Temporary failure resolving|Could not resolve '|Could not connect to|Unable to connect to|Connection failed|Connection timed out|Network is unreachable`)

// install runs a command that fetches or unpacks something.
func install(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second // its children may hold on to its output
	out, err := cmd.CombinedOutput()
	if err = errors.Join(err, ctx.Err()); err == nil {
		return
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		notRun(t, fmt.Sprintf("%s did not end within %s", name, watchdog))
	}
	if what := reachedNobody.Find(out); what != nil {
		notRun(t, fmt.Sprintf("%s reached nobody to install from: %s", name, what))
	}
	t.Fatalf("%s %s: %v:\n%s", name, strings.Join(args, " "), err, out)
}

// installNode installs packages of npm into a directory. What npm has fetched before, it
// does not fetch again.
func installNode(t *testing.T, dir string, args ...string) {
	t.Helper()
	install(t, dir, "npm", append([]string{
		"install", "--prefix", dir, "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=20000",
	}, args...)...)
}

func TestAnInstallerThatReachesNobodyIsToldFromOneThatFails(t *testing.T) {
	for said, want := range map[string]bool{
		"npm error code EAI_AGAIN\nnpm error syscall getaddrinfo":                          true,
		"FetchError: network timeout at: https://registry.example/ws":                      true,
		"Err:1 http://deb.example stable InRelease\n  Temporary failure resolving 'deb.x'": true,
		"Could not connect to deb.example:80 (192.0.2.1), connection timed out":            true,
		"npm error code E404\nnpm error 404 Not Found":                                     false,
		"npm error code EINTEGRITY":                                                        false,
		"E: Unable to locate package python3-websockets":                                   false,
		"E: The repository 'http://deb.example stable Release' is not signed.":             false,
	} {
		if got := reachedNobody.MatchString(said); got != want {
			t.Errorf("%q: got %v, want %v", said, got, want)
		}
	}
}
