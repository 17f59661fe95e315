package conformance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/install"
)

const (
	mcpSuite = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
	// mcpNode runs the suite, which needs Node 22.
	mcpNode = "node@22.23.3"
)

// mcpRevisions are the revisions of the specification whose requirements are run.
var mcpRevisions = []string{"2025-11-25", "2026-07-28"}

// mcpResults matches the directory with the results of a scenario.
var mcpResults = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// mcpCheck is one check of a scenario. An id may occur several times.
type mcpCheck struct {
	ID, Status, ErrorMessage string
}

func TestMCP(t *testing.T) {
	t.Parallel()
	install.Needs(t, "npm", "node")
	dir := t.TempDir()
	install.Node(t, dir, mcpSuite, mcpNode)
	for _, revision := range mcpRevisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			tools, names := mcpServer(t)
			h := startHub(t, "--config", mcpSettings(t, tools))
			awaitTool(t, h, mcpPack+"."+names[len(names)-1])
			out := t.TempDir()
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules/node/bin/node"),
				filepath.Join(dir, "node_modules/@modelcontextprotocol/conformance/dist/index.js"),
				"server", "--url", withoutPack(t, h, names), "--requirements", revision, "--output-dir", out)
			cmd.Dir = out
			said, err := cmd.CombinedOutput() // it exits with 1 if a scenario fails
			results := readMCP(t, out)
			if len(results) < 20 {
				t.Fatalf("got %d results and %v, want those of the suite:\n%s", len(results), err, said)
			}
			judge(t, "MCP "+revision, results)
		})
	}
}

// mcpSettings writes a settings file with the pack of the suite, whose server is at the address.
func mcpSettings(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dragoman.yaml")
	if err := os.WriteFile(path, []byte("packs:\n  - {name: "+mcpPack+", url: "+server+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// awaitTool waits until a hub offers a tool.
func awaitTool(t *testing.T, h hub, name string) {
	t.Helper()
	changed := make(chan struct{}, 1)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	cs, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: "http://" + h.http + "/mcp", MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	for {
		for tool, err := range cs.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if tool.Name == name {
				return
			}
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("got no tool %s, want one", name)
		}
	}
}

// readMCP reads the results that the suite wrote: each check by its scenario and id. Warnings pass,
// as they do for the suite.
func readMCP(t *testing.T, dir string) map[string]result {
	t.Helper()
	scenarios, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]result{}
	for _, s := range scenarios {
		name := mcpResults.FindStringSubmatch(s.Name())
		if name == nil {
			t.Errorf("got the results %s, want those of a scenario", s.Name())
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, s.Name(), "checks.json"))
		if err != nil {
			t.Fatal(err)
		}
		var checks []mcpCheck
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatalf("%s: %v", s.Name(), err)
		}
		for _, c := range checks {
			key := name[1] + ":" + c.ID
			before, again := results[key]
			switch c.Status {
			case "FAILURE":
				results[key] = result{why: strings.TrimPrefix(before.why+"; "+c.ErrorMessage, "; ")}
			case "SKIPPED":
				if !again {
					results[key] = result{skipped: true}
				}
			case "SUCCESS", "WARNING":
				if !again || before.skipped {
					results[key] = result{passed: true}
				}
			case "INFO": // no check
			default:
				t.Errorf("%s: got the status %q, want one that is known", key, c.Status)
			}
		}
	}
	return results
}
