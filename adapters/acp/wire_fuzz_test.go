package acp_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
)

// FuzzDecode checks that no envelope makes the codec panic, that an accepted one can be
// passed on with only its address changed, and that its translated payload is JSON again.
func FuzzDecode(f *testing.F) {
	for _, s := range samples {
		f.Add(envelopeOf(s.json))
	}
	for _, s := range []string{
		`{"id":"1","kind":"progress","ref":"q","payload":{"seq":1,"text":"x"}}`,
		`{"id":"1","kind":"progress","ref":"q","payload":{"seq":2,"tool_call":{"id":"t","name":"n","input":{"a":[1]}}}}`,
		`{"id":"1","kind":"query","payload":{"question":{"a":1},"context":{"history":[{"role":"user","text":"hi"}],"files":[{"name":"a","data":"AA=="}],"data":null,"x":1}}}`,
		`{"id":"1","kind":"response","ref":"q","payload":{"summary":"","data":{"value":1,"files":[{"name":"a","data":"AA=="}]}}}`,
		`{"id":"1","kind":"error","ref":"q","payload":{"code":"timeout","message":"","partial":{"summary":"ro","data":{"n":1,"files":[{"name":"a","data":"AA=="}]},"tokens_used":3}}}`,
		`{"id":"1","kind":"result","ref":"q","payload":{"status":"failed","outcome":"ro","error":"overloaded: no","data":[1]}}`,
		`{"id":"1","kind":"query","payload":{"Question":"x"}}`, `{"id":"1","kind":"progress","ref":"q","payload":{"seq":1,"Text":"x"}}`,
		`{"id":"1","kind":"subscribe","payload":{"topics":["a.*",">"]}}`, `{"id":"1","kind":"unsubscribe","payload":null}`,
		`[]`, `{"id":"1","kind":"x","from":null}`, "{\n\"id\":\"1\" ,\r\n\"kind\":\"x\"}\n", `{"id":7,"kind":"ping"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := wire.Decode(b, 1<<20)
		if err != nil {
			if refusal := wire.AsError(err); refusal.Code == wire.CodeInternal || refusal.Message == "" {
				t.Fatalf("got %v, want an error that says what to change", err)
			}
			return
		}
		if err := e.Check(); err != nil {
			return
		}
		passed := wire.Readdress(e.Raw, "F", "T", "R")
		again, err := wire.Decode(passed, 1<<21)
		if err != nil || again.From != "F" || again.To != "T" || again.Ref != "R" || again.ID != e.ID || again.Kind != e.Kind {
			t.Fatalf("passed on as %s: got %+v, error %v; want only from, to and ref changed", passed, again, err)
		}
		fuzzPayload(t, e)
	})
}

func fuzzPayload(t *testing.T, e wire.Envelope) {
	now := time.Unix(1, 0)
	holds := func(raw json.RawMessage) {
		if len(raw) > 0 && !json.Valid(raw) {
			t.Fatalf("got %q, want JSON", raw)
		}
	}
	switch e.Kind {
	case wire.KindQuery:
		if r, err := e.Request(now); err == nil {
			holds(r.Data)
			holds(r.Context)
			holds(wire.Marshal(wire.QueryOf(r, now)))
		}
	case wire.KindDelegate:
		if r, err := e.Request(now); err == nil {
			holds(r.Data)
			holds(r.Context)
			holds(wire.Marshal(wire.DelegateOf(r, now)))
		}
	case wire.KindResponse, wire.KindResult:
		if bodies, err := e.Bodies(); err == nil {
			answer := foldBodies(bodies)
			holds(answer.Data)
			holds(wire.Marshal(wire.ResponseOf(answer)))
			holds(wire.Marshal(wire.ResultOf(answer)))
		}
	case wire.KindError:
		if bodies, err := e.Bodies(); err == nil {
			holds(wire.Marshal(wire.FailureOf(foldBodies(bodies))))
		}
	case wire.KindProgress:
		seq, body, err := e.Progress()
		if err == nil {
			holds(wire.ProgressOf(seq, body))
		}
	case wire.KindCapabilities:
		var c wire.Capabilities
		if e.Read(&c) == nil {
			holds(wire.Marshal(wire.CapabilitiesOf(c.Card("x", e.Content()))))
		}
	}
}
