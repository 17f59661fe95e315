package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// patience is how long one installation may take.
const patience = 2 * time.Minute

// unreachable matches the output of npm, apt and go if they could not connect. Any other error is a
// failure.
var unreachable = regexp.MustCompile(`\b(EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|network timeout at)\b` +
	`|Temporary failure resolving|Could not resolve '|Could not connect to|Unable to connect to|Connection failed|Connection timed out|Network is unreachable` +
	`|dial tcp: lookup |dial tcp [^ ]+: |TLS handshake timeout`)

// Run runs a command that downloads or unpacks something. It leaves the test to make test-full.
func Run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	tier.Full(t, "it installs programs of others")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second // its children may hold on to its output
	out, err := cmd.CombinedOutput()
	if err = errors.Join(err, ctx.Err()); err == nil {
		return
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		NotRun(t, fmt.Sprintf("%s did not end within %s", name, patience))
	}
	if what := unreachable.Find(out); what != nil {
		NotRun(t, fmt.Sprintf("%s could not connect: %s", name, what))
	}
	t.Fatalf("%s %s: %v:\n%s", name, strings.Join(args, " "), err, out)
}

// Node installs packages of npm into a directory, from npm's cache where possible.
func Node(t *testing.T, dir string, args ...string) {
	t.Helper()
	Run(t, dir, "npm", append([]string{
		"install", "--prefix", dir, "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=20000",
	}, args...)...)
}

// Debian unpacks a package of Debian into a directory, without what it depends on. It keeps
// package lists of its own, because the machine's belong to root.
func Debian(t *testing.T, dir, name string) {
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
	Run(t, dir, "apt-get", append(own, "update")...)
	Run(t, dir, "apt-get", append(own, "download", name)...)
	packages, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("got %q and %v, want one package", packages, err)
	}
	Run(t, dir, "dpkg-deb", "-x", packages[0], dir)
}

// Tool builds a command of .ci/tools/go.mod, which pins its version, into a directory. root is the
// path of the repository. It returns the path of the program.
func Tool(t *testing.T, root, dir, command string) string {
	t.Helper()
	program := filepath.Join(dir, filepath.Base(command))
	Run(t, root, "go", "build", "-modfile=.ci/tools/go.mod", "-o", program, command)
	return program
}
