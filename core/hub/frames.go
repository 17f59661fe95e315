package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

// TaskFrames are the frames of one task.
type TaskFrames struct {
	Frames []frame.Frame `json:"frames"`
	// Missing says what is not among them; "" if nothing is known to be missing.
	Missing string `json:"missing,omitempty"`
}

// Frames returns the frames of a task that the principal may read, of all hubs, without secrets, in
// the order of their time. It waits and fails as [Hub.Task] does, and returns a conflict Fault where
// no frames are kept. A frame that also belongs to a task which the principal may not read is left
// out.
func (h *Hub) Frames(ctx context.Context, p core.Principal, id core.TaskID) (TaskFrames, error) {
	t, err := h.Task(ctx, p, id)
	if err != nil {
		return TaskFrames{}, err
	}
	about := framesOf{id, t.Status().OpenedAt}
	found, err := h.framesHere(ctx, p, about)
	answers, missing := framesMethod.AskAll(ctx, h, p, about)
	_, _, gone := h.node.Names()
	gone = slices.DeleteFunc(gone, func(name string) bool { return about.OpenedAt.After(h.node.State(name).GoneSince) })
	if len(answers) == 0 && len(missing) == 0 && len(gone) == 0 || err != nil && !errors.Is(err, noFrames) {
		return found, err
	}
	var notes []string
	note := func(hub, text string) {
		if text != "" {
			notes = append(notes, "hub "+hub+": "+text)
		}
	}
	if err != nil {
		found.Missing = noFrames.Message
	}
	note(h.Name(), found.Missing)
	for _, a := range answers {
		for _, f := range a.Out.Frames {
			f.Hub = a.Hub
			found.Frames = append(found.Frames, f)
		}
		note(a.Hub, a.Out.Missing)
	}
	for _, hub := range missing {
		note(hub, "it is not here, or did not answer or keeps no frames")
	}
	for _, hub := range gone {
		note(hub, "it is gone, and so are the frames that it kept in memory")
	}
	if len(found.Frames) == 0 && err != nil {
		return TaskFrames{}, err
	}
	slices.SortStableFunc(found.Frames, func(a, b frame.Frame) int { return a.At.Compare(b.At) })
	found.Missing = strings.Join(notes, "; ")
	return found, nil
}

var noFrames = core.NewFault(core.CodeConflict, "this hub keeps no frames: set frames.keep to the number of bytes to keep of each connection, such as 1000000")

// framesOf names a task whose frames are asked for, which the principal may read.
type framesOf struct {
	Task     core.TaskID `json:"task"`
	OpenedAt time.Time   `json:"opened_at,omitzero"`
}

// framesMethod asks a hub for the frames of a task.
const framesMethod rpc.Method[framesOf, TaskFrames] = "frames"

// framesHere returns the frames of a task at this hub.
func (h *Hub) framesHere(ctx context.Context, p core.Principal, of framesOf) (TaskFrames, error) {
	if h.frames == nil {
		return TaskFrames{}, noFrames
	}
	var hide *redact.Redactor
	if h.redact != nil {
		hide = h.redact()
	}
	found, withheld, private := TaskFrames{Frames: []frame.Frame{}}, 0, 0
	readable := map[core.TaskID]bool{of.Task: true}
	for _, f := range h.frames.Of(of.Task) {
		if f.Private && !h.MayOperate(p) {
			private++
			continue
		}
		if !h.mayReadAll(ctx, p, f.Tasks, readable) {
			withheld++
			continue
		}
		f.Frame = hide.JSON(f.Frame)
		found.Frames = append(found.Frames, f)
	}
	var missing []string
	if since := h.frames.Since(); of.OpenedAt.Before(since) {
		missing = append(missing, fmt.Sprintf("frames from before %s are gone: frames are kept in memory, and this hub started then", since.UTC().Format(time.RFC3339)))
	}
	if dropped := h.frames.Dropped(); of.OpenedAt.Before(dropped) {
		missing = append(missing, fmt.Sprintf("frames from before %s may have given way to newer ones: a larger frames.keep keeps more", dropped.UTC().Format(time.RFC3339)))
	}
	if withheld > 0 {
		missing = append(missing, fmt.Sprintf("frames that also belong to tasks you may not read: %d", withheld))
	}
	if private > 0 {
		missing = append(missing, fmt.Sprintf("calls of tools and their answers, which only operators see, since they may name what you may not see: %d", private))
	}
	found.Missing = strings.Join(missing, "; ")
	return found, nil
}

// mayReadAll reports whether the principal may read all tasks. known has those that it was asked for
// before.
func (h *Hub) mayReadAll(ctx context.Context, p core.Principal, all []core.TaskID, known map[core.TaskID]bool) bool {
	for _, id := range all {
		may, asked := known[id]
		if !asked {
			t, err := h.findHere(ctx, id)
			may = err == nil && h.MayRead(p, t) && (t.From().ID != "" || h.MayOperate(p)) // as the door
			known[id] = may
		}
		if !may {
			return false
		}
	}
	return true
}

// told is what a session whose frames are kept is being told: one event at a time, so that the
// frames for it are known.
type told struct {
	delivery *frame.Delivery
	rest     Batch // the events that come next
	// answered is the task whose end is the result of a tool that comes next; nil for another.
	answered *task.Task
}

// pollEach is poll for a session whose frames are kept.
func (s *Session) pollEach() (b Batch, found bool, err error) {
	t := s.told
	t.delivery.End()
	b, t.rest, t.answered = t.rest, Batch{}, nil
	if len(b.Events) == 0 {
		if b, found, err = s.pollBatch(); err != nil || !found {
			return b, found, err
		}
	}
	switch {
	case b.Task != nil && len(b.Events) > 0:
		if len(b.Events) > 1 {
			t.rest = b
			t.rest.Events, b.Events = b.Events[1:], b.Events[:1:1]
		}
		t.delivery.Begin(b.Task.ID(), b.Role == task.Agent, b.Events[0])
		if b.Role == task.Agent && b.Events[0].Body.Kind() == core.KindAssigned {
			t.delivery.Repeats(b.Task.Request().History)
		}
	case b.Tool != nil && t.answered != nil:
		log := t.answered.Log()
		t.delivery.Begin(t.answered.ID(), false, log.Last())
	case b.Tool != nil:
		if calls := s.callsFor(); len(calls) == 1 {
			t.delivery.BeginAnswer(calls[0])
		}
	}
	return b, true, nil
}

// Told says that what Next returned last has been sent: for a caller that sends other things before
// it calls Next again.
func (s *Session) Told() {
	if s.told != nil {
		s.told.delivery.End()
	}
}

// Refused says that the peer is not told of what Next returned last, or is told something else in its
// place: its dialect has no words for it. The caller calls it before it sends anything.
func (s *Session) Refused() {
	if s.told != nil {
		s.told.delivery.Refuse()
	}
}

// noteEvent says that the frame under way is an event of the task: the last one of its kind, unless it
// was refused.
func (s *Session) noteEvent(id core.TaskID, agent bool, kind core.Kind, refused bool) {
	var seq uint64
	if t := s.hub.tasks.Get(id); t != nil && !refused {
		log := t.Log()
		for e := range log.Backward() {
			if e.Body.Kind() == kind {
				seq = e.Seq
				break
			}
		}
	}
	s.identity.Frames.Event(id, agent, kind, seq, refused)
}

// noteCommand says that the frame under way is a command.
func (s *Session) noteCommand(c core.Command, o outcome, err error) {
	r, refused := s.identity.Frames, err != nil
	switch c := c.(type) {
	case *core.Open:
		if o.task != nil {
			s.noteEvent(o.task.ID(), false, core.KindOpened, refused)
		}
	case core.CallTool:
		if calls := s.callsFor(); len(calls) == 1 {
			r.Command(calls[0], c.Act().String(), refused)
		}
	default:
		if errors.Is(err, notAuthorized) || errors.Is(err, unknownTask) {
			return // the task is none of its business
		}
		if said := c.Act().Steers(); said != 0 {
			s.noteEvent(core.TaskID(c.Object()), false, said, refused)
		}
	}
}

var notAuthorized = &core.Fault{Code: core.CodeNotAuthorized}
