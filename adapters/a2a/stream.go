package a2a

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// subscribe is SubscribeToTask. Without a cursor the stream begins with the whole task; with
// one it continues after the item that had the cursor (see [wire.CursorExtension]).
func (c *call) subscribe(params strictjson.Value) (json.RawMessage, error) {
	r, t, err := c.named(params)
	if err != nil {
		return nil, err
	}
	cursor, err := r.Cursor()
	if err != nil {
		return nil, err
	}
	if cursor == "" { // as clients of server-sent events say it, which may have no body
		cursor = c.r.Header.Get("Last-Event-ID")
	}
	s := c.connect()
	defer leave(s)
	if cursor != "" {
		return nil, c.resume(s, t, cursor)
	}
	if t.State() == task.Ended {
		return nil, wire.NewError(wire.ReasonUnsupportedOperation, "task "+r.ID+" has ended: GetTask returns it")
	}
	whole, tr, at := c.snapshot(t)
	return nil, c.stream(s, t, whole, tr, at)
}

// place is a position in the items of a task: after the first skip items of the event that
// follows the cursor.
type place struct {
	after core.Cursor
	skip  int
}

// String returns the text that clients send back.
func (p place) String() string {
	if p.skip == 0 {
		return p.after.String()
	}
	return p.after.String() + ":" + strconv.Itoa(p.skip)
}

func parsePlace(text string) (place, error) {
	at, skip, more := strings.Cut(text, ":")
	cursor, err := core.ParseCursor(at)
	p := place{after: cursor}
	if more && err == nil {
		if p.skip, err = strconv.Atoi(skip); err != nil || p.skip < 1 {
			err = core.NewFault(core.CodeInvalid, "%.64q is not a cursor: send one that this hub gave", text)
		}
	}
	return p, err
}

// stream sends a snapshot of a task and all that follows it.
func (c *call) stream(s *hub.Session, t *task.Task, whole wire.Task, tr *translator, at core.Cursor) error {
	f := c.newFeed(tr, place{after: at})
	if !tr.ended {
		if err := c.watch(s, t, at); err != nil {
			return err
		}
	}
	f.out.begin(f.cursors)
	if f.cursors {
		whole.Metadata = withCursor(whole.Metadata, f.at)
	}
	f.out.put(&wire.StreamResponse{Task: &whole})
	return c.relay(s, f)
}

// resume sends what follows a place.
func (c *call) resume(s *hub.Session, t *task.Task, cursor string) error {
	from, err := parsePlace(cursor)
	if err != nil {
		return err
	}
	if err := c.watch(s, t, from.after); err != nil {
		return err
	}
	tr := newTranslator(t)
	events := t.Events()
	for _, e := range events {
		if e.Cursor().Compare(from.after) > 0 {
			break
		}
		tr.translate(e)
	}
	f := c.newFeed(tr, from)
	f.cursors = true
	f.out.begin(f.cursors)
	if last := events[len(events)-1]; last.Body.Kind().Ends() && last.Cursor() == from.after && from.skip == 0 {
		tr.ended = true // nothing is missing
	}
	return c.relay(s, f)
}

// relay sends the items of a task as they come, until its end, until the client closes the
// connection or stops reading, or until the hub stops. A stream without a terminal state was
// cut.
func (c *call) relay(s *hub.Session, f *feed) error {
	err := f.out.flush()
	for err == nil && !f.tr.ended {
		var b hub.Batch
		var silent bool
		if b, silent, err = c.next(s); err != nil {
			return err // the client has gone, or the hub stopped
		}
		switch {
		case silent:
			f.out.alive()
		case b.Gap != nil:
			// What is gone cannot be told, so the stream begins again.
			return core.NewFault(core.CodeConflict, "items %d to %d of the task are no longer kept: subscribe without a cursor", b.Gap.From, b.Gap.To)
		case b.Question != nil:
			f.question(*b.Question)
		}
		for _, e := range b.Events {
			f.event(e)
		}
		err = f.out.flush()
	}
	if err != nil {
		c.server.hub.Count("a2a.cut")
		c.server.opts.Log.Info("a stream was cut off", "path", c.r.URL.Path, "principal", c.from.ID, "error", err)
	}
	return nil
}

// next waits for the next news of the session. It reports silent if there was none for
// KeepAlive.
func (c *call) next(s *hub.Session) (b hub.Batch, silent bool, err error) {
	window, cancel := context.WithTimeout(c.r.Context(), c.server.opts.KeepAlive)
	defer cancel()
	b, err = s.Next(window)
	if err != nil && window.Err() != nil && c.r.Context().Err() == nil {
		return b, true, nil
	}
	return b, false, err
}

// outlet takes the items of a stream to a client.
type outlet interface {
	// begin sends the head of the answer, which says whether the items have cursors.
	begin(cursors bool)
	put(*wire.StreamResponse)
	// alive says that there is nothing to say.
	alive()
	// flush sends what was put. Its error is that the client has gone or reads nothing.
	flush() error
}

// feed puts the items of a task into an outlet.
type feed struct {
	out     outlet
	tr      *translator
	at      place // after the last item
	cursors bool
}

func (c *call) newFeed(tr *translator, at place) *feed {
	if c.items == nil {
		c.items = newEvents(c)
	}
	return &feed{out: c.items, tr: tr, at: at, cursors: c.extends(wire.CursorExtension)}
}

// event puts the items of an event, without those that the client has. The last has the place
// of the event, the others places before it.
func (f *feed) event(e core.Event) {
	items := f.tr.translate(e)
	for i := f.at.skip; i < len(items); i++ {
		if f.cursors {
			at := place{after: e.Cursor()}
			if i < len(items)-1 {
				at = place{f.at.after, i + 1}
			}
			mark(&items[i], at)
		}
		f.out.put(&items[i])
	}
	f.at = place{after: e.Cursor()}
}

// question puts the items of a question, which is no event: they have the place of the last
// one.
func (f *feed) question(u question.Update) {
	items := f.tr.question(u)
	for i := range items {
		if f.cursors {
			mark(&items[i], f.at)
		}
		f.out.put(&items[i])
	}
}

// mark adds a place to the metadata of an item.
func mark(item *wire.StreamResponse, at place) {
	switch {
	case item.ArtifactUpdate != nil:
		item.ArtifactUpdate.Metadata = withCursor(item.ArtifactUpdate.Metadata, at)
	case item.StatusUpdate != nil:
		item.StatusUpdate.Metadata = withCursor(item.StatusUpdate.Metadata, at)
	}
}

// withCursor returns metadata with a cursor.
func withCursor(metadata json.RawMessage, at place) json.RawMessage {
	member := `{"` + wire.CursorExtension + `":"` + at.String() + `"`
	if len(metadata) <= 2 { // nothing, or {}
		return json.RawMessage(member + "}")
	}
	return append([]byte(member+","), metadata[1:]...)
}
