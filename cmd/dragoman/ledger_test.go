package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
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
	// nameInText matches the names in a test or conversation as wholes: context does not mention text.
	nameInText = regexp.MustCompile(`[A-Za-z0-9_-]+`)
	// wordOfGo matches a word of a name: AgentID has two, TOOL_STATE as well.
	wordOfGo = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)
)

func TestEveryRowOfALedgerIsHeldByATest(t *testing.T) {
	for name := range ledgers {
		rows, _ := ledger(t, name)
		if len(rows) == 0 {
			t.Errorf("%s: got no rows, want one per rule of the specification", name)
		}
		for _, r := range rows {
			mentioned := heldBy(t, name, r)
			if reason, ok := strings.CutPrefix(r.held, "none: "); ok {
				if len(reason) < 10 {
					t.Errorf("%s, %s: got the reason %q for %q, want why no test of ours can hold it", name, r.section, reason, r.rule)
				}
				continue
			}
			if len(mentioned) == 0 {
				t.Errorf("%s, %s: got nothing that holds %q, want `package.TestName`, a link to a conversation, or none: with a reason", name, r.section, r.rule)
				continue
			}
			for _, m := range inCode.FindAllStringSubmatch(r.rule, -1) {
				if !mentioned[spelled(m[1])] {
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

// heldBy returns the names, as [spelled] writes them, in the tests and conversations that hold a row.
func heldBy(t *testing.T, name string, r ledgerRow) map[string]bool {
	t.Helper()
	mentioned := map[string]bool{}
	for _, m := range testName.FindAllStringSubmatch(r.held, -1) {
		file := testsOf(t, m[1])[m[2]]
		if file == "" {
			t.Errorf("%s, %s: got no %s in %s, want the test that %q names", name, r.section, m[2], m[1], r.rule)
			continue
		}
		maps.Copy(mentioned, namesInTest(t, filepath.Join("../..", m[1], file), m[2]))
	}
	for _, m := range conversationLink.FindAllStringSubmatch(r.held, -1) {
		_, frames, _ := strings.Cut(fileText(t, filepath.Join("../../schemas/conversations", m[1])), "\n-- ") // without what it says of itself
		for _, n := range nameInText.FindAllString(frames, -1) {
			mentioned[spelled(n)] = true
		}
	}
	return mentioned
}

var namesByTest = map[string]map[string]bool{}

// namesInTest returns the names in a test, found once: hundreds of rows have the same.
func namesInTest(t *testing.T, path, test string) map[string]bool {
	t.Helper()
	if names := namesByTest[path+test]; names != nil {
		return names
	}
	names := map[string]bool{}
	for _, n := range nameInText.FindAllString(testText(t, path, test), -1) {
		words := wordOfGo.FindAllString(n, -1)
		for i := range words { // MessageResponse_ToolState is about tool_state
			for j := range words[i:] {
				names[spelled(strings.Join(words[i:i+j+1], ""))] = true
			}
		}
	}
	namesByTest[path+test] = names
	return names
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

// testText returns the source of a test and of what it uses of its file: other tests in it do not speak for this one.
func testText(t *testing.T, path, test string) string {
	t.Helper()
	source, set := fileText(t, path), token.NewFileSet()
	tree, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	declared := declarationsOf(tree)
	var text strings.Builder
	var add func(name string)
	add = func(name string) {
		nodes := declared[name]
		delete(declared, name) // once is enough
		for _, n := range nodes {
			text.WriteString(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset] + "\n")
			ast.Inspect(n, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					add(id.Name)
				}
				return true
			})
		}
	}
	add(test)
	return text.String()
}

// declarationsOf returns what a file declares, by name: methods of several types may have one.
func declarationsOf(file *ast.File) map[string][]ast.Node {
	declared := map[string][]ast.Node{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			declared[d.Name.Name] = append(declared[d.Name.Name], d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					declared[s.Name.Name] = append(declared[s.Name.Name], s)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						declared[name.Name] = append(declared[name.Name], s)
					}
				}
			}
		}
	}
	return declared
}

// spelled returns a text without what JSON, protobuf and Go spell apart: agent_id, agentId and AgentID are one.
func spelled(s string) string {
	return strings.ToLower(joiners.Replace(s))
}

var joiners = strings.NewReplacer("_", "", "-", "")

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
