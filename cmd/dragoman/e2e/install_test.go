package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// guidesRequired fails tests whose dependencies cannot be installed.
var guidesRequired = flag.Bool("guides.required", false, "fail where what the sample agents of Parallax need cannot be installed, instead of saying that they were not run")

// notRunFile is the variable with the file that lists what was not run, which go test does not
// print.
const notRunFile = "NOT_RUN"

// notRun skips a test that could not be run, or fails it if guidesRequired is set.
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

// needs skips the test unless the programs are installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			notRun(t, fmt.Sprintf("it needs %s: %v", program, err))
		}
	}
}

// unreachable matches the output of npm and apt if they could not connect. Any other error is a
// failure.
var unreachable = regexp.MustCompile(`\b(EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|network timeout at)\b` +
	`|Temporary failure resolving|Could not resolve '|Could not connect to|Unable to connect to|Connection failed|Connection timed out|Network is unreachable`)

// install runs a command that downloads or unpacks something.
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
	if what := unreachable.Find(out); what != nil {
		notRun(t, fmt.Sprintf("%s could not connect: %s", name, what))
	}
	t.Fatalf("%s %s: %v:\n%s", name, strings.Join(args, " "), err, out)
}

// installNode installs packages of npm into a directory, from npm's cache where possible.
func installNode(t *testing.T, dir string, args ...string) {
	t.Helper()
	install(t, dir, "npm", append([]string{
		"install", "--prefix", dir, "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=20000",
	}, args...)...)
}

// installDebian unpacks a package of Debian into a directory, without what it depends on. It keeps
// package lists of its own, because the machine's belong to root.
func installDebian(t *testing.T, dir, name string) {
	t.Helper()
	for _, below := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, below), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own := []string{
		"-q", "-o", "Dir::State=" + filepath.Join(dir, "state"), "-o", "Dir::State::status=/var/lib/dpkg/status",
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"), "-o", "APT::Sandbox::User=", "-o", "APT::Update::Post-Invoke-Success::=", "-o", "APT::Update::Post-Invoke::=",
		// Errors must be reported, and soon.
		"-o", "APT::Update::Error-Mode=any", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20",
	}
	install(t, dir, "apt-get", append(own, "update")...)
	install(t, dir, "apt-get", append(own, "download", name)...)
	packages, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("got %q and %v, want one package", packages, err)
	}
	install(t, dir, "dpkg-deb", "-x", packages[0], dir)
}

func TestANetworkErrorOfAnInstallerIsRecognized(t *testing.T) {
	for printed, want := range map[string]bool{
		"npm error code EAI_AGAIN\nnpm error syscall getaddrinfo":                          true,
		"FetchError: network timeout at: https://registry.example/ws":                      true,
		"Err:1 http://deb.example stable InRelease\n  Temporary failure resolving 'deb.x'": true,
		"Could not connect to deb.example:80 (192.0.2.1), connection timed out":            true,
		"npm error code E404\nnpm error 404 Not Found":                                     false,
		"npm error code EINTEGRITY":                                                        false,
		"E: Unable to locate package python3-websockets":                                   false,
		"E: The repository 'http://deb.example stable Release' is not signed.":             false,
	} {
		if got := unreachable.MatchString(printed); got != want {
			t.Errorf("%q: got %v, want %v", printed, got, want)
		}
	}
}
