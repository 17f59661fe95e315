package pi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
)

func TestThePageOfTheDialectDescribesEveryCommand(t *testing.T) {
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
	for name, c := range command.Table {
		lane, version := "waits", ""
		if c.Control {
			lane = "overtakes"
		}
		if c.Mutates {
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

func TestThePageOfTheDialectNamesTheConversationsOfEachSection(t *testing.T) {
	page, err := os.ReadFile("../../docs/dialects/pi.md")
	if err != nil {
		t.Fatal(err)
	}
	conversations, err := filepath.Glob("../../schemas/conversations/pi/section_*.txtar")
	if err != nil || len(conversations) == 0 {
		t.Fatalf("got %d conversations and %v, want some", len(conversations), err)
	}
	for _, path := range conversations {
		if name := strings.TrimSuffix(filepath.Base(path), ".txtar"); !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is not on the page", name)
		}
	}
}

// The table of sections has every section of pi-server 1.0.0 with a MUST and names existing
// tests.
func TestEverySectionOfTheSpecificationNamesItsTest(t *testing.T) {
	page, err := os.ReadFile("../../docs/dialects/pi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## The specification, section by section\n")
	rows := regexp.MustCompile(`(?m)^\| ([0-9., ]+) \| .+ \| (.+) \|$`).FindAllStringSubmatch(rest, -1)
	sections := map[string]bool{}
	var tests []byte
	for _, pattern := range []string{"*_test.go", "../../cmd/dragoman/e2e/*_test.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tests = append(tests, text...)
		}
	}
	for _, row := range rows {
		for section := range strings.SplitSeq(row[1], ", ") {
			sections[section] = true
		}
		for proof := range strings.SplitSeq(row[2], ", ") {
			name := strings.Trim(proof, "`")
			_, err := os.Stat("../../schemas/conversations/pi/" + name + ".txtar")
			if err != nil && !strings.Contains(string(tests), "func "+name+"(t *testing.T)") {
				t.Errorf("section %s: %s is neither a conversation nor a test", row[1], proof)
			}
		}
	}
	for section := range strings.FieldsSeq("3.1 4 4.1 4.2 5.1 7.1 7.2 7.4 8.1 8.2 9 9.1 9.2 10 10.1 11 13 20.2") {
		if !sections[section] {
			t.Errorf("section %s says MUST and has no row", section)
		}
	}
}

func TestThePageListsTheCommandsThatAreRedoneAfterARestart(t *testing.T) {
	page, err := os.ReadFile("../../docs/dialects/pi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n| succeeded before the restart | comes again after it |\n")
	rows, _, _ := strings.Cut(rest, "\n\n")
	again := map[string]bool{}
	for row := range strings.Lines(rows) {
		for _, m := range regexp.MustCompile("`([a-z_]+)(\\*?)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			for kind := range command.Table {
				if kind == m[1] || m[2] != "" && strings.HasPrefix(kind, m[1]) {
					again[kind] = again[kind] || strings.Contains(row, "again:") || strings.Contains(row, "| asked again") || strings.Contains(row, "| done again,")
				}
			}
		}
	}
	for kind, of := range command.Table {
		if got, said := again[kind]; !said || got != of.Volatile {
			t.Errorf("%s: the page has done again %v (%v), want %v", kind, got, said, of.Volatile)
		}
	}
}
