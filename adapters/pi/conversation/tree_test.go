package conversation_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

var testTime = time.UnixMilli(1_800_000_000_000)

func userMessage(text string) conversation.Message {
	return conversation.UserMessage(text, nil, testTime.UnixMilli())
}

func textOf(context []*conversation.Node) string {
	var all []string
	for _, n := range context {
		all = append(all, n.ContextMessage().PlainText())
	}
	return strings.Join(all, " | ")
}

func TestTheContextIsThePathToTheLeaf(t *testing.T) {
	tree := conversation.New("id", "s", "/", "")
	a := tree.AppendMessage(userMessage("a"))
	tree.AppendMessage(userMessage("b"))
	tree.Move(a)
	tree.AppendEntry(sessionfile.BranchSummary{FromID: "x", Summary: "there was b"})
	tree.AppendEntry(sessionfile.Custom{CustomType: "mine"})
	tree.AppendEntry(sessionfile.CustomMessage{CustomType: "mine", Content: json.RawMessage(`"hello"`), Display: true})
	tree.AppendMessage(userMessage("c"))
	want := "a | What was said on another branch, in short:\n\nthere was b | hello | c"
	if got := textOf(tree.Context); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := string(tree.Context[2].ContextMessage().JSON); got != `{"role":"custom","customType":"mine","content":"hello","display":true,"timestamp":`+got[len(got)-14:] {
		t.Errorf("a message of an extension: got %s", got)
	}
	tree.Move(nil)
	if got := textOf(tree.Context); got != "" {
		t.Errorf("before all: got %q, want nothing", got)
	}
}

func TestACompactionReplacesWhatItDoesNotKeep(t *testing.T) {
	tree := conversation.New("id", "s", "/", "")
	tree.AppendMessage(userMessage("a"))
	b := tree.AppendMessage(userMessage("b"))
	tree.AppendMessage(userMessage("c"))
	tree.AppendEntry(sessionfile.Compaction{Summary: "s", FirstKeptEntryID: b.ID(), TokensBefore: 9})
	d := tree.AppendMessage(userMessage("d"))
	summary := "What was said before, in short:\n\n"
	if got, want := textOf(tree.Context), summary+"s | b | c | d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tree.AppendEntry(sessionfile.Compaction{Summary: "t", FirstKeptEntryID: d.ID(), TokensBefore: 9})
	if got, want := textOf(tree.Context), summary+"t | d"; got != want {
		t.Errorf("compacted again: got %q, want %q", got, want)
	}
	tree.AppendEntry(sessionfile.Compaction{Summary: "u", FirstKeptEntryID: "unknown"})
	if got, want := textOf(tree.Context), summary+"u"; got != want {
		t.Errorf("keeping nothing: got %q, want %q", got, want)
	}
	tree.Move(b)
	if got, want := textOf(tree.Context), "a | b"; got != want {
		t.Errorf("before the compaction: got %q, want %q", got, want)
	}
}

func TestATreeSurvivesWritingAndReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := conversation.New("id", "s", "/", "")
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			one := func() *conversation.Node {
				if i := rapid.IntRange(-1, len(tree.Nodes)-1).Draw(t, "node"); i >= 0 {
					return tree.Nodes[i]
				}
				return nil
			}
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				text := rapid.StringN(0, 10, 20).Draw(t, "text")
				tree.AppendMessage(userMessage(strings.Repeat(text, rapid.SampledFrom([]int{1, 200}).Draw(t, "times"))))
			case 2:
				if n := one(); n != nil {
					tree.AppendEntry(sessionfile.Compaction{Summary: "s", FirstKeptEntryID: n.ID()})
				}
			case 3:
				tree.Move(one())
				tree.AppendMessage(userMessage("moved")) // a leaf that is not the last entry is not on the disk
			case 4:
				tree.AppendEntry(sessionfile.Info{Name: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")})
			case 5:
				tree.AppendEntry(sessionfile.ThinkingLevelChange{ThinkingLevel: "high"})
			case 6:
				if n := one(); n != nil {
					tree.AppendEntry(sessionfile.Label{TargetID: n.ID(), Label: rapid.SampledFrom([]string{"", "l"}).Draw(t, "label")})
				}
			}
		}
		data := append(tree.Header.Line(), '\n')
		for _, n := range tree.Nodes {
			data = append(append(data, n.Line...), '\n')
		}
		f, err := sessionfile.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		again := conversation.FromFile(f)
		if got, want := textOf(again.Context), textOf(tree.Context); got != want || again.Name != tree.Name || again.Level != tree.Level || labels(t, again) != labels(t, tree) {
			t.Fatalf("got %q, %q, %q, want %q, %q, %q", got, again.Name, again.Level, want, tree.Name, tree.Level)
		}
	})
}

func TestTurnsReturnsTheLatestThatFit(t *testing.T) {
	var context []conversation.Message
	for _, text := range []string{"one", "two", "three"} {
		context = append(context, userMessage(text), conversation.ToolMessage("1", "read", "output", false, 1))
	}
	size := func(text string) int {
		return conversation.Turns([]conversation.Message{userMessage(text)}, 1<<20)[0].Size()
	}
	for bytes, want := range map[int]int{-1: 0, 0: 0, size("three"): 1, size("three") + size("two"): 2, 1 << 20: 3} {
		if got := conversation.Turns(context, bytes); len(got) != want {
			t.Errorf("in %d bytes: got %d turns, want %d", bytes, len(got), want)
		}
	}
	image := conversation.Message{Role: conversation.RoleUser, JSON: json.RawMessage(`{"role":"user","content":[{"type":"text","text":"12345678"},{"type":"image","data":"aaaa"}]}`)}
	if got := conversation.New("id", "s", "/", "").AppendMessage(image).ContextMessage().Tokens; got != 1202 {
		t.Errorf("got an estimate of %d tokens, want 1202", got)
	}
}

func TestATreeThatIsTooLargeIsNotShown(t *testing.T) {
	tree := conversation.New("id", "s", "/", "")
	for range 1000 {
		tree.AppendMessage(userMessage("x"))
	}
	if _, err := tree.Outline(); err != nil {
		t.Errorf("a tree as deep as it may be: got %v", err)
	}
	tree.AppendMessage(userMessage("x"))
	if _, err := tree.Outline(); err == nil || err.Error() != "Failed to serialize session tree: it is more than 1000 entries deep" {
		t.Errorf("got %v, want that it is too deep", err)
	}
	wide := conversation.New("id", "s", "/", "")
	for range 10_001 {
		wide.Move(nil)
		wide.AppendEntry(sessionfile.Info{Name: "x"})
	}
	if _, err := wide.Outline(); err == nil || err.Error() != "Failed to serialize session tree: it has 10001 entries (max 10000)" {
		t.Errorf("got %v, want that it has too many entries", err)
	}
}

func TestEntriesAreShownByTheirContent(t *testing.T) {
	tree := conversation.New("id", "s", "/", "")
	raw := func(role, rest string) conversation.Message {
		return conversation.ReadMessage(json.RawMessage(`{"role":"` + role + `",` + rest + `}`))
	}
	for _, c := range []struct {
		body any // or a message
		want string
	}{
		{raw("user", `"content":"a\n b"`), "a b"},
		{raw("assistant", `"content":[{"type":"thinking","thinking":"hm"}]`), "hm"},
		{raw("assistant", `"content":[]`), "[assistant]"},
		{raw("bashExecution", `"command":"ls","output":""`), "ls"},
		{raw("bashExecution", `"command":"ls","output":"files"`), "files"},
		{raw("user", `"content":"`+strings.Repeat("é", 401)+`"`), strings.Repeat("é", 400) + "…"},
		{sessionfile.ModelChange{Provider: "p", ModelID: "m"}, "p/m"},
		{sessionfile.ThinkingLevelChange{ThinkingLevel: "high"}, "high"},
		{sessionfile.Compaction{Summary: "short"}, "short"},
		{sessionfile.BranchSummary{Summary: "left"}, "left"},
		{sessionfile.Label{TargetID: "1"}, "(cleared) → 1"},
		{sessionfile.Label{TargetID: "1", Label: "l"}, "l → 1"},
		{sessionfile.Custom{CustomType: "mine"}, "mine"},
		{sessionfile.CustomMessage{CustomType: "mine", Content: json.RawMessage(`"said"`)}, "said"},
		{sessionfile.Info{}, "[session_info]"},
	} {
		var n *conversation.Node
		if m, ok := c.body.(conversation.Message); ok {
			n = tree.AppendMessage(m)
		} else {
			n = tree.AppendEntry(c.body.(sessionfile.Body))
		}
		if got := shown(t, tree, n).Text; got != c.want {
			t.Errorf("%+v: got %q, want %q", c.body, got, c.want)
		}
	}
}

// shown returns an entry as get_tree shows it.
func shown(t *testing.T, tree *conversation.Tree, n *conversation.Node) conversation.TreeNode {
	t.Helper()
	outline, err := tree.Outline()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(outline.Nodes, func(shown conversation.TreeNode) bool { return shown.EntryID == n.ID() })
	return outline.Nodes[i]
}

// labels returns how many entries have a label.
func labels(t *rapid.T, tree *conversation.Tree) (n int) {
	outline, err := tree.Outline()
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range outline.Nodes {
		if shown.Label != "" {
			n++
		}
	}
	return n
}
