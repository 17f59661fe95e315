package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ledgers are the pages of docs/ledger, each with the file of its specification below the directory that
// the variable SPECS names.
var ledgers = map[string]string{
	"acp":       "acp-message-types.md",
	"coven":     "coven-agent-protocol.md",
	"fold":      "fold-protocol-enhancements.md",
	"parallax":  "parallax-agent-protocol.md",
	"pi-server": "pi-server-protocol.md",
}

// A ledgerRow is a row of a ledger: what the specification says, and what holds it.
type ledgerRow struct{ section, rule, held string }

var (
	conversationLink = regexp.MustCompile(`\]\(\.\./\.\./schemas/conversations/([a-z0-9_/-]+\.txtar)\)`)
	// inCode matches what is in backticks in the rule of a row: the names that its tests have to mention.
	inCode = regexp.MustCompile("`([A-Za-z_][A-Za-z0-9_-]*)`")
)

func TestEveryRowOfALedgerIsHeldByATest(t *testing.T) {
	for name := range ledgers {
		rows, _ := ledger(t, name)
		if len(rows) == 0 {
			t.Errorf("%s: got no rows, want one per rule of the specification", name)
		}
		for _, r := range rows {
			if reason, ok := strings.CutPrefix(r.held, "none: "); ok {
				if len(reason) < 10 {
					t.Errorf("%s, %s: got the reason %q for %q, want why no test of ours can hold it", name, r.section, reason, r.rule)
				}
				continue
			}
			sources := heldBy(t, name, r)
			if len(sources) == 0 {
				t.Errorf("%s, %s: got nothing that holds %q, want `package.TestName`, a link to a conversation, or none: with a reason", name, r.section, r.rule)
				continue
			}
			text := spelled(strings.Join(sources, "\n"))
			for _, m := range inCode.FindAllStringSubmatch(r.rule, -1) {
				if !strings.Contains(text, spelled(m[1])) {
					t.Errorf("%s, %s: got no mention of %s in what holds %q, want a test that uses it", name, r.section, m[1], r.rule)
				}
			}
		}
	}
}

// A specification is not part of this repository: with SPECS the ledgers are compared with their
// specifications, and a rule without a row is found.
func TestTheLedgersAreComplete(t *testing.T) {
	dir := os.Getenv("SPECS")
	if dir == "" {
		t.Skip("NOT RUN: SPECS names no directory with the specifications")
	}
	for name, file := range ledgers {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		rows, free := ledger(t, name)
		for _, item := range specItems(string(b)) {
			if slices.Contains(free, item.section) {
				continue
			}
			if !slices.ContainsFunc(rows, item.isHeldIn) {
				t.Errorf("%s, %s: got no row with %q, want one", name, item.section, item.rule)
			}
		}
	}
}

// ledger returns the rows of a ledger, and the sections of its specification that have nothing to hold.
func ledger(t *testing.T, name string) (rows []ledgerRow, free []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(docs, "ledger", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = heading
		}
		if strings.HasPrefix(line, "Nothing to hold:") {
			free = append(free, section)
		}
		if cells := tableCells(line); len(cells) == 2 && cells[0] != "specification" {
			rows = append(rows, ledgerRow{section, cells[0], cells[1]})
		}
	}
	return rows, free
}

// heldBy returns the texts of the files that hold a row.
func heldBy(t *testing.T, name string, r ledgerRow) (sources []string) {
	t.Helper()
	for _, m := range testName.FindAllStringSubmatch(r.held, -1) {
		file := testsOf(t, m[1])[m[2]]
		if file == "" {
			t.Errorf("%s, %s: got no %s in %s, want the test that %q names", name, r.section, m[2], m[1], r.rule)
			continue
		}
		sources = append(sources, fileText(t, filepath.Join("../..", m[1], file)))
	}
	for _, m := range conversationLink.FindAllStringSubmatch(r.held, -1) {
		sources = append(sources, fileText(t, filepath.Join("../../schemas/conversations", m[1])))
	}
	return sources
}

var testsByDir = map[string]map[string]string{}

// testsOf returns the tests of a package, read once.
func testsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	if testsByDir[dir] == nil {
		testsByDir[dir] = testsIn(t, dir)
	}
	return testsByDir[dir]
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// spelled returns a text without what JSON, protobuf and Go spell apart: agent_id, agentId and AgentID are one.
func spelled(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}

// plain returns the words of a Markdown text.
func plain(s string) string {
	s = strings.NewReplacer("`", "", "*", "", `\|`, "|", `\`, "", "“", `"`, "”", `"`).Replace(s)
	return strings.ToLower(strings.Join(strings.Fields(s), " "))
}

// tableCells returns the cells of a row of a Markdown table, or nothing for any other line.
func tableCells(line string) []string {
	inner, ok := strings.CutPrefix(line, "|")
	if !ok || strings.HasPrefix(strings.TrimSpace(inner), "--") {
		return nil
	}
	inner = strings.TrimSuffix(strings.TrimSpace(inner), "|")
	var cells []string
	for cell := range strings.SplitSeq(strings.ReplaceAll(inner, `\|`, "\x00"), "|") {
		cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", `\|`)))
	}
	return cells
}
