package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The two clients of npm: the one of the versions up to 2025-11-25, and the one of 2026-07-28.
var npmClients = map[string]string{"sdk": "@modelcontextprotocol/sdk@1.32.2", "client": "@modelcontextprotocol/client@2.4.0"}

// npmSaid is what such a client prints.
type npmSaid struct {
	Version  string
	Progress [][2]any
	Timed    int // the progress that came while the client was about to give up
	Asked    []string
	IsError  bool
	Content  []struct{ Type, Text, Data, MIMEType string }
	Error    string
	// Redirected is where a user was sent to log in.
	Redirected string
	Structured json.RawMessage
}

// clientProgressed is the signal that a client was told the progress of its call often enough.
const clientProgressed = "the client was told the progress"

// npmClient runs a client in a directory in which its package is installed.
func npmClient(t *testing.T, h *testHub, dir, library, path string, args ...string) (said npmSaid) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(dir, "client.mjs"), library, h.url() + path}, args...)...)
	cmd.Dir = dir
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var last []byte
	for lines, progress := bufio.NewReader(out), 0; err == nil; {
		var line []byte
		if line, err = lines.ReadBytes('\n'); len(line) > 0 {
			last = line
		}
		if string(line) != "progress\n" {
			continue
		}
		if progress++; progress == 4 {
			h.signal(clientProgressed, nil)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("node client.mjs %s %v: %v: %s%s", library, args, err, last, failed.String())
	}
	if err := json.Unmarshal(last, &said); err != nil {
		t.Fatalf("got %q, want what the client says: %v", last, err)
	}
	return said
}

// joinBob connects an agent that does what it is asked in a word, until the test ends.
func joinBob(t *testing.T, h *testHub) {
	t.Helper()
	s := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "bob"}, Dialect: "test"})
	card := core.Card{ID: "bob", Dialect: "test", MaxConcurrent: 8, Features: core.FeatureStreaming | core.FeatureCancellation | core.FeatureApprovals}
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	report := func(id core.TaskID, bodies ...core.Body) {
		for _, b := range bodies {
			if err := s.Report(id, b, nil); err != nil {
				t.Errorf("bob reports %s: got %v, want no error", b.Kind(), err)
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			b, err := s.Next(t.Context())
			if err != nil {
				return
			}
			for _, e := range b.Events {
				id := b.Task.ID()
				switch body := e.Body.(type) {
				case core.Assigned:
					switch b.Task.Request().Content {
					case "slowly":
						word := func() bool { return s.Report(id, core.Text{Text: "word "}, nil) == nil }
						for told := false; !told && word(); _, told = h.signalled(clientProgressed) { // longer than the client waits without progress
							pauseFor(t.Context(), 100*time.Millisecond)
						}
						report(id, core.File{Name: "a.png", MediaType: "image/png", Data: []byte("PNG")}, core.Done{Data: json.RawMessage(`{"n":42}`)})
					case "carefully":
						report(id, core.ToolCall{ID: "t1", Name: "rm", Input: `{}`}, core.ApprovalRequested{ID: "t1", Name: "rm", Input: `{}`})
					}
				case core.ApprovalDecided:
					report(id, core.Done{Text: map[bool]string{true: "removed", false: "left alone"}[body.Approved]})
				case core.CancelRequested:
					h.signal("bob was told to stop", body)
					report(id, core.Cancelled{})
				}
			}
		}
	}()
	t.Cleanup(func() {
		s.Close(nil)
		<-done
	})
}

// The official clients give a call up after 60 s without progress, here after three seconds of their clock,
// which goes on by two with each progress, and cancel it. They ask their user for approvals, and show why
// they may not connect.
func TestTheOfficialClientsOfNPMAreServed(t *testing.T) {
	t.Parallel()
	for library, pkg := range npmClients {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			needs(t, "node", "npm")
			dir := t.TempDir()
			script, err := os.ReadFile("testdata/mcp/client.mjs")
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			installNode(t, dir, pkg)
			open, closed := newTestHub(t, nil), newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "sample", "root") })
			joinBob(t, open)

			said := npmClient(t, open, dir, library, "/mcp", "plain", "slowly")
			if said.Error != "" || said.IsError || len(said.Progress) < 3 || said.Timed < 3 || len(said.Content) != 2 || said.Content[1].Type != "image" || !strings.Contains(said.Content[0].Text, `"data":{"n":42}`) {
				t.Errorf("a slow call: got %+v, want progress, the words, the data and the image", said)
			}
			if library == "client" && said.Version != "2026-07-28" {
				t.Errorf("got version %q, want 2026-07-28", said.Version)
			}
			for i, p := range said.Progress {
				if i > 0 && p[0].(float64) <= said.Progress[i-1][0].(float64) {
					t.Errorf("got the progress %v, want it to rise", said.Progress)
				}
			}
			if last := said.Progress[len(said.Progress)-1][1]; !strings.HasSuffix(last.(string), "word") {
				t.Errorf("got %q at last, want the latest words", last)
			}

			said = npmClient(t, open, dir, library, "/mcp", "plain", "carefully")
			if said.Error != "" || len(said.Asked) != 1 || !strings.Contains(said.Asked[0], "bob asks to run rm") || len(said.Content) != 1 || !strings.Contains(said.Content[0].Text, "removed") {
				t.Errorf("an approval: got %+v, want the user asked once and the tool run", said)
			}

			if said = npmClient(t, open, dir, library, "/mcp", "plain", "forever", "cancel"); said.Error == "" {
				t.Errorf("a cancelled call: got %+v, want an error", said)
			}
			open.await(t, "bob was told to stop")

			missing := map[string]string{"sdk": "the token is missing", "client": "the server requires authorization (HTTP 401)"}[library] // the latter shows its own words
			for login, want := range map[string]string{"plain": missing, "oauth": "this hub has no OAuth"} {
				if said := npmClient(t, closed, dir, library, "/mcp", login, "slowly"); !strings.Contains(said.Error, want) || said.Redirected != "" {
					t.Errorf("without a token, %s: got %+v, want %q and no login", login, said, want)
				}
			}
			if said := npmClient(t, closed, dir, library, "/mcp/wrong", "oauth", "slowly"); !strings.Contains(said.Error, "this hub has no OAuth") || said.Redirected != "" {
				t.Errorf("with a wrong token: got %+v, want that there is no OAuth, and no login", said)
			}
		})
	}
}
