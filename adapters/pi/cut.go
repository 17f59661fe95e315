package pi

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// keepRecent is how many tokens of what was said last a compaction keeps as they are
// (facts, section 9.5), as far as an agent can be told them.
const keepRecent = 20_000

// reported returns how many tokens the last answer on the path to a leaf took, by what
// its agent said of it; 0 where nobody has said so since the latest compaction.
func reported(leaf *node) int64 {
	for n := leaf; n != nil && n.Type != sessionfile.TypeCompaction; n = n.parent {
		if tokens := tokensOf(n.usage); tokens > 0 {
			return tokens
		}
	}
	return 0
}

func tokensOf(u core.Usage) int64 {
	return u.Input + u.Output + u.Thinking + u.CacheRead + u.CacheWrite
}

// cut is where a compaction divides a conversation.
type cut struct {
	nodes []*node // that stand
	from  int     // the first of them that is kept
	// tokens is what the conversation takes, as its agent said it, or else about.
	tokens int64
}

// first is the entry that the kept part begins with.
func (c *cut) first() *node { return c.nodes[c.from] }

// cutAt divides the conversation that ends at leaf: whole turns of the user's are
// kept, the last one always, and as many before it as take no more than keepRecent and
// half of what an agent can be told. Half of the conversation is the most that is kept
// where the context has to become smaller. It returns why there is nothing to compact,
// or "".
func cutAt(leaf *node, toldBytes int, smaller bool) (*cut, string) {
	last := leaf
	for last != nil && last.role == "" {
		last = last.parent
	}
	if last != nil && last.Type == sessionfile.TypeCompaction {
		return nil, "Already compacted"
	}
	c := &cut{nodes: standing(leaf), from: -1}
	var all int64
	sizes := make([]int64, len(c.nodes))
	for i, n := range c.nodes {
		sizes[i] = n.tokens
		all += sizes[i]
	}
	keep := min(keepRecent, int64(toldBytes/bytesPerToken/2))
	if smaller {
		keep = min(keep, all/2)
	}
	// What an agent counts has also what is not seen here: each token that is seen
	// stands for more than itself.
	if c.tokens = reported(leaf); c.tokens > all {
		keep = int64(float64(keep) * float64(all) / float64(c.tokens))
	} else if c.tokens == 0 {
		c.tokens = all
	}
	var kept int64
	results := 0 // whose calls stand before them
	for i, n := range slices.Backward(c.nodes) {
		if kept += sizes[i]; kept > keep && c.from >= 0 {
			break
		}
		if n.role == roleTool {
			results++
		}
		results = max(0, results-n.calls)
		if results == 0 && n.begins() {
			c.from = i
		}
	}
	fresh := 0 // the first that no summary stands for
	if len(c.nodes) > 0 && c.nodes[0].role == roleCompaction {
		fresh = 1
	}
	if c.from <= fresh {
		return nil, "Nothing to compact (session too small)"
	}
	return c, ""
}

// begins reports whether a turn of the user's begins with the entry.
func (n *node) begins() bool {
	return slices.Contains([]string{roleUser, roleBash, roleBranchSummary}, n.role)
}

// goes is what the summary is to stand for, the latest that fits into so many bytes,
// and how many messages do not.
func (c *cut) goes(bytes int) (told []core.Turn, left int) {
	return fit(messagesIn(c.nodes[:c.from]), bytes, message.account)
}

// account is a message as a turn with the tools that were used in it, of which an
// agent that makes a summary has to know: their input names the files.
func (m message) account() (core.Turn, bool) {
	t, blocks, ok := m.turnAndBlocks()
	if m.calls == 0 {
		return t, ok
	}
	lines := []string{t.Text}
	for _, b := range blocks {
		if b.Type == "toolCall" {
			lines = append(lines, "[used "+b.Name+" with "+shortened(b.Arguments, 400)+"]")
		}
	}
	t.Role, t.Text = core.RoleAssistant, strings.TrimSpace(strings.Join(lines, "\n"))
	return t, true
}

// shortened is the beginning of a text that is longer than so many bytes.
func shortened(text []byte, most int) string {
	text = bytes.TrimSpace(text)
	if len(text) <= most {
		return string(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return string(text[:most]) + "…"
}
