package client

import (
	"context"
	"errors"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
)

// begin sends the request. Where the remote does not know the conversation any more, it begins
// another with it.
func (w *work) begin(ctx context.Context) (source, error) {
	if open := w.session.Open; open != nil {
		w.lastAsked = open.Asked
		if err := w.told.know(open.Told); err != nil {
			return nil, err
		}
	}
	s, err := w.tell(ctx)
	before := w.session
	if err == nil || before == (session{}) {
		return s, err
	}
	if before.Open != nil && refusedAs(err, wire.ReasonTaskNotFound, wire.ReasonUnsupportedOperation) {
		w.session = session{Context: before.Context, Heard: before.Heard}
		w.lastAsked, w.told.artifacts, w.told.order = "", nil, nil
		if s, err = w.tell(ctx); err == nil {
			return s, nil
		}
	}
	var refused *wire.Error
	if before.Context == "" || !errors.As(err, &refused) || !(refused.Reason == wire.ReasonTaskNotFound || refused.Fault().Code == core.CodeInvalid) {
		return nil, err
	}
	if err := w.turn.Report(core.SessionLost{Reason: "the remote agent does not continue the conversation: " + reason(err)}, nil); err != nil {
		return nil, err
	}
	w.session = session{}
	return w.tell(ctx)
}

// tell sends the request in the session, and notes what the remote knows once it has taken it.
func (w *work) tell(ctx context.Context) (source, error) {
	in := w.session
	s, err := w.send(frame.TurnOf(ctx).Telling(ctx, core.KindAssigned), w.request(in))
	if err != nil {
		return nil, err
	}
	history := w.turn.Request().History
	if in.Open != nil {
		history = nil
	}
	w.session.Heard = in.Heard.with(history, w.turn.Task())
	return s, nil
}

// request returns the message of the task in a session. Where the remote has no memory of the
// thread, what was said in it comes first; where it has one, what others said since.
func (w *work) request(in session) wire.SendRequest {
	q := w.turn.Request()
	earlier := q.History
	switch {
	case in.Open != nil: // the message is an answer, and the next one tells what else was said
		earlier = nil
	case in.Context != "":
		earlier = in.Heard.missing(q.History)
	}
	r := wire.SendRequestOf(q.HandedWith(earlier))
	if len(earlier) > 0 {
		r.Message.Parts = append([]wire.Part{wire.TextPart(transcript(earlier))}, r.Message.Parts...)
	}
	r.Message.ID = string(w.turn.Task())
	r.Message.ContextID = in.Context
	if w.remote.cursors { // a hub
		above, _ := r.Chain()                                             // it was checked where the message came in
		_ = r.SetChain(above.Below(string(w.turn.Task()), w.turn.Hops())) // texts and numbers always encode
	}
	switch {
	case in.Open != nil:
		r.Message.TaskID = in.Task
	case in.Task != "":
		r.Message.References = append(r.Message.References, in.Task)
	}
	return r
}

// transcript returns earlier turns as text.
func transcript(turns []core.Turn) string {
	var b strings.Builder
	b.WriteString("Earlier in this conversation:\n")
	for _, t := range turns {
		who := t.Role.String()
		if t.Agent != "" {
			who = string(t.Agent)
		}
		b.WriteString("\n" + who + ": " + t.Text + "\n")
	}
	return b.String()
}

// send sends a message and returns what the remote says to it.
func (w *work) send(ctx context.Context, r wire.SendRequest) (source, error) {
	op := opStream
	if !w.remote.streams {
		op, r.Configuration.ReturnImmediately = opSend, true
	}
	resp, err := w.agent.do(ctx, w.remote, call{op: op, message: &r, trace: w.turn.Trace()})
	if op.stream && refusedAs(err, wire.ReasonUnsupportedOperation) && r.Message.TaskID == "" {
		return nil, core.NewFault(core.CodeUnsupported, "the remote agent refuses to stream, although its card says capabilities.streaming: %s", reason(err)).Because(err)
	}
	if err != nil {
		return nil, w.hint(err)
	}
	w.turn.Delivered()
	return w.source(resp)
}

// hint adds to an error what a peer of another version would mean by it.
func (w *work) hint(err error) error {
	var refused *wire.Error
	if errors.As(err, &refused) && refused.Reason == "METHOD_NOT_FOUND" {
		return core.NewFault(core.CodeUnsupported, "the remote agent does not know the methods of A2A %s, which its card promises (protocolVersion %s); maybe it speaks 0.3: %s",
			wire.Version, w.remote.card.Interfaces[0].ProtocolVersion, reason(err)).Because(err)
	}
	return err
}
