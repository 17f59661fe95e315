package parallax

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
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
		m, err := decode(frame)
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
func retell(t *testing.T, m message, value any) {
	var again any
	var beside *core.Foreign
	switch p := value.(type) {
	case progress:
		bs, err := p.bodies()
		if err != nil {
			return
		}
		for _, b := range bs {
			if i, ok := itemOf(b); ok {
				again, beside = progress{about: p.about, Seq: p.Seq, item: i}, m.foreign(p.left)
			}
		}
	case taskResult:
		whole := core.Fold(eventsOf(p.bodies(false, false)))
		r, err := resultOf(p.about, answer{whole.Text, whole.Data, whole.Files})
		if err != nil {
			t.Fatalf("result: %v", err)
		}
		again, beside = r, m.foreign(resultShape.strip(m.Payload))
	case taskError:
		whole := core.Fold(eventsOf(p.bodies(false, false)))
		beside = withCode(m.foreign(errorShape.strip(m.Payload)), p.end())
		e := taskErrorOf(p.about, whole.Fault, beside)
		if err := e.partly(answer{Text: whole.Text, Files: whole.Files}, p.Metadata); err != nil {
			t.Fatalf("error: %v", err)
		}
		again = e
	case taskRequest:
		r, err := p.ask(time.Now())
		if err != nil {
			return
		}
		told, err := taskOf(r)
		if err != nil {
			t.Fatalf("task: %v", err)
		}
		told.TaskID = "t"
		again, beside = told, m.foreign(taskShape.strip(m.Payload))
		m.Type = typeTask
	}
	if again == nil {
		return
	}
	frame, err := encode(m.Type, "m", time.Now(), again)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	if _, err := decode(restore(frame, beside)); err != nil {
		t.Fatalf("told again as %s: %v", frame, err)
	}
}

// FuzzSession holds that whatever an agent sends, one frame a line, its
// connection lives on and nothing else is disturbed, unless it says that it leaves.
// The promises of the hub are checked behind every run.
func FuzzSession(f *testing.F) {
	for _, frame := range samples(f) {
		f.Add(oneLine(f, frame))
	}
	f.Add([]byte(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":{"content":"c","files":[{"name":"a","data":"aGk="}]}}}`))
	f.Add([]byte(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":2,"text":"x"}}` + "\n" + `{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"X"}}}`))
	f.Add([]byte(`{"type":"task_request","id":"m","payload":{"to":"*","input":"x"}}` + "\n" + `{"type":"task_cancel","id":"m","payload":{"requestId":"m"}}`))
	f.Fuzz(func(t *testing.T, lines []byte) {
		onStage(t, func(s *stage) {
			p := s.registered(Options{AgentID: "a", MaxMessagesPerSecond: -1}, full)
			a := s.asker()
			a.ask("a", "go")
			given := inside[task](p, p.hear(typeTask))
			for line := range bytes.Lines(lines) {
				frame := fill(string(bytes.TrimSpace(line)), given)
				if m, err := decode([]byte(frame)); err == nil && m.Type == typeDisconnect {
					continue
				}
				p.say(frame)
				p.drain()
			}
			p.say(`{"type":"heartbeat","id":"still here","payload":{}}`)
			for {
				if m := next(p); m.Type == typeHeartbeatAck && m.ID == "still here" {
					return
				}
			}
		})
	})
}

// drain reads what has been sent so far.
func (p *peer) drain() {
	for {
		synctest.Wait()
		ctx, cancel := context.WithCancel(p.Context())
		cancel()
		if _, err := p.conn.Receive(ctx); err != nil {
			return
		}
	}
}

func oneLine(t testing.TB, frame []byte) []byte {
	t.Helper()
	var line bytes.Buffer
	if err := json.Compact(&line, frame); err != nil {
		t.Fatal(err)
	}
	return line.Bytes()
}
