package native_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

func TestEveryEventFitsItsSchema(t *testing.T) {
	for _, k := range core.Kinds() {
		schema := schemas.NativeEvent(k.String())
		if schema == nil {
			t.Fatalf("got no schema of %s, want one", k)
		}
		rapid.Check(t, func(t *rapid.T) {
			e := coretest.EventOf(k).Draw(t, "event")
			if in, ok := e.Body.(core.Injected); ok && in.Priority == 0 {
				in.Priority = core.InjectionNormal // as the hub sets it
				e.Body = in
			}
			frame, err := wire.AppendEvent(nil, wire.Head{Task: "t", Role: "viewer"}, e)
			if err != nil {
				t.Fatal(err)
			}
			sendable(t, frame)
			v := strictjson.ParseValid(frame)
			if err := schemas.Native("event").Check(v); err != nil {
				t.Errorf("%s: got %v, want it to fit", frame, err)
			}
			if err := schema.Check(v.Get("event", "body")); err != nil {
				t.Errorf("%s: got %v, want its body to fit", frame, err)
			}
		})
	}
}

func TestEveryCallFitsItsSchema(t *testing.T) {
	for _, c := range golden(t) {
		act := c.Command.Act().String()
		frame, err := wire.EncodeCall(wire.Call{ID: c.ID, Trace: c.Trace, Command: c.Command})
		if err != nil {
			t.Fatal(err)
		}
		v, schema := strictjson.ParseValid(frame), schemas.NativeCommand(act)
		if schema == nil {
			t.Fatalf("got no schema of %s, want one", act)
		}
		if err := schemas.Native("call").Check(v); err != nil {
			t.Errorf("%s: got %v, want it to fit", frame, err)
		}
		if err := schema.Check(v.Get("call", "command")); err != nil {
			t.Errorf("%s: got %v, want its command to fit", frame, err)
		}
	}
}
