package conversation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// utter adds a message of the role to a conversation: n letters, and of an assistant
// also so many calls and tokens.
func addMessage(t *Tree, role string, n, calls int, used int64) *Node {
	text := strings.Repeat("x", n)
	content := []map[string]any{{"type": "text", "text": text}}
	for i := range calls {
		content = append(content, map[string]any{"type": "toolCall", "id": fmt.Sprint(i), "name": "read", "arguments": map[string]string{"path": "a.go"}})
	}
	m := map[string]any{"role": role, "content": content}
	if used > 0 {
		m["usage"] = map[string]int64{"input": used}
	}
	if role == RoleBash {
		m["command"], m["output"] = "ls", text
	}
	raw, _ := json.Marshal(m)
	return t.AppendMessage(ReadMessage(raw))
}

func TestACompactionKeepsWholeTurns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tr := New("id", "s", "/", "")
		open := 0
		for range rapid.IntRange(0, 40).Draw(rt, "messages") {
			n := rapid.IntRange(0, 9000).Draw(rt, "letters")
			switch kind := rapid.IntRange(0, 9).Draw(rt, "kind"); {
			case open > 0 && kind > 1:
				addMessage(tr, RoleTool, n, 0, 0)
				open--
			case kind < 4:
				addMessage(tr, RoleUser, n, 0, 0)
			case kind == 4:
				addMessage(tr, RoleBash, n, 0, 0)
			case kind == 5 && tr.Leaf != nil:
				tr.AppendEntry(sessionfile.Compaction{Summary: "s", FirstKeptEntryID: tr.Leaf.ID()})
			default:
				calls := rapid.IntRange(0, 2).Draw(rt, "calls")
				addMessage(tr, RoleAssistant, n, calls, rapid.Int64Range(0, 50_000).Draw(rt, "used"))
				open += calls
			}
		}
		told := rapid.IntRange(1, 200_000).Draw(rt, "told")
		c, problem := CutAt(tr.Leaf, told, rapid.Bool().Draw(rt, "smaller"))
		if problem != "" {
			return
		}
		kept := c.Nodes[c.from:]
		if !kept[0].begins() {
			rt.Errorf("got the kept part beginning with a %s, want the beginning of a turn", kept[0].Role)
		}
		if c.Nodes[c.from-1].Role == RoleCompaction {
			rt.Error("got nothing but the summary of before to sum up, want something new")
		}
		var tokens int64
		unanswered := 0
		for _, n := range kept {
			tokens += estimate(n.ContextMessage())
			if unanswered += n.calls; n.Role == RoleTool {
				unanswered--
			}
			if unanswered < 0 && open == 0 {
				rt.Error("got the result of a tool kept without its call")
			}
		}
		turns := slices.IndexFunc(kept[1:], (*Node).begins)
		if most := min(keepRecent, int64(told/BytesPerToken/2)); turns >= 0 && tokens > most && open == 0 && !mixed(kept) {
			rt.Errorf("got %d tokens kept in several turns, want %d at most", tokens, most)
		}
		before := len(tr.Nodes)
		tr.AppendEntry(sessionfile.Compaction{Summary: "new", FirstKeptEntryID: c.First().ID()})
		if got := contextOf(tr.Leaf); len(got) != 1+len(kept) || got[0] != tr.Nodes[before] || !slices.Equal(got[1:], kept) {
			rt.Errorf("got %d entries standing behind the compaction, want it and the %d kept", len(got), len(kept))
		}
	})
}

// mixed reports whether turns begin between a call and its result: those cannot be
// parted.
func mixed(nodes []*Node) bool {
	open := 0
	for _, n := range nodes {
		if n.begins() && open > 0 {
			return true
		}
		if open += n.calls; n.Role == RoleTool {
			open--
		}
	}
	return false
}

func TestAnAgentIsToldWhichToolsWereUsed(t *testing.T) {
	tr := New("id", "s", "/", "")
	addMessage(tr, RoleUser, 3, 0, 0)
	addMessage(tr, RoleAssistant, 2, 1, 0)
	addMessage(tr, RoleTool, 5, 0, 0)
	addMessage(tr, RoleAssistant, 0, 1, 0)
	addMessage(tr, RoleUser, 1, 0, 1000)
	c, problem := CutAt(tr.Leaf, 8, true)
	if problem != "" {
		t.Fatal(problem)
	}
	told, left := c.Removed(1000)
	want := []core.Turn{
		{Role: core.RoleUser, Text: "xxx"},
		{Role: core.RoleAssistant, Text: "xx\n[used read with {\"path\":\"a.go\"}]"},
		{Role: core.RoleAssistant, Text: "[used read with {\"path\":\"a.go\"}]"},
	}
	for i := range told {
		told[i].At = want[0].At
	}
	if d := cmp.Diff(want, told); d != "" || left != 0 {
		t.Errorf("got %d left out and (-want +got):\n%s", left, d)
	}
}

func TestASummaryOfBeforeGoesBeforeAllOthers(t *testing.T) {
	tr := New("id", "s", "/", "")
	first := addMessage(tr, RoleUser, 10, 0, 0)
	tr.AppendEntry(sessionfile.Compaction{Summary: "short", FirstKeptEntryID: first.ID()})
	for range 4 {
		addMessage(tr, RoleUser, 100, 0, 0)
	}
	told, left := latestTurns(Messages(tr.Context), 300, Message.turn)
	if len(told) == 0 || !strings.HasSuffix(told[0].Text, "short") || left == 0 {
		t.Errorf("got %d turns, %d messages left out, want the summary first and some left out", len(told), left)
	}
}

func TestInputThatIsLongIsShortenedBetweenLetters(t *testing.T) {
	for text, want := range map[string]string{"": "", " {} ": "{}", "ääää": "ää…", "abcde": "abcde", "abcdef": "abcde…"} {
		if got := shorten([]byte(text), 5); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
