package conformance

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/install"
)

// h2spec is the suite; .ci/tools/go.mod has its version.
const h2spec = "github.com/summerwind/h2spec/cmd/h2spec"

// h2Parts are the parts of the suite that run beside each other: it mostly waits for what does not
// come.
var h2Parts = [][]string{{"generic", "hpack"}, {"http2/3", "http2/4"}, {"http2/5"}, {"http2/6"}, {"http2/7", "http2/8"}}

// h2Report is the report of a run.
type h2Report struct {
	Sections []struct {
		ID    string `xml:"package,attr"`
		Cases []struct {
			Title   string    `xml:"classname,attr"`
			Skipped *struct{} `xml:"skipped"`
			// Failure and Error have what would have been right, and at the end what came.
			Failure string `xml:"failure"`
			Error   string `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	install.Needs(t, "go")
	program := install.Tool(t, root, t.TempDir(), h2spec)
	h := startHub(t)
	host, port, err := net.SplitHostPort(h.grpc)
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]map[string]result, len(h2Parts))
	var running sync.WaitGroup
	for i, part := range h2Parts {
		report := filepath.Join(t.TempDir(), "report.xml")
		running.Go(func() {
			cmd := exec.CommandContext(t.Context(), program, append([]string{"--host", host, "--port", port, "--junit-report", report}, part...)...)
			said, ended := cmd.CombinedOutput() // with 1 if a case fails
			var err error
			if parts[i], err = readH2(report); err != nil {
				t.Errorf("h2spec %v: got %v, want a report (%v):\n%s", part, err, ended, said)
			}
		})
	}
	running.Wait()
	results := map[string]result{}
	for _, part := range parts {
		maps.Copy(results, part)
	}
	judge(t, "HTTP/2", results)
}

// readH2 reads a report: each case by its section, its number there and its title.
func readH2(path string) (map[string]result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var report h2Report
	if err := xml.Unmarshal(b, &report); err != nil {
		return nil, err
	}
	results := map[string]result{}
	for _, section := range report.Sections {
		for i, c := range section.Cases {
			why := strings.TrimSpace(c.Failure + c.Error)
			results[fmt.Sprintf("%s/%d %s", section.ID, i+1, c.Title)] = result{
				passed:  why == "" || closedByReset(why),
				skipped: c.Skipped != nil,
				why:     strings.ReplaceAll(why, "\n", " | "),
			}
		}
	}
	return results, nil
}

// closedByReset reports whether the suite wanted the connection closed, and it was reset: the hub
// closes it, and the system sends a reset if the hub has not read everything. The suite takes that
// for an error of its own.
func closedByReset(why string) bool {
	lines := strings.Split(why, "\n")
	came := lines[len(lines)-1]
	reset := strings.Contains(came, "connection reset by peer") || strings.Contains(came, "broken pipe")
	return reset && strings.Contains(strings.Join(lines[:len(lines)-1], "\n"), "Connection closed")
}
