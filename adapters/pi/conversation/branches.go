package conversation

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// Successor is a conversation without entries, in the same directory.
func (t *Tree) Successor(session, parent string) *Tree {
	return New(core.NewID(), session, t.Header.Cwd, parent)
}

// Question is a message of the user, before which a conversation can be forked.
type Question struct {
	EntryID string `json:"entryId"`
	Text    string `json:"text"`
}

// Questions lists what the user has said, on all branches.
func (t *Tree) Questions() []Question {
	list := []Question{}
	for _, n := range t.Nodes {
		if !n.Asks() {
			continue
		}
		if text := n.Said().Text(); text != "" {
			list = append(list, Question{n.ID(), text})
		}
	}
	return list
}

// Asks reports whether the entry is a message of the user.
func (n *Node) Asks() bool { return n.Type == sessionfile.TypeMessage && n.Role == RoleUser }

// Fork returns a conversation that goes on as if the message had not been said yet, with
// the name and the labels of this one.
func (t *Tree) Fork(before *Node, session, parent string) *Tree {
	forked := t.Successor(session, parent)
	for _, n := range pathTo(before.Parent) {
		forked.load(n.Entry, n.Said())
	}
	forked.refresh()
	if forked.Name != t.Name {
		forked.Add(sessionfile.Info{Name: t.Name})
	}
	for _, n := range forked.Nodes[:len(forked.Nodes):len(forked.Nodes)] {
		id := n.ID()
		if label := t.labels[id]; label != forked.labels[id] {
			forked.Add(sessionfile.Label{TargetID: id, Label: label})
		}
	}
	return forked
}

// LeftFor returns what is said on the path but not on that to the other entry.
func (t *Tree) LeftFor(to *Node) []Message {
	stays := map[*Node]bool{}
	for n := to; n != nil; n = n.Parent {
		stays[n] = true
	}
	var left []Message
	for n := t.Leaf; n != nil && !stays[n]; n = n.Parent {
		if n.Role != "" {
			left = append(left, n.Said())
		}
	}
	slices.Reverse(left)
	return left
}
