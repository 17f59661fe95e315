package parallax

import (
	"context"
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func (s *session) taskAccepted(ctx context.Context, m wire.Message, p wire.TaskAccepted) error {
	var again bool
	id, err := s.find(ctx, m, p.TaskRef, func(t *heldTask) { again, t.accepted = t.accepted, true })
	if id == "" || again {
		return err
	}
	return s.report(ctx, m, id, core.Accepted{Estimate: wire.Milliseconds(p.EstimatedMs)}, s.foreign(m, wire.AcceptedShape.Strip(m.Content())))
}

// taskProgress handles progress. What it refuses has its place in the sequence of the task all the same: an
// update that the hub cannot tell anybody is no reason to fail the task.
func (s *session) taskProgress(ctx context.Context, m wire.Message, p wire.Progress) error {
	bodies, refused := s.progressOf(p)
	if refused != nil && !s.holds(core.TaskID(p.TaskID)) {
		return s.refuse(ctx, m.ID, refused.code, refused.text)
	}
	foreign := s.foreign(m, p.Unknown)
	var first, again bool
	var missing wire.Count
	id, err := s.find(ctx, m, p.TaskRef, func(t *heldTask) {
		if first, again, missing = t.progress(p); !again {
			bodies = t.join(bodies, p)
		}
	})
	switch {
	case id == "":
		return err
	case missing > 0:
		return s.failGap(ctx, m, id, p, missing)
	case again:
		s.hub.Count("parallax.ignored.duplicate")
		return nil
	}
	if first {
		if err := s.report(ctx, m, id, core.Accepted{}, nil); err != nil {
			return err
		}
	}
	if refused != nil {
		return s.refuse(ctx, m.ID, refused.code, refused.text)
	}
	for _, b := range bodies {
		if err := s.report(ctx, m, id, b, foreign); err != nil {
			return err
		}
		foreign = nil
	}
	return nil
}

// refusal is why a message is refused.
type refusal struct{ code, text string }

// refusedProgress refuses progress.
func refusedProgress(code, why string) *refusal {
	return &refusal{code, "task_progress: payload: " + why}
}

// progressOf returns the events that progress stands for, or why it is refused.
func (s *session) progressOf(p wire.Progress) ([]core.Body, *refusal) {
	bodies, err := p.Bodies()
	if err != nil {
		return nil, refusedProgress(wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	for _, b := range bodies {
		if !wire.AgentMaySend(b.Kind()) {
			s.hub.Count("parallax.refused." + b.Kind().String())
			if s.holds(core.TaskID(p.TaskID)) {
				s.opts.Link.Frames.Event(core.TaskID(p.TaskID), true, b.Kind(), 0, true)
			}
			return nil, refusedProgress(wire.CodeUnsupported, "an agent of this dialect does not say "+b.Kind().String()+": leave it out, or fail the task")
		}
	}
	switch {
	case len(bodies) > 0:
		return bodies, nil
	case p.Unknown == nil:
		return nil, refusedProgress(wire.CodeInvalidMessage, "no known member: send text, thinking, toolCall, toolState, toolResult, usage, file or session")
	}
	return []core.Body{core.ForeignFrame{Dialect: Dialect, Name: wire.TypeTaskProgress}}, nil
}

// failGap fails a task whose progress has a gap: an incomplete answer must not pass as
// complete.
func (s *session) failGap(ctx context.Context, m wire.Message, id core.TaskID, p wire.Progress, missing wire.Count) error {
	text := fmt.Sprintf("task_progress: payload.seq: %d came where %d was due: count the progress of a task from 1, without holes", p.Seq, missing)
	if err := s.report(ctx, m, id, core.Failed{Fault: core.NewFault(core.CodeInternal, "a part of the answer is missing: progress %d of the agent never came", missing)}, nil); err != nil {
		return err
	}
	if err := s.refuse(ctx, m.ID, wire.CodeInvalidMessage, text); err != nil {
		return err
	}
	return s.send(ctx, wire.TypeTaskCancelled, "", wire.TaskCancelled{TaskRef: wire.TaskRef{TaskID: p.TaskID, ExecutionID: p.ExecutionID}, Reason: "progress_lost"})
}

func (s *session) taskResult(ctx context.Context, m wire.Message, p wire.TaskResult) error {
	switch p.Status {
	case "", wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled:
	default:
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_result: payload.status: send completed, failed or cancelled, not "+wire.Shorten(p.Status))
	}
	id, before, err := s.endTask(ctx, m, p.TaskRef, p.Metadata)
	if id == "" {
		return err
	}
	bodies := append(before.pieces.Rest(), p.Bodies(before.streamed, before.usageSent)...)
	if !before.accepted {
		bodies = append([]core.Body{core.Accepted{}}, bodies...)
	}
	return s.reportAll(ctx, m, id, bodies, s.foreign(m, wire.ResultShape.Strip(m.Content())))
}

func (s *session) taskError(ctx context.Context, m wire.Message, p wire.TaskError) error {
	id, before, err := s.endTask(ctx, m, p.TaskRef, p.Metadata)
	if id == "" {
		return err
	}
	bodies := append(before.pieces.Rest(), p.Bodies(before.streamed, before.usageSent)...)
	if !before.accepted && len(bodies) > 1 { // an error alone may be a rejection
		bodies = append([]core.Body{core.Accepted{}}, bodies...)
	}
	return s.reportAll(ctx, m, id, bodies, wire.WithCode(s.foreign(m, wire.ErrorShape.Strip(m.Content())), p.End()))
}

// endTask marks the task of a final message as ended and returns its state before; for an
// empty id see find. It counts what the metadata has that an agent may not send, which is
// no reason to lose the end.
func (s *session) endTask(ctx context.Context, m wire.Message, ref wire.TaskRef, metadata wire.ResultMetadata) (id core.TaskID, before heldTask, err error) {
	id, err = s.find(ctx, m, ref, func(t *heldTask) { before, t.ended = *t, true })
	if id == "" {
		return id, before, err
	}
	for _, b := range metadata.Bodies() {
		if !wire.AgentMaySend(b.Kind()) {
			s.hub.Count("parallax.refused." + b.Kind().String())
		}
	}
	return id, before, nil
}

// holds reports whether the agent has the task.
func (s *session) holds(id core.TaskID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks.byID[id] != nil
}

// find returns the task of an agent's message, after change. The id is empty if the
// message is to be ignored: the agent ended the task before, or does not hold it, which
// find tells the agent.
func (s *session) find(ctx context.Context, m wire.Message, ref wire.TaskRef, change func(*heldTask)) (core.TaskID, error) {
	id := core.TaskID(ref.TaskID)
	s.mu.Lock()
	t := s.tasks.byID[id]
	switch {
	case t == nil:
	case t.ended:
		s.mu.Unlock()
		s.hub.Count("parallax.ignored.late")
		return "", nil
	case ref.ExecutionID != "" && ref.ExecutionID != t.execution:
		t = nil
	default:
		change(t)
		if t.ended {
			s.tasks.end(id, t)
		}
	}
	s.mu.Unlock()
	if t == nil {
		return "", s.refuseNotHeld(ctx, m, ref)
	}
	return id, nil
}

func (s *session) refuseNotHeld(ctx context.Context, m wire.Message, ref wire.TaskRef) error {
	what := fmt.Sprintf("task %q", wire.Shorten(ref.TaskID))
	if ref.TaskID == "" {
		what = "a task without taskId"
	} else if ref.ExecutionID != "" {
		what += fmt.Sprintf(" in execution %q", wire.Shorten(ref.ExecutionID))
	}
	return s.refuse(ctx, m.ID, wire.CodeTaskNotHeld, m.Type+": "+what+" is not this connection's: send the taskId and executionId of a task that it was given and has not ended")
}

// reportAll reports the events of a final message. The end gets its unknown members.
func (s *session) reportAll(ctx context.Context, m wire.Message, id core.TaskID, bodies []core.Body, foreign *core.Foreign) error {
	last := len(bodies) - 1
	for _, b := range bodies[:last] {
		if err := s.report(ctx, m, id, b, nil); err != nil {
			return err
		}
	}
	return s.report(ctx, m, id, bodies[last], foreign)
}

// report passes an event of the agent to the hub. The agent gets no error if the task has
// ended meanwhile; the hub counts that.
func (s *session) report(ctx context.Context, m wire.Message, id core.TaskID, body core.Body, foreign *core.Foreign) error {
	err := s.agent.Report(id, body, foreign)
	var f *core.Fault
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &f):
		return err
	case f.Code == core.CodeConflict, f.Code == core.CodeNotAuthorized, f.Code == core.CodeTooLarge:
		return nil
	}
	return s.refuse(ctx, m.ID, wire.CodeOf(f), f.Message)
}
