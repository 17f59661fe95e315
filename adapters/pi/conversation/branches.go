package conversation

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// Successor returns a conversation without entries, in the same directory.
func (t *Tree) Successor(session, parent string) *Tree {
	return New(core.NewID(), session, t.Header.Cwd, parent)
}

// ForkPoint is a message of the user; a conversation can be forked before it.
type ForkPoint struct {
	EntryID string `json:"entryId"`
	Text    string `json:"text"`
}

// ForkPoints lists the messages of the user on all branches.
func (t *Tree) ForkPoints() []ForkPoint {
	list := []ForkPoint{}
	for _, n := range t.Nodes {
		if !n.IsUserMessage() {
			continue
		}
		if text := n.ContextMessage().Text(); text != "" {
			list = append(list, ForkPoint{n.ID(), text})
		}
	}
	return list
}

// IsUserMessage reports whether the entry is a message of the user.
func (n *Node) IsUserMessage() bool { return n.Type == sessionfile.TypeMessage && n.Role == RoleUser }

// Fork returns a conversation that continues before the message, with the name and the
// labels of this one.
func (t *Tree) Fork(before *Node, session, parent string) *Tree {
	forked := t.Successor(session, parent)
	for _, n := range pathTo(before.Parent) {
		forked.load(n.Entry, n.ContextMessage())
	}
	forked.refresh()
	if forked.Name != t.Name {
		forked.AppendEntry(sessionfile.Info{Name: t.Name})
	}
	for _, n := range forked.Nodes[:len(forked.Nodes):len(forked.Nodes)] {
		id := n.ID()
		if label := t.labels[id]; label != forked.labels[id] {
			forked.AppendEntry(sessionfile.Label{TargetID: id, Label: label})
		}
	}
	return forked
}

// AbandonedFor returns the messages that are on the path to the leaf but not on the path to
// the other entry.
func (t *Tree) AbandonedFor(to *Node) []Message {
	kept := map[*Node]bool{}
	for n := to; n != nil; n = n.Parent {
		kept[n] = true
	}
	var abandoned []Message
	for n := t.Leaf; n != nil && !kept[n]; n = n.Parent {
		if n.Role != "" {
			abandoned = append(abandoned, n.ContextMessage())
		}
	}
	slices.Reverse(abandoned)
	return abandoned
}
