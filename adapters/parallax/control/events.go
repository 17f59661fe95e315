package control

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// eventView is an event of an execution. Its type is one of the control plane, or progress
// for an event that the control plane has no type for, which is in the form of the hub.
type eventView struct {
	ExecutionID core.TaskID `json:"executionId"`
	Type        string      `json:"type"`
	Data        any         `json:"data"`
	Timestamp   time.Time   `json:"timestamp"`
}

// agentData is the data of an event about an agent.
type agentData struct {
	AgentID core.AgentID `json:"agentId"`
	Attempt int          `json:"attempt,omitempty"`
	Error   string       `json:"error,omitempty"`
}

// viewsOf returns the events of the control plane for one of a task.
func viewsOf(t *task.Task, e core.Event) []eventView {
	view := func(kind string, data any) eventView { return eventView{t.ID(), kind, data, e.At} }
	switch b := e.Body.(type) {
	case core.Opened:
		return []eventView{view("started", struct {
			To core.Address `json:"to"`
		}{b.Request.To})}
	case core.Assigned:
		return []eventView{view("agent_started", agentData{AgentID: b.Agent, Attempt: b.Attempt})}
	case core.Retrying:
		return []eventView{view("agent_failed", agentData{AgentID: t.Agent(), Error: b.Fault.Message})}
	case core.Done:
		result, err := wire.EncodeResult(t.Answer())
		if err != nil {
			result = json.RawMessage("null") // the hub keeps only valid JSON
		}
		return []eventView{view("agent_completed", agentData{AgentID: t.Agent()}), view(statusCompleted, struct {
			Result json.RawMessage `json:"result"`
		}{result})}
	case core.Failed:
		return []eventView{view(statusFailed, errorBody{b.Fault.Message, wire.CodeOf(b.Fault)})}
	case core.Cancelled:
		return []eventView{view(statusCancelled, struct {
			Reason string `json:"reason"`
		}{b.Reason})}
	}
	return []eventView{view("progress", e)}
}

// gapOf returns the event for others that are no longer kept.
func gapOf(t *task.Task, from, to uint64, at time.Time) eventView {
	return eventView{t.ID(), "gap", struct {
		From uint64 `json:"from"`
		To   uint64 `json:"to"`
	}{from, to}, at.UTC()}
}

// getEvents returns the events so far.
func (c *Control) getEvents(q request) error {
	t, err := c.task(q)
	if err != nil {
		return err
	}
	all, last := []eventView{}, uint64(0)
	for _, e := range t.Events() {
		if e.Seq > last+1 {
			all = append(all, gapOf(t, last+1, e.Seq-1, e.At))
		}
		last = e.End()
		all = append(all, viewsOf(t, e)...)
	}
	c.writeJSON(q.w, http.StatusOK, struct {
		Events []eventView `json:"events"`
	}{all})
	return nil
}

const (
	keepAlive    = 15 * time.Second // between comments in a quiet stream
	writeTimeout = 30 * time.Second // after which a client that does not read is cut off
)

// streamEvents streams the events of an execution until its end. Last-Event-ID resumes.
func (c *Control) streamEvents(q request) error {
	t, err := c.task(q)
	if err != nil {
		return err
	}
	from, err := core.ParseCursor(q.r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	s := c.connect(q)
	defer disconnect(s)
	ended := t.State() == task.Ended
	events := t.Events()
	if err := s.Watch(t, from, nil); err != nil {
		return err
	}
	if ended && from == events[len(events)-1].Cursor() {
		q.w.WriteHeader(http.StatusNoContent) // an EventSource does not reconnect after it
		return nil
	}
	setHeader(q.w, "text/event-stream")
	q.w.Header().Set("X-Accel-Buffering", "no")
	q.w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(q.w)
	_ = out.SetReadDeadline(time.Time{}) // the body has been read
	text := appendEvent(nil, "", eventView{t.ID(), "connected", struct{}{}, time.Now().UTC()})
	for done := false; ; {
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every ResponseWriter has one
		if _, err := q.w.Write(text); err != nil || out.Flush() != nil || done {
			return nil
		}
		b, quiet, err := next(q.r.Context(), s)
		text = text[:0]
		switch {
		case err != nil:
			return nil // the client has gone, or the hub stops and the client can resume
		case quiet:
			text = append(text, ": alive\n\n"...)
		case b.Gap != nil:
			text = appendEvent(text, "", gapOf(t, b.Gap.From, b.Gap.To, time.Now()))
		}
		for _, e := range b.Events {
			text = appendViews(text, e, viewsOf(t, e))
			done = done || e.Body.Kind().Ends()
		}
	}
}

// appendViews appends what an event is in the stream. The last view has its cursor: a client resumes before or after
// all of them.
func appendViews(text []byte, e core.Event, views []eventView) []byte {
	for i, v := range views {
		cursor := ""
		if i == len(views)-1 {
			cursor = e.Cursor().String()
		}
		text = appendEvent(text, cursor, v)
	}
	return text
}

// next waits for a batch of a session, and reports quiet if none came for keepAlive.
func next(ctx context.Context, s *hub.Session) (b hub.Batch, quiet bool, err error) {
	window, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	b, err = s.Next(window)
	if err != nil && window.Err() != nil && ctx.Err() == nil {
		return b, true, nil
	}
	return b, false, err
}

// appendEvent appends a server-sent event.
func appendEvent(b []byte, cursor string, v eventView) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return b // the hub keeps only valid JSON
	}
	if cursor != "" {
		b = append(b, "id: "+cursor+"\n"...)
	}
	b = append(b, "event: "+v.Type+"\ndata: "...)
	return append(append(b, data...), "\n\n"...)
}
