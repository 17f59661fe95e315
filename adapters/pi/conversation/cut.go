package conversation

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// keepRecent is how many tokens of what was said last a compaction keeps as they are
// (facts, section 9.5), as far as an agent can be told them.
const keepRecent = 20_000

// ReportedTokens returns how many tokens the last answer on the path to a leaf took, by what
// its agent said of it; 0 where nobody has said so since the latest compaction.
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
	Nodes []*Node // that stand
	from  int     // the first of them that is kept
	// Tokens is what the conversation takes, as its agent said it, or else about.
	Tokens int64
}

// First is the entry that the kept part begins with.
func (c *Cut) First() *Node { return c.Nodes[c.from] }

// CutAt divides the conversation that ends at leaf: whole turns of the user's are
// kept, the last one always, and as many before it as take no more than keepRecent and
// half of what an agent can be told. Half of the conversation is the most that is kept
// where the context has to become smaller. It returns why there is nothing to compact,
// or "".
func CutAt(leaf *Node, toldBytes int, smaller bool) (*Cut, string) {
	last := leaf
	for last != nil && last.Role == "" {
		last = last.Parent
	}
	if last != nil && last.Type == sessionfile.TypeCompaction {
		return nil, "Already compacted"
	}
	c := &Cut{Nodes: contextOf(leaf), from: -1}
	var all int64
	sizes := make([]int64, len(c.Nodes))
	for i, n := range c.Nodes {
		sizes[i] = n.tokens
		all += sizes[i]
	}
	keep := min(keepRecent, int64(toldBytes/BytesPerToken/2))
	if smaller {
		keep = min(keep, all/2)
	}
	// What an agent counts has also what is not seen here: each token that is seen
	// stands for more than itself.
	if c.Tokens = ReportedTokens(leaf); c.Tokens > all {
		keep = int64(float64(keep) * float64(all) / float64(c.Tokens))
	} else if c.Tokens == 0 {
		c.Tokens = all
	}
	var kept int64
	results := 0 // whose calls stand before them
	for i, n := range slices.Backward(c.Nodes) {
		if kept += sizes[i]; kept > keep && c.from >= 0 {
			break
		}
		if n.Role == RoleTool {
			results++
		}
		results = max(0, results-n.calls)
		if results == 0 && n.begins() {
			c.from = i
		}
	}
	fresh := 0 // the first that no summary stands for
	if len(c.Nodes) > 0 && c.Nodes[0].Role == RoleCompaction {
		fresh = 1
	}
	if c.from <= fresh {
		return nil, "Nothing to compact (session too small)"
	}
	return c, ""
}

// begins reports whether a turn of the user's begins with the entry.
func (n *Node) begins() bool {
	return slices.Contains([]string{RoleUser, RoleBash, RoleBranchSummary}, n.Role)
}

// Removed is what the summary is to stand for, the latest that fits into so many bytes,
// and how many messages do not.
func (c *Cut) Removed(bytes int) (told []core.Turn, left int) {
	return fit(Messages(c.Nodes[:c.from]), bytes, Message.turnWithTools)
}
