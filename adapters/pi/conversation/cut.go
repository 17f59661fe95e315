package conversation

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// keepRecent is how many of the latest tokens a compaction keeps at most (facts, section
// 9.5).
const keepRecent = 20_000

// ReportedTokens returns the tokens that the last answer on the path to a leaf took according
// to its agent; 0 where none has reported any since the latest compaction.
func ReportedTokens(leaf *Node) int64 {
	for n := leaf; n != nil && n.Type != sessionfile.TypeCompaction; n = n.Parent {
		if tokens := tokensOf(n.usage); tokens > 0 {
			return tokens
		}
	}
	return 0
}

func tokensOf(u core.Usage) int64 {
	return u.Input + u.Output + u.Thinking + u.CacheRead + u.CacheWrite
}

// Cut is where a compaction divides a conversation.
type Cut struct {
	Nodes []*Node // the context
	from  int     // index of the first that is kept
	// Tokens is the size of the context, reported by its agent or else estimated.
	Tokens int64
}

// First returns the entry that the kept part begins with.
func (c *Cut) First() *Node { return c.Nodes[c.from] }

// CutAt divides the conversation that ends at leaf. It keeps whole turns of the user: the
// last one always, and earlier ones up to keepRecent and half of maxBytes, which is what an
// agent can take. With smaller it keeps at most half of the conversation. It returns why
// there is nothing to compact, or "".
func CutAt(leaf *Node, maxBytes int, smaller bool) (*Cut, string) {
	last := leaf
	for last != nil && last.Role == "" {
		last = last.Parent
	}
	if last != nil && last.Type == sessionfile.TypeCompaction {
		return nil, "Already compacted"
	}
	c := &Cut{Nodes: contextOf(leaf)}
	var all int64
	sizes := make([]int64, len(c.Nodes))
	for i, n := range c.Nodes {
		sizes[i] = n.tokens
		all += sizes[i]
	}
	keep := min(keepRecent, int64(maxBytes/BytesPerToken/2))
	if smaller {
		keep = min(keep, all/2)
	}
	// The agent also counts what is not in the conversation, such as its instructions, so
	// each token here stands for more than one.
	if c.Tokens = ReportedTokens(leaf); c.Tokens > all {
		keep = int64(float64(keep) * float64(all) / float64(c.Tokens))
	} else if c.Tokens == 0 {
		c.Tokens = all
	}
	c.from = keptFrom(c.Nodes, sizes, keep)
	fresh := 0 // the first that is no summary
	if len(c.Nodes) > 0 && c.Nodes[0].Role == RoleCompaction {
		fresh = 1
	}
	if c.from <= fresh {
		return nil, "Nothing to compact (session too small)"
	}
	return c, ""
}

// keptFrom returns where the turns begin that are kept: the last one, and those before it as long as all have at most
// so many tokens; -1 if no turn begins.
func keptFrom(nodes []*Node, sizes []int64, keep int64) int {
	from := -1
	var kept int64
	results := 0 // of calls that come before
	for i, n := range slices.Backward(nodes) {
		if kept += sizes[i]; kept > keep && from >= 0 {
			break
		}
		if n.Role == RoleTool {
			results++
		}
		results = max(0, results-n.calls)
		if results == 0 && n.begins() {
			from = i
		}
	}
	return from
}

// begins reports whether a turn of the user begins with the entry.
func (n *Node) begins() bool {
	return slices.Contains([]string{RoleUser, RoleBash, RoleBranchSummary}, n.Role)
}

// Removed returns what the summary has to cover: the latest messages that fit into a number
// of bytes, and how many do not.
func (c *Cut) Removed(bytes int) (turns []core.Turn, omitted int) {
	return latestTurns(Messages(c.Nodes[:c.from]), bytes, Message.turnWithTools)
}
