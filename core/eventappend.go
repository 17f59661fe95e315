package core

import (
	"fmt"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// MarshalJSON writes the stable JSON form of the event.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// AppendJSON appends the stable JSON form of the event to b. It writes the kinds that every
// task has without reflection, which a journal does all the time, byte for byte as
// encoding/json does.
func (e Event) AppendJSON(b []byte) ([]byte, error) {
	if e.Body == nil {
		return nil, fmt.Errorf("event %d has no body", e.Seq)
	}
	w := strictjson.Writer{B: append(b, '{'), Standard: true}
	w.Count("seq", e.Seq)
	if e.Merged != nil {
		w.Value("merged", e.Merged)
	}
	if e.Epoch != 0 {
		w.Number("epoch", int64(e.Epoch))
	}
	w.Time("at", e.At)
	w.Text("kind", e.Body.Kind().String())
	appendBody(&w, "body", e.Body)
	if e.Foreign != nil {
		w.Value("foreign", e.Foreign)
	}
	w.End()
	return w.B, w.Err
}

func appendBody(w *strictjson.Writer, key string, body Body) {
	switch v := body.(type) {
	case Opened:
		w.Begin(key)
		appendOpened(w, v)
		w.End()
	case Assigned:
		w.Begin(key)
		w.Text("agent", string(v.Agent))
		w.Number("attempt", int64(v.Attempt))
		w.Some("dialect", v.Dialect)
		w.End()
	case Accepted:
		w.Begin(key)
		if v.Estimate != 0 {
			w.Number("estimate_ns", int64(v.Estimate))
		}
		w.End()
	case Thinking:
		w.Begin(key)
		w.Text("text", v.Text)
		w.End()
	case Text:
		w.Begin(key)
		w.Text("text", v.Text)
		w.End()
	case Done:
		w.Begin(key)
		w.Some("text", v.Text)
		w.Raw("data", v.Data)
		w.Flag("truncated", v.Truncated)
		if v.TokensUsed != 0 {
			w.Number("tokens_used", v.TokensUsed)
		}
		w.End()
	default:
		w.Value(key, body)
	}
}

func appendOpened(w *strictjson.Writer, o Opened) {
	w.Text("task", string(o.Task))
	w.Begin("from")
	w.Text("id", o.From.ID)
	w.Some("dialect", o.From.Dialect)
	w.Flag("authenticated", o.From.Authenticated)
	w.Flag("operator", o.From.Operator)
	w.End()
	w.Begin("request")
	appendRequest(w, o.Request)
	w.End()
	w.Number("hops", int64(o.Hops))
	if len(o.Chain) > 0 {
		w.Value("chain", o.Chain)
	}
	if o.Trace != (Trace{}) {
		w.Value("trace", o.Trace)
	}
	w.Flag("default_deadline", o.DefaultDeadline)
	w.Some("key", o.Key) // last, where a journal looks for it
}

func appendRequest(w *strictjson.Writer, r Request) {
	w.Text("intent", r.Intent.String())
	w.Text("to", r.To.String())
	w.Some("thread", string(r.Thread))
	w.Text("content", r.Content)
	w.Raw("data", r.Data)
	if len(r.Attachments) > 0 {
		w.Value("attachments", r.Attachments)
	}
	if len(r.History) > 0 {
		w.Value("history", r.History)
	}
	w.Raw("context", r.Context)
	w.Some("domain", r.Domain)
	if r.Priority != 0 {
		w.Text("priority", r.Priority.String())
	}
	if r.MaxTokens != 0 {
		w.Number("max_tokens", r.MaxTokens)
	}
	if !r.Deadline.IsZero() {
		w.Time("deadline", r.Deadline)
	}
	w.Flag("report_back", r.ReportBack)
	w.Some("cause", string(r.Cause))
	if r.Notice != nil {
		w.Value("notice", r.Notice)
	}
	if r.Foreign != nil {
		w.Value("foreign", r.Foreign)
	}
}
