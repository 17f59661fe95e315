package wire

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// FuzzDecode holds that no frame brings the codec down, and that what it lets
// pass can be told again.
func FuzzDecode(f *testing.F) {
	for _, frame := range samples(f) {
		f.Add(frame)
	}
	f.Add([]byte(`{"type":"task_progress","id":"m","payload":{"taskId":"t","seq":1,"toolCall":{"id":"a","name":"b","inputText":"{"}}}`))
	f.Add([]byte(`{"type":"task_result","payload":{"taskId":"t","result":{"files":[{"name":"a","data":"aGk="}],"content":"c"}}}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := Decode(frame)
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
		retell(t, m, value)
	})
}

// retell turns a payload into what the hub makes of it, and back.
func retell(t *testing.T, m Message, value any) {
	var again any
	var beside *core.Foreign
	switch p := value.(type) {
	case Progress:
		bs, err := p.Bodies()
		if err != nil {
			return
		}
		for _, b := range bs {
			if i, ok := ItemOf(b); ok {
				again, beside = Progress{About: p.About, Seq: p.Seq, Item: i}, m.Foreign(p.Left)
			}
		}
	case TaskResult:
		whole := core.Fold(eventsOf(p.Bodies(false, false)))
		r, err := ResultOf(p.About, Answer{whole.Text, whole.Data, whole.Files})
		if err != nil {
			t.Fatalf("result: %v", err)
		}
		again, beside = r, m.Foreign(ResultShape.Strip(m.Content()))
	case TaskError:
		whole := core.Fold(eventsOf(p.Bodies(false, false)))
		beside = WithCode(m.Foreign(ErrorShape.Strip(m.Content())), p.End())
		e := TaskErrorOf(p.About, whole.Fault, beside)
		if err := e.Partly(Answer{Text: whole.Text, Files: whole.Files}, p.Metadata); err != nil {
			t.Fatalf("error: %v", err)
		}
		again = e
	case TaskRequest:
		r, err := p.Request(time.Now())
		if err != nil {
			return
		}
		told, err := TaskOf(r)
		if err != nil {
			t.Fatalf("task: %v", err)
		}
		told.TaskID = "t"
		again, beside = told, m.Foreign(TaskShape.Strip(m.Content()))
		m.Type = TypeTask
	}
	if again == nil {
		return
	}
	frame, err := Encode(m.Type, "m", time.Now(), again)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	if _, err := Decode(Restore(frame, beside)); err != nil {
		t.Fatalf("told again as %s: %v", frame, err)
	}
}
