package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestThePacksOfTheDocumentationAreRead(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(packs:.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("got no example with packs in docs/mcp.md, want one")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	c, err := configOf(t, string(example[1]), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Packs{
		{Name: "files", Process: config.Process{Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "."}}},
		{Name: "search", Remote: config.Remote{URL: "https://example.com/mcp", TokenFile: "search.token"}},
		{
			Name: "browser", Process: config.Process{Command: []string{"npx", "-y", "@playwright/mcp"}, Env: []string{"DISPLAY", "MODE=quiet"}, Dir: filepath.Join(home, "work")},
			Concurrent: 1, Timeout: config.Time(2 * time.Minute), MaxTime: config.Time(5 * time.Minute), ResultBytes: 1_000_000,
		},
	}
	if diff := cmp.Diff(want, c.Packs); diff != "" {
		t.Errorf("docs/mcp.md (-want +got):\n%s", diff)
	}
}
