package parallax_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

const (
	full     = `{"capabilities":["x"],"config":{"maxConcurrentTasks":4,"extensions":["task_accepted","task_progress","task_request"]}}`
	onlyAsks = `{"capabilities":[],"config":{"extensions":["task_request"]}}`
)

func TestAnAgentThatAsksGetsTheWholeStream(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, full)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":{"content":"hello","n":1},"timeout":5000,"priority":"critical","trace":7}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		if assigned.Context.Requester != "asker" || assigned.Priority != "high" || assigned.Timeout != 5000 {
			t.Errorf("task: got %+v, want it from asker, high, with 5 s", assigned)
		}
		for _, sent := range []string{
			`"seq":1,"thinking":"hm"`, `"seq":2,"toolCall":{"id":"c","name":"n","input":{"a":[1]}}`, `"seq":3,"text":"hello"`, `"seq":4,"text":"!","confidence":1`,
			`"seq":5,"mood":"good"`, `"seq":6,"file":{"name":"f","data":"aGk="}`, `"seq":7,"toolState":{"id":"c","state":"completed"}`,
		} {
			worker.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","executionId":"EXEC",`+sent+`}}`, assigned))
		}
		worker.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","result":{"k":1},"duration":3,"metadata":{"tokensUsed":9,"region":"eu"}}}`, assigned))

		var got []string
		for kind := ""; kind != wire.TypeTaskResult; {
			m := next(asker)
			kind = m.Type
			got = append(got, kind+" "+strings.ReplaceAll(toJSON(t, fromJSON(t, m.Payload)), assigned.TaskID, "TASK"))
		}
		head := `"executionId":"TASK.1",`
		tail := `"requestId":"q1",`
		want := []string{
			`task_accepted {` + head + tail + `"taskId":"TASK"}`,
			`task_progress {` + head + tail + `"seq":1,"taskId":"TASK","thinking":"hm"}`,
			`task_progress {` + head + tail + `"seq":2,"taskId":"TASK","toolCall":{"id":"c","input":{"a":[1]},"name":"n"}}`,
			`task_progress {` + head + tail + `"seq":3,"taskId":"TASK","text":"hello"}`,
			`task_progress {"confidence":1,` + head + tail + `"seq":4,"taskId":"TASK","text":"!"}`,
			`task_progress {` + head + `"mood":"good",` + tail + `"seq":5,"taskId":"TASK"}`,
			`task_progress {` + head + `"file":{"data":"aGk=","name":"f"},` + tail + `"seq":6,"taskId":"TASK"}`,
			`task_progress {` + head + tail + `"seq":7,"taskId":"TASK","toolState":{"id":"c","state":"completed"}}`,
			`task_progress {` + head + tail + `"seq":8,"taskId":"TASK","usage":{"input":0,"output":9}}`,
			`task_result {"duration":3,` + head + `"metadata":{"region":"eu","tokensUsed":9},` + tail + `"result":{"k":1},"status":"completed","taskId":"TASK"}`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages differ (-want +got):\n%s", diff)
		}
	})
}

// next returns the next message, whatever it is.
func next(p *peer) wire.Message {
	p.Helper()
	frame, err := p.conn.Receive(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	m, err := wire.Decode(frame)
	if err != nil {
		p.Fatal(err)
	}
	return m
}

func TestAnAgentWithoutProgressGetsTheAnswerInOneMessage(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, onlyAsks)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"capability":"x","input":"hello"}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		for _, sent := range []string{`"thinking":"hm"`, `"text":"he"`, `"text":"llo"`, `"usage":{"input":1,"output":2}`, `"file":{"name":"f","data":"aGk="}`} {
			worker.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK",`+sent+`}}`, assigned))
		}
		worker.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":{"k":1}}}`, assigned))
		m := asker.receive(wire.TypeTaskResult)
		got := strings.ReplaceAll(toJSON(t, fromJSON(t, m.Payload)), assigned.TaskID, "TASK")
		want := `{"executionId":"TASK.1","metadata":{"progress":[{"thinking":"hm"},{"usage":{"input":1,"output":2}}],"tokensUsed":3},"requestId":"q1","result":{"content":"hello","data":{"k":1},"files":[{"data":"aGk=","name":"f"}]},"status":"completed","taskId":"TASK"}`
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestATooLargeAnswerIsRefusedWithAdvice(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, onlyAsks)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"hello"}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		for range 3 {
			worker.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","text":"`+strings.Repeat("x", 400_000)+`"}}`, assigned))
		}
		worker.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		e := decode[wire.TaskError](asker, asker.receive(wire.TypeTaskError))
		if e.Error.Code != "TOO_LARGE" || !strings.Contains(e.Error.Message, "task_progress") || e.RequestID != "q1" {
			t.Errorf("got %+v, want TOO_LARGE that names task_progress", e)
		}
	})
}

func TestLongTextIsSentInPieces(t *testing.T) {
	text := strings.Repeat("\x01世", 300_000) // six bytes for one, escaped
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, full)
		other := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "other"}})
		defer other.Close(nil)
		if err := other.Join(core.Card{ID: "other", Dialect: "other"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"other","input":"hello"}}`)
		b, err := other.Next(s.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = other.Report(b.Task.ID(), core.Text{Text: text}, nil)
		_ = other.Report(b.Task.ID(), core.ToolResult{ID: "t", Output: text}, nil)
		_ = other.Report(b.Task.ID(), core.Done{}, nil)
		var got strings.Builder
		for {
			m := next(asker)
			if m.Type == wire.TypeTaskResult {
				break
			}
			p := decode[struct {
				Text    string
				Omitted wire.Omitted `json:"omitted"`
			}](asker, wire.Message{Payload: []byte(strings.Replace(string(m.Payload), `"text":`, `"Text":`, 1))})
			got.WriteString(p.Text)
			if p.Omitted.Kind != "" && p.Omitted.Kind != "toolResult" {
				t.Errorf("omitted: got %+v, want the toolResult alone", p.Omitted)
			}
		}
		if got.String() != text {
			t.Errorf("got %d bytes, want %d", got.Len(), len(text))
		}
		s.expectCount("parallax.refused.progress", 1)
	})
}

func TestAnInvalidRequestFailsAtOnce(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, full)
		for payload, code := range map[string]string{
			`{"to":"nobody","input":"x"}`:                     "NOT_FOUND",
			`{"to":"capability:none","input":"x"}`:            "NOT_FOUND",
			`{"to":"domain:none","input":"x"}`:                "UNKNOWN_DOMAIN",
			`{"to":"*","input":""}`:                           "VALIDATION_ERROR",
			`{"to":"a","input":"x"}`:                          "LOOP",
			`{"to":"*","input":"x","parentTaskId":"foreign"}`: "FORBIDDEN",
		} {
			p.send(`{"type":"task_request","id":"q","payload":` + payload + `}`)
			e := decode[wire.TaskError](p, p.receive(wire.TypeTaskError))
			if e.Error.Code != code || e.RequestID != "q" || e.Error.Message == "" {
				t.Errorf("%s: got %+v, want %s for q", payload, e, code)
			}
		}
		for _, payload := range []string{`{"input":"x"}`, `{"to":"capability:","input":"x"}`, `{"to":"*","input":"x","context":{"intent":"purple"}}`} {
			p.send(`{"type":"task_request","id":"q","payload":` + payload + `}`)
			p.expectError(wire.CodeInvalidMessage)
		}
		p.send(`{"type":"task_cancel","id":"q","payload":{"requestId":"q"}}`)
		p.expectError(wire.CodeTaskNotHeld)
	})
}

func TestAnAgentCancelsItsRequest(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, full)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"hello"}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"again"}}`)
		asker.expectError(wire.CodeInvalidMessage)
		asker.send(`{"type":"task_cancel","id":"m","payload":{"requestId":"q1","reason":"never mind"}}`)
		if c := decode[wire.TaskCancelled](worker, worker.receive(wire.TypeTaskCancelled)); c.Reason != "never mind" {
			t.Errorf("cancelled: got %+v, want never mind", c)
		}
		worker.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"CANCELLED","message":"fine"}}}`, assigned))
		if e := decode[wire.TaskError](asker, asker.receive(wire.TypeTaskError)); e.Error.Code != "CANCELLED" || e.Error.Message != "fine" {
			t.Errorf("got %+v, want CANCELLED, fine", e)
		}
		// The id is free again.
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"hello"}}`)
		worker.receive(wire.TypeTask)
	})
}

func TestARequestIsCancelledWhenItsAgentDisconnects(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, full)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"hello"}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		_ = asker.conn.Close(link.Reason{Cause: link.PeerGone})
		worker.receive(wire.TypeTaskCancelled)
		worker.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"CANCELLED"}}}`, assigned))
		worker.expectNothing()
	})
}

func TestAskingBackIsALoop(t *testing.T) {
	withHub(t, func(s *setup) {
		one := s.registered(parallax.Options{AgentID: "one"}, full)
		two := s.registered(parallax.Options{AgentID: "two"}, full)
		one.send(`{"type":"task_request","id":"q1","payload":{"to":"two","input":"ping"}}`)
		assigned := decode[wire.Task](two, two.receive(wire.TypeTask))
		two.send(withIDs(`{"type":"task_request","id":"q2","payload":{"to":"one","parentTaskId":"TASK","input":"pong"}}`, assigned))
		if e := decode[wire.TaskError](two, two.receive(wire.TypeTaskError)); e.Error.Code != "LOOP" {
			t.Errorf("got %+v, want LOOP", e)
		}
		two.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"alone then"}}`, assigned))
		if m := next(one); m.Type != wire.TypeTaskAccepted {
			t.Errorf("got %s, want task_accepted", m.Type)
		}
	})
}

func TestAFailureReachesAParallaxRequesterUnchanged(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, onlyAsks)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"hello"}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		sent := `{"code":"OUT_OF_CHEESE","details":{"shelf":3},"message":"no cheese"}`
		worker.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":`+sent+`,"retryable":true}}`, assigned))
		var got struct {
			Error     json.RawMessage `json:"error"`
			Retryable bool            `json:"retryable"`
		}
		if err := json.Unmarshal(asker.receive(wire.TypeTaskError).Payload, &got); err != nil || string(got.Error) != sent || !got.Retryable {
			t.Errorf("got %s, %v and %v, want %s", got.Error, got.Retryable, err, sent)
		}
	})
}

func TestEventsOfOtherDialectsReachAParallaxRequester(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, full)
		join := func(id core.AgentID) *hub.Session {
			other := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}})
			s.Cleanup(func() { other.Close(nil) })
			if err := other.Join(core.Card{ID: id, Dialect: "other", Capabilities: []string{"y"}, Features: core.FeatureInjection}, hub.JoinOptions{}); err != nil {
				t.Fatal(err)
			}
			return other
		}
		one := join("one")
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"capability:y","input":"hello"}}`)
		b, err := one.Next(s.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := b.Task.ID()
		two := join("two")
		report := func(by *hub.Session, body core.Body) {
			t.Helper()
			if err := by.Report(id, body, nil); err != nil {
				t.Fatalf("%s: %v", body.Kind(), err)
			}
		}
		report(one, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "too much")})
		for _, body := range []core.Body{
			core.SessionStarted{Session: "s"}, core.ToolCall{ID: "c", Name: "rm", Input: "not JSON"}, core.ApprovalRequested{ID: "c", Name: "rm", Input: `{}`},
			core.ToolState{ID: "c", State: core.ToolDenied, Detail: "no"}, core.InjectionAnswered{ID: "i", Accepted: true}, core.ForeignFrame{Dialect: "other", Name: "dance"},
			core.SessionLost{Reason: "gone"}, core.Done{Text: "whole"},
		} {
			report(two, body)
		}
		var got []string
		for kind := ""; kind != wire.TypeTaskResult; {
			m := next(asker)
			kind = m.Type
			sent := fromJSON(t, m.Payload).(map[string]any)
			for _, name := range []string{"requestId", "taskId", "executionId", "seq"} {
				delete(sent, name)
			}
			got = append(got, toJSON(t, sent))
		}
		want := []string{
			`{"retrying":{"agent":"one","attempt":1,"error":{"code":"OVERLOADED","message":"too much"}}}`,
			`{"session":{"id":"s"}}`,
			`{"toolCall":{"id":"c","inputText":"not JSON","name":"rm"}}`,
			`{"approvalRequested":{"id":"c","input":{},"name":"rm"}}`,
			`{"toolState":{"detail":"no","id":"c","state":"denied"}}`,
			`{"injectionAnswered":{"accepted":true,"id":"i"}}`,
			`{"foreign":{"dialect":"other","name":"dance"}}`,
			`{"session":{"lost":"gone"}}`,
			`{"result":"whole","status":"completed"}`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages differ (-want +got):\n%s", diff)
		}
	})
}
