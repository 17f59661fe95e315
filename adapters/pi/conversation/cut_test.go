package conversation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// addMessage adds a message of n letters to a conversation, and of an assistant also calls of
// tools and used tokens.
func addMessage(t *conversation.Tree, role string, n, calls int, used int64) *conversation.Node {
	text := strings.Repeat("x", n)
	content := []map[string]any{{"type": "text", "text": text}}
	for i := range calls {
		content = append(content, map[string]any{"type": "toolCall", "id": fmt.Sprint(i), "name": "read", "arguments": map[string]string{"path": "a.go"}})
	}
	m := map[string]any{"role": role, "content": content}
	if used > 0 {
		m["usage"] = map[string]int64{"input": used}
	}
	if role == conversation.RoleBash {
		m["command"], m["output"] = "ls", text
	}
	raw, _ := json.Marshal(m)
	return t.AppendMessage(conversation.ReadMessage(raw))
}

func TestACompactionKeepsWholeTurns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tr := conversation.New("id", "s", "/", "")
		open := 0
		for range rapid.IntRange(0, 40).Draw(rt, "messages") {
			n := rapid.IntRange(0, 9000).Draw(rt, "letters")
			switch kind := rapid.IntRange(0, 9).Draw(rt, "kind"); {
			case open > 0 && kind > 1:
				addMessage(tr, conversation.RoleTool, n, 0, 0)
				open--
			case kind < 4:
				addMessage(tr, conversation.RoleUser, n, 0, 0)
			case kind == 4:
				addMessage(tr, conversation.RoleBash, n, 0, 0)
			case kind == 5 && tr.Leaf != nil:
				tr.AppendEntry(sessionfile.Compaction{Summary: "s", FirstKeptEntryID: tr.Leaf.ID()})
			default:
				calls := rapid.IntRange(0, 2).Draw(rt, "calls")
				addMessage(tr, conversation.RoleAssistant, n, calls, rapid.Int64Range(0, 50_000).Draw(rt, "used"))
				open += calls
			}
		}
		told := rapid.IntRange(1, 200_000).Draw(rt, "told")
		c, problem := conversation.CutAt(tr.Leaf, told, rapid.Bool().Draw(rt, "smaller"))
		if problem != "" {
			return
		}
		from := slices.Index(c.Nodes, c.First())
		kept := c.Nodes[from:]
		if !begins(kept[0]) {
			rt.Errorf("got the kept part beginning with a %s, want the beginning of a turn", kept[0].Role)
		}
		if c.Nodes[from-1].Role == conversation.RoleCompaction {
			rt.Error("got only an earlier summary to summarize, want something new")
		}
		var tokens int64
		unanswered := 0
		for _, n := range kept {
			tokens += n.ContextMessage().Tokens
			if unanswered += n.ContextMessage().Calls; n.Role == conversation.RoleTool {
				unanswered--
			}
			if unanswered < 0 && open == 0 {
				rt.Error("got the result of a tool kept without its call")
			}
		}
		turns := slices.IndexFunc(kept[1:], begins)
		if most := min(20_000, int64(told/conversation.BytesPerToken/2)); turns >= 0 && tokens > most && open == 0 && !mixed(kept) {
			rt.Errorf("got %d tokens kept in several turns, want %d at most", tokens, most)
		}
		before := len(tr.Nodes)
		tr.AppendEntry(sessionfile.Compaction{Summary: "new", FirstKeptEntryID: c.First().ID()})
		if got := tr.Context; len(got) != 1+len(kept) || got[0] != tr.Nodes[before] || !slices.Equal(got[1:], kept) {
			rt.Errorf("got %d entries after the compaction, want it and the %d kept", len(got), len(kept))
		}
	})
}

// begins reports whether a turn of the user begins with the entry.
func begins(n *conversation.Node) bool {
	return slices.Contains([]string{conversation.RoleUser, conversation.RoleBash, conversation.RoleBranchSummary}, n.Role)
}

// mixed reports whether turns begin between a call and its result, where no cut is possible.
func mixed(nodes []*conversation.Node) bool {
	open := 0
	for _, n := range nodes {
		if begins(n) && open > 0 {
			return true
		}
		if open += n.ContextMessage().Calls; n.Role == conversation.RoleTool {
			open--
		}
	}
	return false
}

func TestAnAgentIsToldWhichToolsWereUsed(t *testing.T) {
	tr := conversation.New("id", "s", "/", "")
	addMessage(tr, conversation.RoleUser, 3, 0, 0)
	addMessage(tr, conversation.RoleAssistant, 2, 1, 0)
	addMessage(tr, conversation.RoleTool, 5, 0, 0)
	addMessage(tr, conversation.RoleAssistant, 0, 1, 0)
	addMessage(tr, conversation.RoleUser, 1, 0, 1000)
	c, problem := conversation.CutAt(tr.Leaf, 8, true)
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

func TestAnEarlierSummaryIsKeptFirst(t *testing.T) {
	tr := conversation.New("id", "s", "/", "")
	first := addMessage(tr, conversation.RoleUser, 10, 0, 0)
	tr.AppendEntry(sessionfile.Compaction{Summary: "short", FirstKeptEntryID: first.ID()})
	for range 4 {
		addMessage(tr, conversation.RoleUser, 100, 0, 0)
	}
	told := conversation.Turns(tr.Messages(), 300)
	if len(told) == 0 || !strings.HasSuffix(told[0].Text, "short") || len(told) == len(tr.Context) {
		t.Errorf("got %d turns, want the summary first and some messages left out", len(told))
	}
}

func TestLongToolInputIsShortenedBetweenCharacters(t *testing.T) {
	whole := `"` + strings.Repeat("x", 398) + `"` // 400 bytes
	for input, want := range map[string]string{
		"": "", " {} ": "{}", `"ää"`: `"ää"`, whole: whole,
		`"x` + whole[1:]: `"x` + whole[1:399] + "…", `"` + strings.Repeat("ä", 300) + `"`: `"` + strings.Repeat("ä", 199) + "…",
	} {
		tr := conversation.New("id", "s", "/", "")
		addMessage(tr, conversation.RoleUser, 1, 0, 0)
		call := `{"type":"toolCall","name":"read"}`
		if input != "" {
			call = `{"type":"toolCall","name":"read","arguments":` + input + `}`
		}
		tr.AppendMessage(conversation.ReadMessage(json.RawMessage(`{"role":"assistant","content":[` + call + `]}`)))
		addMessage(tr, conversation.RoleUser, 1, 0, 0)
		c, problem := conversation.CutAt(tr.Leaf, 8, true)
		if problem != "" {
			t.Fatal(problem)
		}
		turns, _ := c.Removed(10_000)
		if got, want := turns[len(turns)-1].Text, "[used read with "+want+"]"; got != want {
			t.Errorf("%s: got %s, want %s", input, got, want)
		}
	}
}
