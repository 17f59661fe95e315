package client

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// take tells what an item says. news is false for one that says nothing new.
func (w *work) take(ctx context.Context, it item) (news bool, err error) {
	if it.cursor != "" {
		w.cursor = it.cursor
	}
	before := w.reports
	switch r := it.StreamResponse; {
	case r.Task != nil:
		if !w.concerns(r.Task.ID) {
			return false, nil
		}
		if err := w.name(r.Task.ID, r.Task.ContextID); err != nil {
			return false, err
		}
		err = w.snapshot(ctx, r.Task)
	case r.Message != nil:
		err = w.answer(r.Message)
	case r.StatusUpdate != nil:
		if u := r.StatusUpdate; w.concerns(u.TaskID) {
			if err = w.name(u.TaskID, u.ContextID); err == nil {
				err = w.status(ctx, u)
			}
		}
	case r.ArtifactUpdate != nil:
		if u := r.ArtifactUpdate; w.concerns(u.TaskID) {
			if err = w.name(u.TaskID, u.ContextID); err == nil {
				err = w.told.update(u)
			}
		}
	default:
		err = w.unknown(r.Unknown)
	}
	return w.reports > before, err
}

// report reports an event to the hub. Only the goroutine of Work calls it.
func (w *work) report(b core.Body, f *core.Foreign) error {
	w.reports++
	if b.Kind().Ends() {
		w.awaitInjection()
		w.keepSession() // the next turn of the thread may begin as soon as the end is told
	}
	return w.turn.Report(b, f)
}

// concerns reports whether an item is about the task. Others are counted and skipped: a remote
// that mixes up its streams must not mix up the answers.
func (w *work) concerns(id string) bool {
	if known := w.id(); known == "" || id == known {
		return true
	}
	w.agent.opts.Count("a2a.agent.wrong_task")
	w.agent.opts.Log.Warn("the remote agent sent an event of another task", "task", w.turn.Task(), "remote_task", short(id))
	return false
}

// name notes the ids of the task and of its conversation, once.
func (w *work) name(id, conversation string) error {
	before, known := w.session, w.id()
	first := known == "" && id != ""
	if first {
		w.session.Task, w.session.Open = id, nil
	}
	if conversation != "" {
		w.session.Context = conversation
	}
	if before.Context != "" && w.session.Context != before.Context {
		w.session.Heard = nil
	}
	if first || w.session.Context != before.Context {
		w.named.Store(&names{cmp.Or(known, id), w.session.Context})
	}
	if first {
		close(w.known)
		if err := w.report(core.Accepted{}, nil); err != nil {
			return err
		}
	}
	if conversation == "" || before.Context == conversation {
		return nil
	}
	if before.Context != "" {
		if err := w.report(core.SessionLost{Reason: "the remote agent began another conversation"}, nil); err != nil {
			return err
		}
	}
	return w.report(core.SessionStarted{Session: conversation}, nil)
}

// unknown tells an item of a kind that the hub does not know.
func (w *work) unknown(raw json.RawMessage) error {
	name := "unknown"
	for key := range strictjson.ParseValid(raw).Members() {
		name = string(key)
		break
	}
	w.agent.opts.Count("a2a.agent.unknown_kind")
	return w.report(core.ForeignFrame{Dialect: wire.Dialect, Name: short(name)}, &core.Foreign{Dialect: wire.Dialect, JSON: raw})
}

// snapshot tells what is new in a whole task. An answer that stands only in its history is told
// as well.
func (w *work) snapshot(ctx context.Context, t *wire.Task) error {
	for i := range t.Artifacts {
		if err := w.told.snapshot(&t.Artifacts[i]); err != nil {
			return err
		}
	}
	now := wire.StatusUpdate{Status: t.Status, Metadata: t.Metadata}
	if n := len(t.History); n > 0 && now.Status.State == wire.StateCompleted && now.Status.Message == nil && t.History[n-1].Role == wire.RoleAgent {
		now.Status.Message = &t.History[n-1]
	}
	return w.status(ctx, &now)
}

// answer tells a message that is the whole answer, and ends the task.
func (w *work) answer(m *wire.Message) error {
	if err := w.name("", m.ContextID); err != nil {
		return err
	}
	if err := w.told.update(whole(m)); err != nil {
		return err
	}
	return w.end(core.Done{Data: w.told.structured()}, nil)
}

// whole returns a message as the artifact of the answer.
func whole(m *wire.Message) *wire.ArtifactUpdate {
	return &wire.ArtifactUpdate{Artifact: wire.Artifact{ID: answerID, Parts: m.Parts, Metadata: m.Metadata, Extensions: m.Extensions}}
}

// status tells the state of the task and what the remote says about it.
func (w *work) status(ctx context.Context, u *wire.StatusUpdate) error {
	switch state := u.Status.State; {
	case state.Terminal():
		return w.terminal(ctx, u)
	case state == wire.StateInputRequired:
		if _, told := eventOf(u.Status.Message); told { // it goes on meanwhile
			return w.progress(u)
		}
		return w.ask(ctx, u)
	case state == wire.StateAuthRequired:
		err := w.end(core.Failed{Fault: core.NewFault(core.CodeUnauthenticated,
			"the remote agent wants an authorization that the hub cannot give (%s): %s", state, cmp.Or(words(u), "it does not say which"))}, besideStatus(u))
		w.abandon(ctx)
		return err
	case !state.Known():
		w.agent.opts.Count("a2a.agent.unknown_state")
	}
	w.withdraw()
	return w.progress(u)
}

// progress tells what the remote says while it works: once, however often it is shown.
func (w *work) progress(u *wire.StatusUpdate) error {
	m := u.Status.Message
	if m == nil {
		if u.Metadata == nil && u.Unknown == nil && u.Status.Unknown == nil {
			return nil
		}
		return w.report(core.ForeignFrame{Dialect: wire.Dialect, Name: "statusUpdate"}, besideStatus(u))
	}
	if m.ID != "" && m.ID == w.thought {
		return nil
	}
	w.thought = m.ID
	if b, found := eventOf(m); found {
		if b == nil {
			return nil
		}
		return w.report(b, nil)
	}
	for _, p := range m.Parts {
		if p.Kind == wire.PartRaw {
			if err := w.report(core.File{Name: cmp.Or(p.Filename, "file"), MediaType: p.MediaType, Data: p.Raw}, nil); err != nil {
				return err
			}
		}
	}
	text, beside := wire.Text(m.Parts), besideStatus(u)
	switch {
	case text != "":
		return w.report(core.Thinking{Text: text}, beside)
	case beside != nil:
		return w.report(core.ForeignFrame{Dialect: wire.Dialect, Name: "statusUpdate"}, beside)
	}
	return nil
}

// terminal tells the end of the task.
func (w *work) terminal(ctx context.Context, u *wire.StatusUpdate) error {
	if err := w.complete(ctx); err != nil {
		return err
	}
	m := u.Status.Message
	if used, ok := usageOf(u); ok {
		if err := w.report(used, nil); err != nil {
			return err
		}
	}
	beside := besideStatus(u)
	switch u.Status.State {
	case wire.StateCompleted:
		if m != nil && !w.told.answered {
			if err := w.told.update(whole(m)); err != nil {
				return err
			}
			beside = nil
		} else if text := words(u); text != "" && m.ID != w.thought {
			if err := w.report(core.Thinking{Text: text}, nil); err != nil {
				return err
			}
		}
		return w.end(done(u, w.told.structured()), beside)
	case wire.StateCanceled:
		why := cmp.Or(words(u), "the remote agent cancelled the task")
		if cancel := w.cancel.Load(); cancel != nil {
			why = cmp.Or(cancel.Reason, why)
		}
		return w.end(core.Cancelled{Reason: why}, beside)
	}
	return w.end(core.Failed{Fault: faultOf(u)}, beside)
}

// complete tells what is missing in an answer of which an event could not be read.
func (w *work) complete(ctx context.Context) error {
	id := w.id()
	if w.skipped == 0 || id == "" {
		return nil
	}
	w.skipped = 0
	t, err := w.agent.getTask(ctx, w.remote, id)
	if err != nil {
		w.agent.opts.Log.Warn("an answer may lack what could not be read of it", "task", w.turn.Task(), "error", err)
		return nil
	}
	for i := range t.Artifacts {
		if err := w.told.snapshot(&t.Artifacts[i]); err != nil {
			return err
		}
	}
	return nil
}

// words returns the text of a status.
func words(u *wire.StatusUpdate) string {
	if u.Status.Message == nil {
		return ""
	}
	return wire.Text(u.Status.Message.Parts)
}

// end reports the end of the task.
func (w *work) end(b core.Body, f *core.Foreign) error {
	w.ended = true
	w.withdraw()
	return cmp.Or(w.told.rest(), w.report(b, f))
}
