package core

import (
	"fmt"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// MarshalJSON writes the stable JSON form of the event.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// AppendJSON appends the stable JSON form of the event to b. It writes the small kinds that every
// task has without reflection, which a journal does all the time, byte for byte as encoding/json
// does.
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
	case Assigned:
		w.Begin(key)
		w.Text("agent", string(v.Agent))
		w.Number("attempt", int64(v.Attempt))
		w.Some("dialect", v.Dialect)
		if v.Handover != nil {
			w.Value("handover", v.Handover)
		}
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
