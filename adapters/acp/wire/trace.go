package wire

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// ExtensionTrace declares that a peer wants the W3C trace context of what it is sent: the members
// traceparent and tracestate of the payload.
const ExtensionTrace = "trace_context"

// Trace returns the trace context of an envelope: that of its payload, else that of its carrier. It
// may be malformed: see [core.Trace.Carried].
func (e Envelope) Trace() (t core.Trace) {
	t.Parent, _ = e.Content().Get(core.TraceparentKey).Text()
	if _, ok := t.Span(); !ok {
		return e.Carrier
	}
	t.State, _ = e.Content().Get(core.TracestateKey).Text()
	return t
}

// WithTrace returns an envelope whose payload has the trace context in the place of any other; the
// envelope itself if there is none, or if it has no payload that is an object.
func WithTrace(raw []byte, t core.Trace) []byte {
	whole := strictjson.ParseValid(raw)
	payload := whole.Get("payload")
	if t.Parent == "" || payload.Kind() != strictjson.Object {
		return raw
	}
	if t.State == "" && payload.Get(core.TracestateKey).Exists() {
		rest, _ := payload.Without(core.TracestateKey) // it belongs to another traceparent
		payload = strictjson.ParseValid(rest)
	}
	var members []Field
	t.Each(func(key, value string) { members = append(members, Field{Key: key, Value: Marshal(value)}) })
	return whole.Set(Field{Key: "payload", Value: payload.Set(members...)})
}
