package wire

import (
	"encoding/json"
	"strconv"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// metaHops is our key of the _meta of a prompt that one hub sends another: how many tasks stand
// above it (promise P10).
const metaHops = "urn:dragoman:editor:hops:1"

// HopsOf returns how many tasks stand above a prompt by the word of its sender.
func HopsOf(params strictjson.Value) int {
	hops := 0
	if params.Get("_meta", metaHops).Decode(&hops) != nil {
		return 0
	}
	return max(hops, 0)
}

// TraceOf returns the trace context of a prompt (extensibility, "Reserved keys").
func TraceOf(params strictjson.Value) (t core.Trace) {
	t.Parent, _ = params.Get("_meta", core.TraceparentKey).Text()
	t.State, _ = params.Get("_meta", core.TracestateKey).Text()
	return t
}

// WithTrace returns the _meta of a prompt, which may be nil, with a trace context in the place of
// that of its sender.
func WithTrace(meta json.RawMessage, t core.Trace) json.RawMessage {
	t.Each(func(key, value string) {
		if len(meta) == 0 {
			meta = json.RawMessage("{}")
		}
		meta = strictjson.ParseValid(meta).Set(strictjson.Field{Key: key, Value: strictjson.Encode(value)})
	})
	return meta
}

// WithHops returns the _meta of a prompt, which may be nil, with how many tasks stand above it.
func WithHops(meta json.RawMessage, hops int) json.RawMessage {
	if len(meta) == 0 {
		meta = json.RawMessage("{}")
	}
	return strictjson.ParseValid(meta).Set(strictjson.Field{Key: metaHops, Value: strconv.AppendInt(nil, int64(hops), 10)})
}
