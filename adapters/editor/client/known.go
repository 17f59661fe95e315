package client

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// maxKnown is how many turns are remembered one by one: more than run in a thread at once.
const maxKnown = 16

// known is what a session knows of the turns of its thread: each up to a floor, in the order in which
// they were asked, and some after it. A turn that was asked earlier may end later, and the hub sends
// with a task what had ended when the agent got it, which may be before the turns that the session
// has had since. The zero value knows nothing.
type known struct {
	floor core.TaskID
	after []core.TaskID // in order
}

// add notes turns that the session knows.
func (k *known) add(tasks ...core.TaskID) {
	for _, task := range tasks {
		if at, has := slices.BinarySearch(k.after, task); task > k.floor && !has {
			k.after = slices.Insert(k.after, at, task)
		}
	}
	if n := len(k.after) - maxKnown; n > 0 {
		k.floor, k.after = k.after[n-1], slices.Clone(k.after[n:])
	}
}

func (k *known) has(task core.TaskID) bool {
	_, has := slices.BinarySearch(k.after, task)
	return has || task <= k.floor
}

func (k *known) isEmpty() bool { return k.floor == "" && len(k.after) == 0 }

// unseen returns the turns that a session does not know, in order. What the requester has sent along
// names no task, and is for a session that knows nothing.
func (k *known) unseen(history []core.Turn) []core.Turn {
	if k.isEmpty() {
		return history
	}
	return slices.DeleteFunc(slices.Clone(history), func(t core.Turn) bool { return k.has(t.Task) })
}

// tasksOf returns the tasks of turns.
func tasksOf(turns []core.Turn) (all []core.TaskID) {
	for _, t := range turns {
		all = append(all, t.Task)
	}
	return all
}
