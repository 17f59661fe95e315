package hub

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// handOver adds to an assignment what the agent gets of the conversation: the latest turns that the requester may
// read and, where another agent had the conversation since its own last turn, the files of those turns and whose it
// was. An agent that keeps its threads gets only what it does not know. Callers hold Hub.mu.
func (h *Hub) handOver(j *job, s *Session, a *task.Assignment) {
	keeps := s.card.Load().Features.Has(core.FeatureSessions)
	a.Branched = j.IsBranch() && h.threads.Has(j.Thread())
	if keeps && (!j.IsTurn() || h.threads.IsOf(j.Thread(), s.id)) {
		return
	}
	recent, _ := h.threads.Turns(j.Thread(), h.limits.HistoryBytes)
	turns := h.readable(j.From(), recent)
	missed, from := missedTurns(turns, s.id)
	given := h.given(j, s.id, missed)
	if len(given) > 0 {
		missed = slices.DeleteFunc(slices.Clone(missed), func(t core.Turn) bool { return given[t.Task] })
		from = slices.IndexFunc(turns, func(t core.Turn) bool { return len(missed) > 0 && t.Task == missed[0].Task })
	}
	if j.IsNotice() || len(missed) == 0 || missed[len(missed)-1].Agent == "" {
		if !keeps {
			a.History = turns
		}
		return
	}
	other := missed[len(missed)-1].Agent
	handed := &core.Handover{From: other, Turns: len(missed)}
	var left []string
	a.Files, a.FilesOf, left = filesOf(missed, s.card.Load().Features.Has(core.FeatureFiles))
	handed.Files, handed.LeftOut = len(a.Files), len(left)
	if n := h.leftTurns(j, s.id, turns, recent); n > 0 && len(given) == 0 {
		handed.LeftOut += n
		left = slices.Insert(left, 0, fmt.Sprintf("the %d oldest turns", n))
	}
	said := h.said(other, left, missed[0])
	if a.Handover = handed; keeps {
		a.History = slices.Concat(said, missed)
	} else {
		a.History = slices.Concat(turns[:from], said, turns[from:])
	}
}

// missedTurns returns the turns that an agent does not know, and the index of the first: those of other agents that
// ended after its own latest task was opened. A task that waited for the agent may have brought it some of these.
func missedTurns(turns []core.Turn, of core.AgentID) (missed []core.Turn, from int) {
	own := ownTurns(turns, of)
	if own == 0 {
		return turns, 0
	}
	since := turns[own-1].At
	if own > 1 && turns[own-2].Task == turns[own-1].Task {
		since = turns[own-2].At
	}
	from = own
	for i, t := range slices.Backward(turns[:own]) {
		end := t
		if i+1 < own && turns[i+1].Task == t.Task {
			end = turns[i+1]
		}
		if end.Agent != of && end.At.After(since) {
			missed, from = append(missed, t), i
		}
	}
	slices.Reverse(missed)
	return append(missed, turns[own:]...), from
}

// latestTasks is how many of the latest tasks of a thread are looked at for what an agent was given with them.
const latestTasks = 64

// given returns the tasks whose turns an agent, which has missed some, was given with another task of the conversation:
// one that runs, or has no turn because it was cancelled or failed. Agents keep what others ask apart.
func (h *Hub) given(j *job, to core.AgentID, missed []core.Turn) map[core.TaskID]bool {
	if len(missed) == 0 || j.IsNotice() {
		return nil
	}
	given := map[core.TaskID]bool{}
	for _, id := range h.index.Latest(j.Thread(), latestTasks) {
		if t := h.tasks.Get(id); t != nil && t != j.Task && t.From().Account() == j.From().Account() {
			for _, turn := range t.Gave(to) {
				given[turn] = true
			}
		}
	}
	return given
}

// ownTurns returns the number of turns up to the last one of an agent in this conversation.
func ownTurns(turns []core.Turn, of core.AgentID) int {
	for i, t := range slices.Backward(turns) {
		if t.Agent == of && !t.Earlier {
			return i + 1
		}
	}
	return 0
}

// leftTurns returns how many turns that an agent does not know are too old for it, as far as the requester may know
// of them.
func (h *Hub) leftTurns(j *job, of core.AgentID, turns, recent []core.Turn) int {
	if ownTurns(turns, of) > 0 {
		return 0
	}
	all, _ := h.threads.Turns(j.Thread(), 1<<30)
	readable := h.readable(j.From(), all)
	older := readable[:max(0, len(readable)-len(turns))]
	if own := ownTurns(older, of); own > 0 {
		return len(older) - own
	}
	if len(readable) < len(all) || len(turns) < len(recent) {
		return len(older)
	}
	return len(older) + h.threads.Lost(j.Thread())
}

// maxNamed is how many files that were left out are named.
const maxNamed = 20

// filesOf returns the files of turns for the agent that goes on, the latest within a bound, with the tasks that they
// are of, and says which are left out: all of them if it takes no files.
func filesOf(turns []core.Turn, takes bool) (files []core.File, of []core.TaskID, left []string) {
	room := thread.FileBytes
	for _, t := range slices.Backward(turns) {
		for _, f := range slices.Backward(t.Files) {
			if !takes || f.Data == nil || len(f.Data) > room {
				left = append(left, fileName(f))
				continue
			}
			room -= len(f.Data)
			files, of = append(files, f), append(of, t.Task)
		}
	}
	slices.Reverse(files)
	slices.Reverse(of)
	slices.Reverse(left)
	return files, of, left
}

// fileName names a file: "a.png (image/png)".
func fileName(f core.File) string {
	name := visible.Line(f.Name)
	if len(name) > 100 {
		name = strings.ToValidUTF8(name[:100], "") + "..."
	}
	return fmt.Sprintf("file %s (%s)", name, cmp.Or(visible.Line(f.MediaType), "of no type"))
}

// said returns a turn that says to an agent what no other turn does: where the one that had the conversation works, and
// what is left out. It belongs to the first turn that the agent does not know, so that it gets neither twice.
func (h *Hub) said(from core.AgentID, left []string, first core.Turn) []core.Turn {
	text := fmt.Sprintf("[Agent %s had this conversation.", from)
	other := sessionOf(h.roster.Member(from))
	switch {
	case other != nil && other.opts.Dir != "":
		text += fmt.Sprintf(" Its working directory is %s.", other.opts.Dir)
	case len(left) == 0:
		return nil
	}
	if len(left) > maxNamed {
		left = append(left[:maxNamed:maxNamed], fmt.Sprintf("%d more files", len(left)-maxNamed))
	}
	if len(left) > 0 {
		text += " Left out: " + strings.Join(left, ", ") + "."
	}
	return []core.Turn{{Role: core.RoleUser, Text: text + "]", Task: first.Task, At: first.At, From: first.From}}
}
