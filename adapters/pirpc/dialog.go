package pirpc

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxDialogs bounds the dialogs of a run that wait for a person.
const maxDialogs = 16

// dialog is a request of an extension that waits for a person.
type dialog struct {
	*wire.Dialog
	decided chan core.ApprovalDecided // of an approval
	input   string                    // that people are shown of it
	options approving
}

// approving are the options of a select that approve and deny; of a confirm none.
type approving struct{ once, always, deny string }

// reply returns the answer for a decision.
func (o approving) reply(d core.ApprovalDecided) wire.Reply {
	if o.deny == "" {
		return wire.Reply{Confirmed: &d.Approved}
	}
	value := o.deny
	switch {
	case d.Approved && d.All && o.always != "":
		value = o.always
	case d.Approved:
		value = o.once
	}
	return wire.Reply{Value: &value}
}

// Options that can mean one thing only. A decision is sent as one of them, so a guess could allow
// what was denied: "Stop asking" allows, and "Never" denies for good.
var (
	allowsOnce = []string{
		"allow", "allow once", "allow this time", "approve", "approve once", "accept", "accept once", "permit", "permit once", "yes", "yes, once", "yes, allow",
		"yes, allow once", "ok", "okay", "confirm", "continue", "proceed", "run", "run once",
	}
	allowsAlways = []string{
		"always", "always allow", "allow always", "always approve", "approve always", "always accept", "yes, always", "yes, always allow",
		"allow for session", "allow for this session", "allow for the session", "approve for session", "approve for this session",
	}
	deniesOnce = []string{
		"deny", "deny once", "block", "block once", "reject", "reject once", "refuse", "decline", "disallow", "don't allow", "do not allow", "no", "no, deny", "cancel", "abort",
	}
)

// approvingOf reports whether a select is a decision: it has one option that allows, one that
// denies, and at most one more, which allows for good.
func approvingOf(options []string) (o approving, is bool) {
	for _, option := range options {
		label := strings.TrimRight(strings.ToLower(strings.TrimSpace(option)), ".!")
		var to *string
		switch {
		case slices.Contains(allowsOnce, label):
			to = &o.once
		case slices.Contains(allowsAlways, label):
			to = &o.always
		case slices.Contains(deniesOnce, label):
			to = &o.deny
		}
		if to == nil || *to != "" {
			return approving{}, false
		}
		*to = option
	}
	return o, o.once != "" && o.deny != ""
}

// ask puts a dialog to people: a confirm, or a select of options that allow and deny, is an
// approval, any other a question. pi waits meanwhile, other tools of it do not.
func (r *run) ask(d *wire.Dialog) {
	options, decision := approving{}, d.Method == wire.MethodConfirm
	if d.Method == wire.MethodSelect {
		options, decision = approvingOf(d.Options)
	}
	w := &dialog{Dialog: d, options: options, decided: make(chan core.ApprovalDecided, 1)}
	id := d.ID
	r.mu.Lock()
	if r.isOver || len(r.dialogs) >= maxDialogs || r.dialogs[id] != nil {
		r.mu.Unlock()
		r.opts.Count(countUnasked)
		r.cancelDialog(d)
		return
	}
	if linked := r.onlyTool(); decision && linked != "" && r.dialogs[linked] == nil {
		id = linked
	}
	approval := r.approvalOf(id, d)
	w.input = approval.Input
	r.dialogs[id] = w
	r.running.Go(func() {
		if decision {
			r.approval(id, w)
		} else {
			r.question(w)
		}
		r.mu.Lock()
		delete(r.dialogs, id)
		r.mu.Unlock()
	})
	r.mu.Unlock()
	if decision {
		r.report(approval)
	}
}

// onlyTool returns the id of the tool that runs, if there is only one beside those that called it:
// then a decision is about it, for pi asks before it executes a tool. The reader loop calls it.
func (r *run) onlyTool() (only string) {
	calling := map[string]bool{}
	for _, t := range r.tools {
		calling[t.parent] = true
	}
	for id := range r.tools {
		switch {
		case calling[id]:
		case only != "":
			return ""
		default:
			only = id
		}
	}
	return only
}

// approvalOf returns what is shown to people: all that the dialog and its tool say.
func (r *run) approvalOf(id string, d *wire.Dialog) core.ApprovalRequested {
	shown := struct {
		Title   string   `json:"title"`
		Message string   `json:"message,omitempty"`
		Options []string `json:"options,omitempty"`
		Tool    string   `json:"tool,omitempty"`
		Input   string   `json:"tool_input,omitempty"`
	}{Title: d.Title, Message: d.Message, Options: d.Options}
	name := d.Title
	if t := r.tools[id]; t != nil {
		name, shown.Tool, shown.Input = t.name, t.name, t.input
	}
	return core.ApprovalRequested{ID: id, Name: name, Input: string(strictjson.Encode(shown))}
}

// approval waits for a decision and passes it on.
func (r *run) approval(id string, w *dialog) {
	var timeout <-chan time.Time
	if w.Timeout > 0 {
		limit := time.NewTimer(w.Timeout)
		defer limit.Stop()
		timeout = limit.C
	}
	select {
	case d := <-w.decided:
		_ = r.proc.reply(r.telling(core.KindApprovalDecided), w.ID, w.options.reply(d))
	case <-timeout: // pi has decided itself
		r.handling.Lock() // which line is handled meanwhile has nothing to do with it
		r.frames.Begin(frame.Incoming{})
		defer r.handling.Unlock()
		r.report(core.ToolState{ID: id, State: core.ToolTimeout, Detail: "pi waited no longer for a decision"})
	case <-r.over:
		r.cancelDialog(w.Dialog)
	case <-r.ctx.Done():
	}
}

// decided passes a decision to the dialog that waits for it. It may be on an earlier dialog of the
// same tool, for which pi waits no longer.
func (r *run) decided(d core.ApprovalDecided) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.dialogs[d.ID]; w != nil && d.IsFor(w.input) {
		select {
		case w.decided <- d:
		default:
		}
	}
}

// question asks people and passes on what they say.
func (r *run) question(w *dialog) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	if w.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, w.Timeout)
		defer cancel()
	}
	r.running.Go(func() {
		select {
		case <-r.over:
			cancel()
		case <-ctx.Done():
		}
	})
	o, err := r.turn.Ask(ctx, questionOf(w.Dialog))
	if err != nil || !o.Answered {
		if err != nil && ctx.Err() == nil {
			r.opts.Count(countUnasked)
			r.opts.Log.Warn("a question of pi was not asked", "task", r.turn.Task(), "title", w.Title, "error", err)
		}
		r.cancelDialog(w.Dialog)
		return
	}
	value := o.Text
	if len(o.Selected) > 0 {
		value = o.Selected[0]
	}
	_ = r.proc.reply(r.telling(0), w.ID, wire.Reply{Value: &value})
}

// questionOf returns a dialog as a question.
func questionOf(d *wire.Dialog) question.Question {
	q := question.Question{Text: strings.TrimSpace(d.Title + "\n\n" + d.Message)}
	if d.Timeout > 0 {
		q.Until = time.Now().Add(d.Timeout)
	}
	for _, option := range d.Options {
		q.Options = append(q.Options, core.Option{Label: option})
	}
	switch {
	case d.Placeholder != "":
		q.Text += "\n\n(" + d.Placeholder + ")"
	case d.Prefill != "":
		q.Text += "\n\n" + d.Prefill
	}
	if q.Text == "" {
		q.Text = "pi asks for " + d.Method
	}
	return q
}

// cancelDialog says that nobody answers.
func (r *run) cancelDialog(d *wire.Dialog) {
	_ = r.proc.reply(r.telling(0), d.ID, wire.Reply{Cancelled: true})
}
