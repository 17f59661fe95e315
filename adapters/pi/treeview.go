package pi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// The most that get_tree tells (facts, section 4.9).
const (
	treeNodes   = 10_000
	treeDepth   = 1_000
	previewSize = 400
)

// treeNode is an entry as get_tree shows it.
type treeNode struct {
	EntryID   string  `json:"entryId"`
	ParentID  *string `json:"parentId"`
	EntryType string  `json:"entryType"`
	Role      *string `json:"role"`
	Text      string  `json:"text"`
	Timestamp *string `json:"timestamp"`
	Label     string  `json:"label,omitempty"`
}

// getTree tells all branches, each entry before those that follow it. That takes a
// while, beside the lock: entries do not change.
func getTree(s *Server, x *execution) outcome {
	t := *x.on.tree
	t.labels = maps.Clone(t.labels)
	return s.work(x, func(context.Context) outcome { return t.tell() })
}

func (t *tree) tell() outcome {
	if len(t.nodes) > treeNodes {
		return failed(fmt.Sprintf("Failed to serialize session tree: it has %d entries (max %d)", len(t.nodes), treeNodes))
	}
	after := map[*node][]*node{}
	for _, n := range slices.Backward(t.nodes) {
		after[n.parent] = append(after[n.parent], n)
	}
	type place struct {
		*node
		depth int
	}
	var stack []place
	push := func(parent *node, depth int) {
		for _, n := range after[parent] {
			stack = append(stack, place{n, depth})
		}
	}
	nodes := make([]treeNode, 0, len(t.nodes))
	for push(nil, 1); len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at.depth > treeDepth {
			return failed(fmt.Sprintf("Failed to serialize session tree: it is more than %d entries deep", treeDepth))
		}
		nodes = append(nodes, t.show(at.node))
		push(at.node, at.depth+1)
	}
	var leaf *string
	if t.leaf != nil {
		id := t.leaf.ID()
		leaf = &id
	}
	return outcome{data: wire.Encode(map[string]any{"currentLeafId": leaf, "nodes": nodes})}
}

func (t *tree) show(n *node) treeNode {
	shown := treeNode{EntryID: n.ID(), EntryType: n.Type, Text: preview(n), Label: t.labels[n.ID()]}
	if n.parent != nil {
		id := n.parent.ID()
		shown.ParentID = &id
	}
	if at := n.Timestamp(); at != "" {
		shown.Timestamp = &at
	}
	if n.Type == sessionfile.TypeMessage && n.role != "" {
		shown.Role = &n.role
	}
	return shown
}

// preview is a line that tells an entry from others.
func preview(n *node) string {
	text := strings.Join(strings.Fields(gist(n)), " ")
	if text == "" {
		if n.Type == sessionfile.TypeMessage {
			return "[" + cmp.Or(n.role, n.Type) + "]"
		}
		return "[" + n.Type + "]"
	}
	if utf8.RuneCountInString(text) > previewSize {
		text = string([]rune(text)[:previewSize]) + "…"
	}
	return text
}

// gist is what an entry is about.
func gist(n *node) string {
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
	switch n.Type {
	case sessionfile.TypeMessage, sessionfile.TypeCustomMessage:
		return n.said().gist()
	default:
		if n.Body(&b) != nil {
			return ""
		}
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

// gist is the text of a message, else what it thought, else what a command of the
// user printed or was.
func (m message) gist() string {
	if text := m.text(); text != "" {
		return text
	}
	for _, b := range m.blocks() {
		if b.Thinking != "" {
			return b.Thinking
		}
	}
	var b struct {
		Output  string `json:"output"`
		Command string `json:"command"`
		Summary string `json:"summary"`
	}
	_ = json.Unmarshal(m.json, &b) // what is of another type is not shown
	return cmp.Or(b.Output, b.Command, b.Summary)
}
