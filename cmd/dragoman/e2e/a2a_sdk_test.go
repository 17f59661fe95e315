package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// signingKey writes a key that agent cards can be signed with, and returns its path.
func signingKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The states as the SDK numbers them.
const (
	sdkCompleted = 3
	sdkCanceled  = 5
)

// The SDK's client asks an agent of another dialect over both bindings: card, send, stream, get,
// list, cancel, subscribe, a stream that is cut and continued, and what a 0.3 client is told.
func TestTheA2AClientOfTheSDKAsksAnAgent(t *testing.T) {
	t.Parallel()
	needs(t, "node", "npm")
	dir := t.TempDir()
	installNode(t, dir, "--no-save", "@a2a-js/sdk@1.3.0")
	script, err := os.ReadFile("testdata/a2a/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "client.mjs")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		t.Fatal(err)
	}
	h := newTestHub(t, func(c *config.Config) { c.A2A.SigningKey = signingKey(t) })
	h.startAgent(t, parallax.Dialect, "shout", 4)
	for _, binding := range []string{"JSONRPC", "HTTP+JSON"} {
		t.Run(binding, func(t *testing.T) {
			got := runA2AClient(t, h, path, h.url(), "shout", binding)
			want := sdkSeen{}
			want.Card.Name, want.Card.Binding, want.Card.Version = "the agent shout", binding, "1.0"
			want.Signature, want.Changed, want.Tenant = "valid", "refused", shortAnswer("js-tenant")
			want.Sent.State, want.Sent.Text = sdkCompleted, shortAnswer("js-send")
			want.Got.Same, want.Got.Text, want.Got.History = true, shortAnswer("js-send"), 1
			want.Listed.IDs, want.Listed.Total, want.Listed.Text = []bool{true}, 1, shortAnswer("js-send")
			want.Burst.Text, want.Burst.First, want.Burst.Last = wholeBurst, "task", sdkCompleted
			want.Snapshot.First, want.Snapshot.Text = "task", firstHalf
			want.Cut.Text, want.Cut.Rest, want.Cut.First, want.Cut.Last = firstHalf, secondHalf, "artifactUpdate", sdkCompleted
			want.Cancelled.State, want.Cancelled.Stream = sdkCanceled, sdkCanceled
			want.Errors.Missing, want.Errors.Ended, want.Errors.Terminal = "TASK_NOT_FOUND", "TASK_NOT_CANCELABLE", "UNSUPPORTED_OPERATION"
			legacy := got.Legacy
			got.Legacy = ""
			if g, w := string(plainJSON(got)), string(plainJSON(want)); g != w {
				t.Errorf("they differ from %s", firstDifference(g, w))
			}
			if !strings.Contains(legacy, "version '0.3' is not supported") {
				t.Errorf("got %q for a client of 0.3, want to be told the version", legacy)
			}
		})
	}
}

// sdkSeen is what the client prints.
type sdkSeen struct {
	Card                       struct{ Name, Binding, Version string }
	Signature, Changed, Tenant string
	Sent                       struct {
		State int
		Text  string
	}
	Got struct {
		Same    bool
		Text    string
		History int
	}
	Listed struct {
		IDs   []bool
		Total int
		Text  string
	}
	Burst struct {
		Text, First string
		Last        int
	}
	Snapshot struct{ First, Text string }
	Cut      struct {
		Text, Rest, First string
		Last              int
	}
	Cancelled struct{ State, Stream int }
	Errors    struct{ Missing, Ended, Terminal string }
	Legacy    string
}

// runA2AClient runs the client, and releases the requests that it names.
func runA2AClient(t *testing.T, h *testHub, script string, args ...string) (seen sdkSeen) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			Release string
			Seen    *sdkSeen
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("got the line %s, want JSON: %v", lines.Text(), err)
			continue
		}
		if line.Release != "" {
			h.signal(line.Release+" released", nil)
		}
		if line.Seen != nil {
			seen = *line.Seen
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the client failed: %v", err)
	}
	return seen
}
