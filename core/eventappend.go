package core

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
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
	w := jsonWriter{b: append(b, '{')}
	w.b = strconv.AppendUint(w.key("seq"), e.Seq, 10)
	if e.Merged != nil {
		w.value("merged", e.Merged)
	}
	if e.Epoch != 0 {
		w.number("epoch", int64(e.Epoch))
	}
	w.time("at", e.At)
	w.text("kind", e.Body.Kind().String())
	w.body("body", e.Body)
	if e.Foreign != nil {
		w.value("foreign", e.Foreign)
	}
	w.end()
	return w.b, w.err
}

// jsonWriter appends the members of objects.
type jsonWriter struct {
	b   []byte
	err error // the first
}

func (w *jsonWriter) body(key string, body Body) {
	switch v := body.(type) {
	case Opened:
		w.begin(key)
		w.opened(v)
		w.end()
	case Assigned:
		w.begin(key)
		w.text("agent", string(v.Agent))
		w.number("attempt", int64(v.Attempt))
		w.some("dialect", v.Dialect)
		w.end()
	case Accepted:
		w.begin(key)
		if v.Estimate != 0 {
			w.number("estimate_ns", int64(v.Estimate))
		}
		w.end()
	case Thinking:
		w.begin(key)
		w.text("text", v.Text)
		w.end()
	case Text:
		w.begin(key)
		w.text("text", v.Text)
		w.end()
	case Done:
		w.begin(key)
		w.some("text", v.Text)
		w.raw("data", v.Data)
		w.flag("truncated", v.Truncated)
		if v.TokensUsed != 0 {
			w.number("tokens_used", v.TokensUsed)
		}
		w.end()
	default:
		w.value(key, body)
	}
}

func (w *jsonWriter) opened(o Opened) {
	w.text("task", string(o.Task))
	w.begin("from")
	w.text("id", o.From.ID)
	w.some("dialect", o.From.Dialect)
	w.flag("authenticated", o.From.Authenticated)
	w.flag("operator", o.From.Operator)
	w.end()
	w.begin("request")
	w.request(o.Request)
	w.end()
	w.number("hops", int64(o.Hops))
	if len(o.Chain) > 0 {
		w.value("chain", o.Chain)
	}
	if o.Trace != (Trace{}) {
		w.value("trace", o.Trace)
	}
	w.flag("default_deadline", o.DefaultDeadline)
	w.some("key", o.Key) // last, where a journal looks for it
}

func (w *jsonWriter) request(r Request) {
	w.text("intent", r.Intent.String())
	w.text("to", r.To.String())
	w.some("thread", string(r.Thread))
	w.text("content", r.Content)
	w.raw("data", r.Data)
	if len(r.Attachments) > 0 {
		w.value("attachments", r.Attachments)
	}
	if len(r.History) > 0 {
		w.value("history", r.History)
	}
	w.raw("context", r.Context)
	w.some("domain", r.Domain)
	if r.Priority != 0 {
		w.text("priority", r.Priority.String())
	}
	if r.MaxTokens != 0 {
		w.number("max_tokens", r.MaxTokens)
	}
	if !r.Deadline.IsZero() {
		w.time("deadline", r.Deadline)
	}
	w.flag("report_back", r.ReportBack)
	w.some("cause", string(r.Cause))
	if r.Notice != nil {
		w.value("notice", r.Notice)
	}
	if r.Foreign != nil {
		w.value("foreign", r.Foreign)
	}
}

// key returns the text to which the key of the next member was appended.
func (w *jsonWriter) key(key string) []byte {
	b := w.b
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), key...), '"', ':')
}

func (w *jsonWriter) begin(key string) { w.b = append(w.key(key), '{') }

func (w *jsonWriter) end() { w.b = append(w.b, '}') }

func (w *jsonWriter) number(key string, n int64) { w.b = strconv.AppendInt(w.key(key), n, 10) }

// flag writes a member if it is true.
func (w *jsonWriter) flag(key string, on bool) {
	if on {
		w.b = append(w.key(key), "true"...)
	}
}

// some writes a member if its text is not empty.
func (w *jsonWriter) some(key, s string) {
	if s != "" {
		w.text(key, s)
	}
}

func (w *jsonWriter) text(key, s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			w.value(key, s)
			return
		}
	}
	w.b = append(append(append(w.key(key), '"'), s...), '"')
}

func (w *jsonWriter) time(key string, at time.Time) {
	var err error
	if w.b, err = at.AppendText(append(w.key(key), '"')); err != nil && w.err == nil {
		w.err = err
	}
	w.b = append(w.b, '"')
}

// raw writes a member that is JSON already, if there is one.
func (w *jsonWriter) raw(key string, v json.RawMessage) {
	if len(v) > 0 {
		w.value(key, v)
	}
}

// value writes v by encoding/json.
func (w *jsonWriter) value(key string, v any) {
	text, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.b = append(w.key(key), text...)
}
