package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// ExtensionTrace is the extension with which an agent gets the W3C trace context of its tasks, as
// traceparent and tracestate in metadata of the payload.
const ExtensionTrace = "trace_context"

const memberMetadata = "metadata"

// Trace returns the trace context in the metadata. It may be malformed: see [core.Trace.Carried].
func (t Task) Trace() (in core.Trace) {
	metadata := strictjson.ParseValid(t.Metadata)
	in.Parent, _ = metadata.Get(core.TraceparentKey).Text()
	in.State, _ = metadata.Get(core.TracestateKey).Text()
	return in
}

// TraceMetadata returns the metadata of a task that is in a trace, nil if it is in none.
func TraceMetadata(t core.Trace) json.RawMessage {
	var all Members
	t.Each(func(key, value string) {
		if all == nil {
			all = Members{}
		}
		all[key] = strictjson.Encode(value)
	})
	if all == nil {
		return nil
	}
	raw := strictjson.Encode(all)
	return raw
}

// WithoutTrace returns the unknown members of a task without a trace context, which the hub has
// replaced.
func WithoutTrace(f *core.Foreign) *core.Foreign {
	if f == nil || f.Dialect != Dialect {
		return f
	}
	whole := strictjson.ParseValid(f.JSON)
	payload := whole.Get("payload")
	metadata := payload.Get(memberMetadata)
	if metadata.Kind() != strictjson.Object {
		return f
	}
	rest, _ := metadata.Without(core.TraceparentKey, core.TracestateKey)
	rest = payload.Set(strictjson.Field{Key: memberMetadata, Value: rest})
	return &core.Foreign{Dialect: Dialect, JSON: whole.Set(strictjson.Field{Key: "payload", Value: rest})}
}
