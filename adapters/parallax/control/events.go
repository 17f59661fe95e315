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

// eventView is an event of an execution. Its types are those of the control plane;
// progress is everything that it has no type for, as the hub tells it.
type eventView struct {
	ExecutionID core.TaskID `json:"executionId"`
	Type        string      `json:"type"`
	Data        any         `json:"data"`
	Timestamp   time.Time   `json:"timestamp"`
}

// by names the agent that an event is about.
type by struct {
	AgentID core.AgentID `json:"agentId"`
	Attempt int          `json:"attempt,omitempty"`
	Error   string       `json:"error,omitempty"`
}

// viewsOf is what the control plane says of an event of a task.
func viewsOf(t *task.Task, e core.Event) []eventView {
	say := func(kind string, data any) eventView { return eventView{t.ID(), kind, data, e.At} }
	switch b := e.Body.(type) {
	case core.Opened:
		return []eventView{say("started", struct {
			To core.Address `json:"to"`
		}{b.Request.To})}
	case core.Assigned:
		return []eventView{say("agent_started", by{AgentID: b.Agent, Attempt: b.Attempt})}
	case core.Retrying:
		return []eventView{say("agent_failed", by{AgentID: t.Agent(), Error: b.Fault.Message})}
	case core.Done:
		a := t.Answer()
		result, err := wire.EncodeResult(a)
		if err != nil {
			result = json.RawMessage("null") // what the hub keeps is JSON
		}
		return []eventView{say("agent_completed", by{AgentID: t.Agent()}), say(statusCompleted, struct {
			Result json.RawMessage `json:"result"`
		}{result})}
	case core.Failed:
		return []eventView{say(statusFailed, problem{b.Fault.Message, wire.CodeOf(b.Fault)})}
	case core.Cancelled:
		return []eventView{say(statusCancelled, struct {
			Reason string `json:"reason"`
		}{b.Reason})}
	}
	raw, err := e.MarshalJSON()
	if err != nil {
		return nil // what the hub keeps is JSON
	}
	return []eventView{say("progress", json.RawMessage(raw))}
}

// gapOf says that events from one number to another are no longer kept.
func gapOf(t *task.Task, from, to uint64, at time.Time) eventView {
	return eventView{t.ID(), "gap", struct {
		From uint64 `json:"from"`
		To   uint64 `json:"to"`
	}{from, to}, at.UTC()}
}

// getEvents lists what happened so far.
func (c *Control) getEvents(k call) error {
	t, err := c.task(k)
	if err != nil {
		return err
	}
	all, told := []eventView{}, uint64(0)
	for _, e := range t.Events() {
		if e.Seq > told+1 {
			all = append(all, gapOf(t, told+1, e.Seq-1, e.At))
		}
		told = e.End()
		all = append(all, viewsOf(t, e)...)
	}
	c.answer(k.w, http.StatusOK, struct {
		Events []eventView `json:"events"`
	}{all})
	return nil
}

// How often a silent stream says that it lives, and for how long a reader may take
// nothing before it is cut off.
const (
	keepAlive = 15 * time.Second
	writeTime = 30 * time.Second
)

// streamEvents tells the events of an execution as they come, until its end. Last-Event-ID
// resumes.
func (c *Control) streamEvents(k call) error {
	t, err := c.task(k)
	if err != nil {
		return err
	}
	from, err := core.ParseCursor(k.r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	s := c.session(k)
	defer leave(s)
	ended := t.State() == task.Ended
	events := t.Events()
	if err := s.Watch(t, from, nil); err != nil {
		return err
	}
	if ended && from == events[len(events)-1].Cursor() {
		k.w.WriteHeader(http.StatusNoContent) // so that an EventSource stops coming back
		return nil
	}
	header(k.w, "text/event-stream")
	k.w.Header().Set("X-Accel-Buffering", "no")
	k.w.WriteHeader(http.StatusOK)
	out := &sse{w: k.w, rc: http.NewResponseController(k.w)}
	_ = out.rc.SetReadDeadline(time.Time{}) // nothing more is read
	out.say("", eventView{t.ID(), "connected", struct{}{}, time.Now().UTC()})
	for done := false; !done && out.err == nil; {
		b, silent, err := next(k.r.Context(), s)
		switch {
		case err != nil:
			return nil // the client has gone, or the hub stops: the stream is cut, and can be resumed
		case silent:
			out.write(": alive\n\n")
		case b.Gap != nil:
			out.say("", gapOf(t, b.Gap.From, b.Gap.To, time.Now()))
		}
		for _, e := range b.Events {
			views := viewsOf(t, e)
			for i, v := range views {
				cursor := ""
				if i == len(views)-1 { // an event counts as told once all of it is
					cursor = e.Cursor().String()
				}
				out.say(cursor, v)
			}
			done = done || e.Body.Kind().Ends()
		}
		out.flush()
	}
	return nil
}

// next waits for what a session reads next, and reports silent when nothing came for
// so long that a sign of life is due.
func next(ctx context.Context, s *hub.Session) (b hub.Batch, silent bool, err error) {
	window, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	b, err = s.Next(window)
	if err != nil && window.Err() != nil && ctx.Err() == nil {
		return b, true, nil
	}
	return b, false, err
}

// sse writes server-sent events until a write fails.
type sse struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error
}

func (o *sse) say(cursor string, v eventView) {
	data, err := json.Marshal(v)
	if err != nil {
		o.err = err
		return
	}
	if cursor != "" {
		o.write("id: " + cursor + "\n")
	}
	o.write("event: " + v.Type + "\ndata: ")
	o.write(string(data))
	o.write("\n\n")
}

func (o *sse) write(text string) {
	if o.err == nil {
		_ = o.rc.SetWriteDeadline(time.Now().Add(writeTime)) // not every ResponseWriter has one
		_, o.err = o.w.Write([]byte(text))
	}
}

func (o *sse) flush() {
	if o.err == nil {
		o.err = o.rc.Flush()
	}
}
