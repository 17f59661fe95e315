package wire_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// FuzzDecode checks that no frame makes the codec panic, and that a valid one can be
// encoded again.
func FuzzDecode(f *testing.F) {
	for _, frame := range samples(f) {
		f.Add(frame)
	}
	f.Add([]byte(`{"type":"task_progress","id":"m","payload":{"taskId":"t","seq":1,"toolCall":{"id":"a","name":"b","inputText":"{"}}}`))
	f.Add([]byte(`{"type":"task_result","payload":{"taskId":"t","result":{"files":[{"name":"a","data":"aGk="}],"content":"c"}}}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := wire.Decode(frame)
		if err != nil {
			if fault := core.AsFault(err); fault.Code == core.CodeInternal || fault.Message == "" {
				t.Fatalf("got %v, want a fault that says what to change", err)
			}
			return
		}
		read := payloads[m.Type]
		if read == nil {
			t.Fatalf("type %q has a schema and no payload", m.Type)
		}
		value, err := read(m)
		if err != nil {
			if core.AsFault(err).Code != core.CodeInvalid {
				t.Fatalf("payload: got %v, want an invalid fault", err)
			}
			return
		}
		roundTrip(t, m, value)
	})
}

// roundTrip decodes a payload into requests or events and encodes them again.
func roundTrip(t *testing.T, m wire.Message, value any) {
	var again any
	var beside *core.Foreign
	switch p := value.(type) {
	case wire.Progress:
		bs, err := p.Bodies()
		if err != nil {
			return
		}
		for _, b := range bs {
			if i, ok := wire.ItemOf(b); ok {
				again, beside = wire.Progress{TaskRef: p.TaskRef, Seq: p.Seq, Item: i}, m.Foreign(p.Unknown)
			}
		}
	case wire.TaskResult:
		whole := core.Fold(eventsOf(p.Bodies(false, false)))
		r, err := wire.ResultOf(p.TaskRef, whole)
		if err != nil {
			t.Fatalf("result: %v", err)
		}
		again, beside = r, m.Foreign(wire.ResultShape.Strip(m.Content()))
	case wire.TaskError:
		whole := core.Fold(eventsOf(p.Bodies(false, false)))
		beside = wire.WithCode(m.Foreign(wire.ErrorShape.Strip(m.Content())), p.End())
		e := wire.TaskErrorOf(p.TaskRef, whole.Fault, beside)
		if err := e.SetPartial(whole, p.Metadata); err != nil {
			t.Fatalf("error: %v", err)
		}
		again = e
	case wire.TaskRequest:
		r, err := p.Request(time.Now())
		if err != nil {
			return
		}
		told, err := wire.TaskOf(r)
		if err != nil {
			t.Fatalf("task: %v", err)
		}
		told.TaskID = "t"
		again, beside = told, m.Foreign(wire.TaskShape.Strip(m.Content()))
		m.Type = wire.TypeTask
	}
	if again == nil {
		return
	}
	frame, err := wire.Encode(m.Type, "m", time.Now(), again)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	if _, err := wire.Decode(wire.Restore(frame, beside)); err != nil {
		t.Fatalf("encoded again as %s: %v", frame, err)
	}
}
