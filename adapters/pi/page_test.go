package pi

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestThePageOfTheDialectHasEveryCommandAsItIs(t *testing.T) {
	page, err := os.ReadFile("../../docs/dialects/pi.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (waits|overtakes) \\| (\\+1)? ?\\| .+ \\|$").FindAllStringSubmatch(string(page), -1) {
		if rows[row[1]] != nil {
			t.Errorf("%s has two rows", row[1])
		}
		rows[row[1]] = row[2:]
	}
	for name, c := range table {
		lane, version := "waits", ""
		if c.control {
			lane = "overtakes"
		}
		if c.mutates {
			version = "+1"
		}
		row := rows[name]
		if len(row) != 2 || row[0] != lane || row[1] != version {
			t.Errorf("the row of %s: got %q, want %q and %q", name, row, lane, version)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("%s is no command", name)
	}
}

func TestThePageOfTheDialectNamesEveryStoryOfASection(t *testing.T) {
	page, err := os.ReadFile("../../docs/dialects/pi.md")
	if err != nil {
		t.Fatal(err)
	}
	stories, err := filepath.Glob("../../schemas/conversations/pi/section_*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatalf("got %d stories and %v", len(stories), err)
	}
	for _, path := range stories {
		if name := strings.TrimSuffix(filepath.Base(path), ".txtar"); !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is not on the page", name)
		}
	}
}
