package conversation

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// maxHistoryEvents is how many events of the history a client gets that does not say
// where to resume.
const maxHistoryEvents = 50

// earlierTurn is a turn that runs when the client connects, from before the message with
// which the live events begin. Its rest is sent as history when it ends: existing clients
// stop at the first done of a stream, which must be that of their own message.
type earlierTurn struct {
	task *task.Task
	from core.Place   // after what the history has of it
	sent []core.Event // the events up to there
}

// loadHistory loads the turns before the first live one, and sets where the live events
// begin.
func (r *reader) loadHistory(ctx context.Context) error {
	turns, err := r.service.hub.LatestTurns(ctx, r.principal, core.ThreadID(r.key), maxHistoryEvents)
	if err != nil {
		return err
	}
	live := r.firstLive(ctx, turns)
	for _, t := range turns[:live] {
		r.watchQuestions(t.Agent())
		events := t.Events()
		last := events[len(events)-1]
		r.from = core.PlaceAfter(t.ID(), last)
		for _, e := range historyOf(r.key, t, events, r.service.opts.MaxMessageBytes) {
			m := e.message()
			if len(r.running) > 0 {
				m.EventId = "" // a client that resumed here would miss the end of those turns
			}
			r.history = append(r.history, m)
		}
		if !last.Body.Kind().Ends() {
			r.running = append(r.running, &earlierTurn{t, r.from, events})
		}
	}
	r.history = r.history[max(0, len(r.history)-maxHistoryEvents):]
	if live < len(turns) {
		r.watchQuestions(turns[live].Agent())
		r.from = core.Place{Task: turns[live].ID()}
	}
	return nil
}

// firstLive returns the index of the first turn that is streamed live: the client's latest
// message, if that runs or its answer is unread, else the first turn after that message
// that runs.
func (r *reader) firstLive(ctx context.Context, turns []*task.Task) int {
	live := len(turns)
	for i := len(turns) - 1; i >= 0; i-- {
		t := turns[i]
		running := t.State() != task.Ended
		if t.From().ID == r.principal.ID {
			if running || r.service.isUnread(ctx, r.principal, t.ID()) {
				return i
			}
			return live
		}
		if running {
			live = i
		}
	}
	return live
}

// sendHistory sends what loadHistory has loaded, and follows the turns that still run.
func (r *reader) sendHistory(ctx context.Context) error {
	for _, m := range r.history {
		if err := r.send(ctx, m); err != nil {
			return err
		}
	}
	for _, turn := range r.running {
		if err := r.follow(ctx, turn); err != nil {
			return err
		}
	}
	r.history, r.running = nil, nil
	return nil
}

// follow watches an earlier turn. It sends its pending approvals first.
func (r *reader) follow(ctx context.Context, turn *earlierTurn) error {
	pending := map[string]bool{}
	if r.service.hub.MayDecide(r.principal, turn.task) {
		for _, a := range turn.task.Approvals() {
			pending[a.ID] = true
		}
	}
	for _, e := range turn.sent {
		if a, ok := e.Body.(core.ApprovalRequested); ok && pending[a.ID] {
			if err := r.sendApproval(ctx, turn, e); err != nil {
				return err
			}
		}
	}
	turn.sent = nil
	r.earlier.Add(1)
	return r.session.Watch(turn.task, turn.from.Cursor, turn)
}

// sendEarlier sends new events of an earlier turn: requests for approval at once, the rest
// when the turn ends. Its messages have no event id: the stream is beyond them.
func (r *reader) sendEarlier(ctx context.Context, turn *earlierTurn, events []core.Event) error {
	for _, e := range events {
		if e.Body.Kind() == core.KindApprovalRequested {
			if err := r.sendApproval(ctx, turn, e); err != nil {
				return err
			}
		}
	}
	if !events[len(events)-1].Body.Kind().Ends() {
		return nil
	}
	defer r.earlier.Add(-1)
	ctx = r.frames.Telling(ctx, turn.task.ID(), false, events[len(events)-1].Body.Kind())
	for _, e := range historyOf(r.key, turn.task, turn.task.Events(), r.service.opts.MaxMessageBytes) {
		if e.place.Compare(turn.from) <= 0 {
			continue
		}
		m := e.message()
		m.EventId = ""
		if err := r.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) sendApproval(ctx context.Context, turn *earlierTurn, e core.Event) error {
	ctx = r.frames.Telling(ctx, turn.task.ID(), false, e.Body.Kind())
	for _, m := range r.liveMessages(turn.task, []core.Event{e}) {
		m.EventId = ""
		if err := r.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
