package editor_test

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func TestTheTraceOfAPromptIsInItsMeta(t *testing.T) {
	in := core.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	const keys = `"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b"`
	for before, want := range map[string]string{
		"":                                `{` + keys + `}`,
		`{"a":1}`:                         `{"a":1,` + keys + `}`,
		`{"traceparent":"other","b":[2]}`: `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","b":[2],"tracestate":"a=b"}`,
	} {
		meta := wire.WithTrace(json.RawMessage(before), in)
		if string(meta) != want {
			t.Errorf("%s: got %s, want %s", before, meta, want)
		}
		if got := wire.TraceOf(parse(t, `{"_meta":`+string(meta)+`}`)); got != in {
			t.Errorf("%s: got %+v back, want %+v", before, got, in)
		}
		if got := wire.WithTrace(json.RawMessage(before), core.Trace{}); string(got) != before {
			t.Errorf("%s, without a trace: got %s, want it unchanged", before, got)
		}
	}
	if got := wire.TraceOf(parse(t, `{"_meta":{"traceparent":1,"tracestate":null}}`)); got != (core.Trace{}) {
		t.Errorf("not text: got %+v, want none", got)
	}
}
