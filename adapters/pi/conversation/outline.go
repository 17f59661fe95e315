package conversation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

// The limits of get_tree (facts, section 4.9).
const (
	maxTreeNodes = 10_000
	maxTreeDepth = 1_000
	previewSize  = 400 // characters
)

// TreeNode is an entry as get_tree shows it.
type TreeNode struct {
	EntryID   string  `json:"entryId"`
	ParentID  *string `json:"parentId"`
	EntryType string  `json:"entryType"`
	Role      *string `json:"role"`
	Text      string  `json:"text"`
	Timestamp *string `json:"timestamp"`
	Label     string  `json:"label,omitempty"`
}

// Outline is a tree as get_tree shows it.
type Outline struct {
	Leaf  *string    `json:"currentLeafId"`
	Nodes []TreeNode `json:"nodes"`
}

// Snapshot returns a copy of the tree that may be read while the owner uses the tree:
// entries do not change.
func (t *Tree) Snapshot() *Tree {
	frozen := *t
	frozen.labels = maps.Clone(t.labels)
	return &frozen
}

// Outline lists the entries of all branches, parents first. It returns an error for a tree
// that is too large to be shown.
func (t *Tree) Outline() (Outline, error) {
	if len(t.Nodes) > maxTreeNodes {
		return Outline{}, fmt.Errorf("Failed to serialize session tree: it has %d entries (max %d)", len(t.Nodes), maxTreeNodes) //nolint:staticcheck // as the reference has it
	}
	children := map[*Node][]*Node{}
	for _, n := range slices.Backward(t.Nodes) {
		children[n.Parent] = append(children[n.Parent], n)
	}
	type place struct {
		*Node
		depth int
	}
	var stack []place
	push := func(parent *Node, depth int) {
		for _, n := range children[parent] {
			stack = append(stack, place{n, depth})
		}
	}
	nodes := make([]TreeNode, 0, len(t.Nodes))
	for push(nil, 1); len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at.depth > maxTreeDepth {
			return Outline{}, fmt.Errorf("Failed to serialize session tree: it is more than %d entries deep", maxTreeDepth) //nolint:staticcheck // as the reference has it
		}
		nodes = append(nodes, t.show(at.Node))
		push(at.Node, at.depth+1)
	}
	outline := Outline{Nodes: nodes}
	if t.Leaf != nil {
		outline.Leaf = new(t.Leaf.ID())
	}
	return outline, nil
}

func (t *Tree) show(n *Node) TreeNode {
	shown := TreeNode{EntryID: n.ID(), EntryType: n.Type, Text: preview(n), Label: t.labels[n.ID()]}
	if n.Parent != nil {
		shown.ParentID = new(n.Parent.ID())
	}
	if at := n.Timestamp(); at != "" {
		shown.Timestamp = &at
	}
	if n.Type == sessionfile.TypeMessage && n.Role != "" {
		shown.Role = &n.Role
	}
	return shown
}

// preview returns one line that describes an entry.
func preview(n *Node) string {
	text := strings.Join(strings.Fields(Describe(n)), " ")
	if text == "" {
		if n.Type == sessionfile.TypeMessage {
			return "[" + cmp.Or(n.Role, n.Type) + "]"
		}
		return "[" + n.Type + "]"
	}
	if utf8.RuneCountInString(text) > previewSize {
		text = string([]rune(text)[:previewSize]) + "…"
	}
	return text
}

// Describe returns a text that describes an entry, or "".
func Describe(n *Node) string {
	var b struct {
		Provider      string `json:"provider"`
		ModelID       string `json:"modelId"`
		ThinkingLevel string `json:"thinkingLevel"`
		Summary       string `json:"summary"`
		Label         string `json:"label"`
		TargetID      string `json:"targetId"`
		CustomType    string `json:"customType"`
		Name          string `json:"name"`
	}
	if n.Type == sessionfile.TypeMessage || n.Type == sessionfile.TypeCustomMessage {
		return n.ContextMessage().describe()
	}
	if n.Body(&b) != nil {
		return ""
	}
	switch n.Type {
	case sessionfile.TypeModel:
		return b.Provider + "/" + b.ModelID
	case sessionfile.TypeThinking:
		return b.ThinkingLevel
	case sessionfile.TypeCompaction, sessionfile.TypeBranchSummary:
		return b.Summary
	case sessionfile.TypeLabel:
		return cmp.Or(b.Label, "(cleared)") + " → " + b.TargetID
	case sessionfile.TypeCustom:
		return b.CustomType
	case sessionfile.TypeInfo:
		return b.Name
	}
	return ""
}
