package agent

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// maxKnown is how many turns are remembered one by one: more than run in a thread at once.
const maxKnown = 16

// Known is what a session of an agent knows of the turns of its thread: each up to Floor, in the order
// in which they were asked, and some after it. A turn that was asked earlier may end later, and the
// hub sends with a task what had ended when the agent got it, which may be before the turns that the
// session has had since. The zero value knows nothing. It is not safe for concurrent use; a copy
// stays as it is.
type Known struct {
	Floor core.TaskID
	After []core.TaskID // in order, at most 16
}

// Add notes that the session knows a task and the turns of a history, and reports whether that is news.
// An empty id is none.
func (k *Known) Add(history []core.Turn, task core.TaskID) (news bool) {
	before := *k
	k.After = slices.Clone(k.After)
	for _, t := range history {
		k.add(t.Task)
	}
	k.add(task)
	if n := len(k.After) - maxKnown; n > 0 {
		k.Floor, k.After = k.After[n-1], k.After[n:]
	}
	return k.Floor != before.Floor || !slices.Equal(k.After, before.After)
}

func (k *Known) add(task core.TaskID) {
	if at, has := slices.BinarySearch(k.After, task); task > k.Floor && !has {
		k.After = slices.Insert(k.After, at, task)
	}
}

// Unseen returns the turns of a history that the session does not know, in order. What the requester
// has sent along names no task, and is for a session that knows nothing.
func (k *Known) Unseen(history []core.Turn) []core.Turn {
	if k.Floor == "" && len(k.After) == 0 {
		return history
	}
	return slices.DeleteFunc(slices.Clone(history), func(t core.Turn) bool {
		_, has := slices.BinarySearch(k.After, t.Task)
		return has || t.Task <= k.Floor || t.Task == ""
	})
}
