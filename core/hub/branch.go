package hub

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Branch is the beginning of a conversation that branches from another one. The zero Branch is none.
type Branch struct {
	from  core.TaskID
	turns []core.Turn
}

// Branch returns the latest turns of the conversation of a task that fit into Limits.HistoryBytes, up to those of the task
// itself, as far as the principal may read them and without secrets of others, for [OpenOptions.Branch]. Files do not come
// along. It returns the errors of [Hub.Task], for which it may wait, an invalid Fault for a notice and a conflict Fault for
// a task that has not ended.
func (h *Hub) Branch(ctx context.Context, p core.Principal, id core.TaskID) (Branch, error) {
	t, err := h.Task(ctx, p, id)
	switch {
	case err != nil:
		return Branch{}, err
	case t.IsNotice():
		return Branch{}, core.NewFault(core.CodeInvalid, "task %s is a notice, which is no part of a conversation", id)
	case t.State() != task.Ended:
		return Branch{}, core.NewFault(core.CodeConflict, "task %s still runs: a conversation branches from a task that has ended", id)
	}
	turns := h.Turns(ctx, p, t.Thread())
	turns = turns[:upTo(turns, id)]
	if t.IsDone() && !slices.ContainsFunc(turns, func(turn core.Turn) bool { return turn.Task == id }) {
		turns = TurnsOf(h.FormFor(p, t)) // those before it are forgotten
	}
	return Branch{id, h.fitting(turns)}, nil
}

// upTo returns the number of turns up to those of a task.
func upTo(turns []core.Turn, id core.TaskID) (n int) {
	for n < len(turns) && turns[n].Task <= id {
		n++
	}
	return n
}

// TurnsOf returns the turns of a task that is done, behind those from which its thread branched.
func TurnsOf(t *task.Task) []core.Turn {
	log := t.Log()
	return turnsIn(t.Request(), t.ID(), &log)
}

// fitting returns the latest turns that agents get, without what belongs to the thread that they are from.
func (h *Hub) fitting(turns []core.Turn) []core.Turn {
	from, room := len(turns), h.limits.HistoryBytes
	for from > 0 && room >= turns[from-1].Size() {
		from--
		room -= turns[from].Size()
	}
	turns = slices.Clone(turns[from:])
	for i, t := range turns {
		turns[i] = core.Turn{Role: t.Role, Text: t.Text, Agent: t.Agent, Task: t.Task, At: t.At}
	}
	return turns
}

// begin makes a request the first of the branch. It returns an invalid Fault for one that says itself that it is.
func (b Branch) begin(r *core.Request) error {
	if r.Branch != b.from && r.Branch != "" {
		return core.NewFault(core.CodeInvalid, "branch: a conversation is branched by POST /v1/tasks and by session/fork of editors")
	}
	if b.from != "" {
		r.Branch, r.History = b.from, b.turns
	}
	return nil
}

// earlierTurns returns the turns from which the thread of a task branched. They are the requester's: it was allowed to
// read what they say.
func earlierTurns(o core.Opened) []core.Turn {
	if o.Request.Branch == "" {
		return nil
	}
	turns := slices.Clone(o.Request.History)
	for i := range turns {
		turns[i].From, turns[i].Earlier = o.From.ID, true
	}
	return turns
}
