package conversation

import (
	"slices"
	"testing"
)

func TestNewEntriesOfALoadedTreeHaveFreshIDs(t *testing.T) {
	file := New("id", "s", "/", "")
	file.number = 1<<32 - 3
	for range 4 {
		file.AppendMessage(UserMessage("read", nil, 1)) // up to 00000001
	}
	tree := New("id", "s", "/", "")
	for _, n := range file.Nodes {
		tree.load(n.Entry, n.ContextMessage())
	}
	tree.number = file.number - 4
	for range 4 {
		tree.AppendMessage(UserMessage("said", nil, 1))
	}
	var ids []string
	for i, n := range tree.Nodes {
		ids = append(ids, n.ID())
		if got := tree.Find(n.ID()); got != n {
			t.Errorf("entry %d: got %v, want it found by its id %s", i, got, n.ID())
		}
		if i > 0 && n.Parent != tree.Nodes[i-1] {
			t.Errorf("entry %d: got the parent %v, want the one before", i, n.Parent)
		}
	}
	want := []string{"fffffffe", "ffffffff", "00000000", "00000001", "00000002", "00000003", "00000004", "00000005"}
	if !slices.Equal(ids, want) {
		t.Errorf("got the ids %q, want %q", ids, want)
	}
	for _, id := range []string{"", "00000006", "FFFFFFFE", "x"} {
		if got := tree.Find(id); got != nil {
			t.Errorf("got %v for %q, want nothing", got, id)
		}
	}
}
