package parallax

import (
	"context"
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// taskAccepted says that the agent took a task.
func (s *session) taskAccepted(ctx context.Context, m wire.Message, p wire.TaskAccepted) error {
	var again bool
	id, err := s.find(ctx, m, p.TaskRef, func(t *holding) { again, t.accepted = t.accepted, true })
	if id == "" || again {
		return err
	}
	return s.report(ctx, m, id, core.Accepted{Estimate: wire.Milliseconds(p.EstimatedMs)}, s.foreign(m, wire.AcceptedShape.Strip(m.Content())))
}

// taskProgress is a piece of what the agent says on the way to its answer.
func (s *session) taskProgress(ctx context.Context, m wire.Message, p wire.Progress) error {
	bodies, err := p.Bodies()
	if err != nil {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_progress: payload: "+core.AsFault(err).Message)
	}
	for _, b := range bodies {
		if !wire.AgentMaySend(b.Kind()) {
			s.hub.Count("parallax.refused." + b.Kind().String())
			return s.refuse(ctx, m.ID, wire.CodeUnsupported, "task_progress: payload: an agent of this dialect does not say "+b.Kind().String()+": leave it out, or fail the task")
		}
	}
	foreign := s.foreign(m, p.Unknown)
	if len(bodies) == 0 {
		if p.Unknown == nil {
			return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_progress: payload: nothing is said: send text, thinking, toolCall, toolState, toolResult, usage, file or session")
		}
		bodies = []core.Body{core.ForeignFrame{Dialect: Dialect, Name: wire.TypeTaskProgress}}
	}

	var first, again bool
	var missing wire.Count
	id, err := s.find(ctx, m, p.TaskRef, func(t *holding) {
		if p.Seq > 0 {
			again = p.Seq <= t.seq
			if p.Seq > t.seq+1 {
				missing, t.over = t.seq+1, true
			}
			t.seq = max(t.seq, p.Seq)
		}
		first = !t.accepted
		t.accepted = true
		t.streamed = t.streamed || p.Text != nil
		t.counted = t.counted || p.Usage != nil
	})
	switch {
	case id == "":
		return err
	case missing > 0:
		return s.torn(ctx, m, id, p, missing)
	case again:
		s.hub.Count("parallax.ignored.duplicate")
		return nil
	}
	if first {
		if err := s.report(ctx, m, id, core.Accepted{}, nil); err != nil {
			return err
		}
	}
	for i, b := range bodies {
		f := foreign
		if i > 0 {
			f = nil
		}
		if err := s.report(ctx, m, id, b, f); err != nil {
			return err
		}
	}
	return nil
}

// torn ends a task whose progress has a hole: an answer that lacks a piece must
// not pass for whole.
func (s *session) torn(ctx context.Context, m wire.Message, id core.TaskID, p wire.Progress, missing wire.Count) error {
	text := fmt.Sprintf("task_progress: payload.seq: %d came where %d was due: count the progress of a task from 1, without holes", p.Seq, missing)
	if err := s.report(ctx, m, id, core.Failed{Fault: core.NewFault(core.CodeInternal, "a part of the answer is missing: progress %d of the agent never came", missing)}, nil); err != nil {
		return err
	}
	if err := s.refuse(ctx, m.ID, wire.CodeInvalidMessage, text); err != nil {
		return err
	}
	return s.send(ctx, wire.TypeTaskCancelled, wire.TaskCancelled{TaskRef: wire.TaskRef{TaskID: p.TaskID, ExecutionID: p.ExecutionID}, Reason: "progress_lost"})
}

// taskResult is the answer.
func (s *session) taskResult(ctx context.Context, m wire.Message, p wire.TaskResult) error {
	switch p.Status {
	case "", wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled:
	default:
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "task_result: payload.status: send completed, failed or cancelled, not "+wire.Shorten(p.Status))
	}
	var first, streamed, counted bool
	id, err := s.find(ctx, m, p.TaskRef, func(t *holding) {
		first, streamed, counted = !t.accepted, t.streamed, t.counted
		t.accepted, t.over = true, true
	})
	if id == "" {
		return err
	}
	s.refuseSaid(p.Metadata)
	bodies := p.Bodies(streamed, counted)
	if first {
		bodies = append([]core.Body{core.Accepted{}}, bodies...)
	}
	return s.reportAll(ctx, m, id, bodies, s.foreign(m, wire.ResultShape.Strip(m.Content())))
}

// taskError says why there is no answer.
func (s *session) taskError(ctx context.Context, m wire.Message, p wire.TaskError) error {
	var first, streamed, counted bool
	id, err := s.find(ctx, m, p.TaskRef, func(t *holding) {
		first, streamed, counted = !t.accepted, t.streamed, t.counted
		t.over = true
	})
	if id == "" {
		return err
	}
	s.refuseSaid(p.Metadata)
	bodies := p.Bodies(streamed, counted)
	if first && len(bodies) > 1 { // an error alone may be a rejection
		bodies = append([]core.Body{core.Accepted{}}, bodies...)
	}
	return s.reportAll(ctx, m, id, bodies, wire.WithCode(s.foreign(m, wire.ErrorShape.Strip(m.Content())), p.End()))
}

// refuseSaid counts what the metadata of an end says that agents do not say. It
// is no reason to lose the end.
func (s *session) refuseSaid(m wire.ResultMetadata) {
	for _, b := range m.Bodies() {
		if !wire.AgentMaySend(b.Kind()) {
			s.hub.Count("parallax.refused." + b.Kind().String())
		}
	}
}

// find returns the task that a message of its agent is about, after changing the
// holding; "" if the message is to be left alone: because the task is none of the
// agent's, which the agent is told, or because the agent ended it before.
func (s *session) find(ctx context.Context, m wire.Message, a wire.TaskRef, change func(*holding)) (core.TaskID, error) {
	id := core.TaskID(a.TaskID)
	s.mu.Lock()
	t := s.tasks.tasks[id]
	switch {
	case t == nil:
	case t.over:
		s.mu.Unlock()
		s.hub.Count("parallax.ignored.late")
		return "", nil
	case a.ExecutionID != "" && a.ExecutionID != t.execution:
		t = nil
	default:
		change(t)
		if t.over {
			s.tasks.ends(id, t)
		}
	}
	s.mu.Unlock()
	if t == nil {
		return "", s.notHeld(ctx, m, a)
	}
	return id, nil
}

func (s *session) notHeld(ctx context.Context, m wire.Message, a wire.TaskRef) error {
	what := fmt.Sprintf("task %q", wire.Shorten(a.TaskID))
	if a.TaskID == "" {
		what = "a task without taskId"
	} else if a.ExecutionID != "" {
		what += fmt.Sprintf(" in execution %q", wire.Shorten(a.ExecutionID))
	}
	return s.refuse(ctx, m.ID, wire.CodeTaskNotHeld, m.Type+": "+what+" is not this connection's: send the taskId and executionId of a task that it was given and has not ended")
}

// reportAll tells the hub what an end of the agent says. What is kept for a peer of
// the same dialect goes with the end itself.
func (s *session) reportAll(ctx context.Context, m wire.Message, id core.TaskID, bodies []core.Body, foreign *core.Foreign) error {
	last := len(bodies) - 1
	for _, b := range bodies[:last] {
		if err := s.report(ctx, m, id, b, nil); err != nil {
			return err
		}
	}
	return s.report(ctx, m, id, bodies[last], foreign)
}

// report tells the hub what the agent said. That the task has ended meanwhile is
// nothing to tell the agent: the hub counts it.
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
