package roster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// names finds similar ids among very many. One list is sorted by the ids, which brings
// those with a common beginning together; the other by the reversed ids, for a common end.
type names struct {
	forward, backward []name
}

// name is an id with the text that it is sorted by.
type name struct {
	text string
	id   core.AgentID
}

// Up to compareAll ids, all are compared. Of more, compareSide are compared on each side
// of where an id would be in each list.
const (
	compareAll  = 64
	compareSide = 8
)

func (n *names) add(id core.AgentID) {
	f, b := folded(id)
	n.forward, n.backward = insert(n.forward, name{f, id}), insert(n.backward, name{b, id})
}

func (n *names) remove(id core.AgentID) {
	f, b := folded(id)
	n.forward, n.backward = without(n.forward, name{f, id}), without(n.backward, name{b, id})
}

func insert(list []name, n name) []name {
	i, _ := slices.BinarySearchFunc(list, n, compareNames)
	return slices.Insert(list, i, n)
}

func without(list []name, n name) []name {
	if i, found := slices.BinarySearchFunc(list, n, compareNames); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func compareNames(a, b name) int {
	return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.id, b.id))
}

// folded returns an id in lower case, and the same reversed.
func folded(id core.AgentID) (forward, backward string) {
	forward = strings.ToLower(string(id))
	reversed := []byte(forward)
	slices.Reverse(reversed)
	return forward, string(reversed)
}

// nearest returns up to three ids similar to id, the most similar first.
func (n *names) nearest(id core.AgentID) []core.AgentID {
	forward, backward := folded(id)
	var all []near
	if len(n.forward) <= compareAll {
		all = similar(all, forward, n.forward)
	} else {
		all = similar(all, forward, around(n.forward, forward))
		all = similar(all, backward, around(n.backward, backward)) // reversing both keeps the distance
	}
	slices.SortFunc(all, func(a, b near) int { return cmp.Or(cmp.Compare(a.d, b.d), cmp.Compare(a.id, b.id)) })
	all = slices.Compact(all)
	var out []core.AgentID
	for _, o := range all[:min(3, len(all))] {
		out = append(out, o.id)
	}
	return out
}

// near is an id and its edit distance from another.
type near struct {
	id core.AgentID
	d  int
}

// similar appends the names of a list whose text is similar to the given one.
func similar(all []near, text string, list []name) []near {
	for _, o := range list {
		d := suggest.Distance(text, o.text)
		if d <= max(2, len(text)/2) || strings.Contains(o.text, text) {
			all = append(all, near{o.id, d})
		}
	}
	return all
}

// around returns the names on both sides of where a text would be.
func around(list []name, text string) []name {
	i, _ := slices.BinarySearchFunc(list, name{text: text}, compareNames)
	return list[max(0, i-compareSide):min(len(list), i+compareSide)]
}
