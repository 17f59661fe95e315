package conversation

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// recallEvents is how much of a conversation is told to a reader that does not say
// from where.
const recallEvents = 50

// recall gathers the turns before the one from which the reader is told everything in
// full, and sets the place where that begins. Ended turns are told as events. So are
// those that still run: their rest follows as events when they end. Existing clients
// stop at the first done of a stream, which is therefore that of their own message.
func (r *reader) recall(ctx context.Context) error {
	s := r.service
	turns, err := s.hub.LatestTurns(ctx, r.principal, core.ThreadID(r.key), recallEvents)
	if err != nil {
		return err
	}
	begin := s.beginning(turns, r.principal)
	for _, t := range turns[:begin] {
		r.look(t.Agent())
		events := t.Events()
		last := events[len(events)-1]
		r.from = core.PlaceBehind(t.ID(), last)
		for _, e := range ledgerOf(r.key, t, events, s.opts.MaxMessageBytes) {
			m := e.message()
			if len(r.running) > 0 {
				m.EventId = "" // whoever goes on from here would miss how those turns end
			}
			r.history = append(r.history, m)
		}
		if !last.Body.Kind().Ends() {
			r.running = append(r.running, running{&apart{t, r.from}, events})
		}
	}
	r.history = r.history[max(0, len(r.history)-recallEvents):]
	if begin < len(turns) {
		r.look(turns[begin].Agent())
		r.from = core.Place{Task: turns[begin].ID()}
	}
	return nil
}

// tellHistory tells what recall has gathered.
func (r *reader) tellHistory(ctx context.Context) error {
	for _, m := range r.history {
		if err := r.say(ctx, m); err != nil {
			return err
		}
	}
	for _, t := range r.running {
		if err := r.followApart(ctx, t.apart, t.said); err != nil {
			return err
		}
	}
	r.history, r.running = nil, nil
	return nil
}

// running is a turn that had not ended when the reader came, and what it had said.
type running struct {
	*apart
	said []core.Event
}

// beginning returns the index of the turn with which a reader begins that does not say
// from where: its own latest message, if that runs or no stream has told the answer
// to its end, else the first that runs behind that message.
func (s *Service) beginning(turns []*task.Task, reader core.Principal) int {
	begin := len(turns)
	for i := len(turns) - 1; i >= 0; i-- {
		t := turns[i]
		running := t.State() != task.Ended
		if t.From().ID == reader.ID {
			if running || s.unread.has(t.ID()) {
				return i
			}
			return begin
		}
		if running {
			begin = i
		}
	}
	return begin
}

// apart is a turn that is told apart, and where the rest of it begins.
type apart struct {
	task *task.Task
	from core.Place
}

// followApart follows a turn that still runs beside those that are told in full. said
// is what it said so far: the tool calls in it that wait for a decision are told again.
func (r *reader) followApart(ctx context.Context, turn *apart, said []core.Event) error {
	waiting := map[string]bool{}
	for _, a := range r.service.hub.Approvals(r.principal) {
		if a.Task == turn.task.ID() {
			waiting[a.ID] = true
		}
	}
	for _, e := range said {
		if a, ok := e.Body.(core.ApprovalRequested); ok && waiting[a.ID] {
			if err := r.sayApart(ctx, turn, e); err != nil {
				return err
			}
		}
	}
	r.apart.Add(1)
	return r.session.Watch(turn.task, turn.from.Cursor, turn)
}

// hearApart tells what is new in a turn that is told apart: a call that waits for a
// decision at once, the rest when it ends.
func (r *reader) hearApart(ctx context.Context, turn *apart, events []core.Event) error {
	for _, e := range events {
		if e.Body.Kind() == core.KindApprovalRequested {
			if err := r.sayApart(ctx, turn, e); err != nil {
				return err
			}
		}
	}
	if !events[len(events)-1].Body.Kind().Ends() {
		return nil
	}
	defer r.apart.Add(-1)
	for _, e := range ledgerOf(r.key, turn.task, turn.task.Events(), r.service.opts.MaxMessageBytes) {
		if e.place.Compare(turn.from) <= 0 {
			continue
		}
		m := e.message()
		m.EventId = "" // the stream is beyond it
		if err := r.say(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// sayApart tells an event of a turn as it is told in full, but for the place.
func (r *reader) sayApart(ctx context.Context, turn *apart, e core.Event) error {
	for _, m := range r.service.opts.tell(r.key, turn.task, []core.Event{e}, r.service.count) {
		m.EventId = ""
		if err := r.say(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
