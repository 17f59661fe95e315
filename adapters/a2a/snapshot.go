package a2a

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// snapshot returns a task as the items of its first events add up to it, which is what a client
// has that has read the stream so far, with the translator that goes on from there and the
// cursor of the last of these events.
func snapshot(t *task.Task, events []core.Event, questions []question.Question) (wire.Task, *translator, core.Cursor) {
	tr := newTranslator(t)
	out := wire.Task{ID: tr.task, ContextID: tr.context, Status: wire.Status{State: wire.StateSubmitted}}
	artifacts := map[string]int{}
	fold := func(items []wire.StreamResponse) {
		for _, item := range items {
			switch {
			case item.ArtifactUpdate != nil:
				add(&out, artifacts, *item.ArtifactUpdate)
			case item.StatusUpdate != nil:
				out.Status = item.StatusUpdate.Status
				if item.StatusUpdate.Metadata != nil {
					out.Metadata = item.StatusUpdate.Metadata
				}
			}
		}
	}
	var at core.Cursor
	for _, e := range events {
		if b, ok := e.Body.(core.Opened); ok {
			out.Status.At = e.At
			out.History = append(out.History, asked(tr, b.Request))
		}
		if b, ok := e.Body.(core.Injected); ok {
			out.History = append(out.History, wire.Message{
				ID: b.ID, Role: wire.RoleUser, ContextID: tr.context, TaskID: tr.task, Parts: []wire.Part{wire.TextPart(b.Content)},
			})
		}
		fold(tr.translate(e))
		at = e.Cursor()
	}
	for _, q := range questions {
		fold(tr.question(question.Update{Question: q}))
	}
	return out, tr, at
}

// add does with an update what clients do: append adds parts, everything else replaces.
func add(t *wire.Task, at map[string]int, u wire.ArtifactUpdate) {
	i, known := at[u.Artifact.ID]
	switch {
	case !known:
		at[u.Artifact.ID] = len(t.Artifacts)
		u.Artifact.Parts = slices.Clone(u.Artifact.Parts)
		t.Artifacts = append(t.Artifacts, u.Artifact)
	case u.Append:
		t.Artifacts[i].Parts = append(t.Artifacts[i].Parts, u.Artifact.Parts...)
	default:
		t.Artifacts[i] = u.Artifact
	}
}

// asked returns the message that opened a task.
func asked(tr *translator, r core.Request) wire.Message {
	m := wire.SendRequestOf(r).Message
	m.ContextID, m.TaskID = tr.context, tr.task
	if m.ID == "" { // it came from another dialect
		m.ID = tr.task + "-0"
	}
	return m
}

// keep returns the task with as much of its history as the client wants.
func keep(t wire.Task, history *int) wire.Task {
	if history != nil && *history < len(t.History) {
		t.History = t.History[len(t.History)-*history:]
	}
	return t
}

// snapshot returns the task of a call as it is, with what it waits for.
func (c *call) snapshot(t *task.Task) (wire.Task, *translator, core.Cursor) {
	var questions []question.Question
	if t.State() == task.Running {
		questions = c.server.hub.Questions(c.from)
	}
	return snapshot(t, t.Events(), questions)
}
