package parallax_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

const streaming = `{"capabilities":["x"],"config":{"extensions":["task_accepted","task_progress"]}}`

func TestAStreamOf5000ChunksArrivesWholeAndInOrder(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		start := time.Now()
		p.send(withIDs(`{"type":"task_accepted","id":"m","payload":{"taskId":"TASK","estimatedMs":2000}}`, assigned))
		var want strings.Builder
		for i := range 5000 {
			chunk := fmt.Sprintf("chunk %d;", i)
			want.WriteString(chunk)
			p.send(withIDs(fmt.Sprintf(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","seq":%d,"text":%q}}`, i+1, chunk), assigned))
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","status":"completed","result":null}}`, assigned))
		events := a.events(opened)
		if got := core.Fold(events); got.Text != want.String() || got.End != core.KindDone {
			t.Errorf("answer: got %d bytes and %v, want %d", len(got.Text), got.End, want.Len())
		}
		if len(events) != 5004 || events[2].Body != (core.Accepted{Estimate: 2 * time.Second}) {
			t.Errorf("events: got %d and %v, want 5004 and the estimate", len(events), events[2].Body)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("got throttled for %v, want no delay", took)
		}
		if opened.Receipt().Stage != core.StageAcknowledged {
			t.Errorf("receipt: got %v, want acknowledged", opened.Receipt().Stage)
		}
	})
}

func TestEveryKindOfProgressArrives(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		for i, sent := range []string{
			`"thinking":"hm"`, `"text":"he"`, `"toolCall":{"id":"c","name":"search","input":{"q":1}}`, `"toolState":{"id":"c","state":"running"}`,
			`"toolResult":{"id":"c","output":"found","isError":true}`, `"text":"llo","confidence":0.5`, `"usage":{"input":3,"output":4.0}`,
			`"file":{"name":"f","mediaType":"m","data":"aGk="}`, `"session":{"id":"s"}`, `"mood":"good"`,
		} {
			p.send(withIDs(fmt.Sprintf(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":%d,%s}}`, i+1, sent), assigned))
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"hello again","metadata":{"tokensUsed":7}}}`, assigned))
		events := a.events(opened)
		var got []core.Body
		for _, e := range events[3:] {
			got = append(got, e.Body)
		}
		want := []core.Body{
			core.Thinking{Text: "hm"}, core.Text{Text: "he"}, core.ToolCall{ID: "c", Name: "search", Input: `{"q":1}`}, core.ToolState{ID: "c", State: core.ToolRunning},
			core.ToolResult{ID: "c", Output: "found", IsError: true}, core.Text{Text: "llo"}, core.Usage{Input: 3, Output: 4},
			core.File{Name: "f", MediaType: "m", Data: []byte("hi")}, core.SessionStarted{Session: "s"}, core.ForeignFrame{Dialect: "parallax", Name: "task_progress"},
			core.Done{Text: "hello again", TokensUsed: 7},
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("events differs (-want +got):\n%s", diff)
		}
		if f := events[8].Foreign; f == nil || string(f.JSON) != `{"payload":{"confidence":0.5}}` {
			t.Errorf("foreign of a text: got %+v, want its confidence", f)
		}
		if answer := core.Fold(events); answer.Text != "hello" {
			t.Errorf("answer: got %q, want the streamed text", answer.Text)
		}
	})
}

func TestInvalidProgressIsRefused(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		for sent, code := range map[string]string{
			`"seq":1`: wire.CodeInvalidMessage,
			`"toolState":{"id":"c","state":"purple"}`:         wire.CodeInvalidMessage,
			`"approvalRequested":{"id":"c","name":"rm"}`:      wire.CodeUnsupported,
			`"injectionAnswered":{"id":"c","accepted":true}`:  wire.CodeUnsupported,
			`"retrying":{"attempt":1,"agent":"b"},"text":"x"`: wire.CodeUnsupported,
		} {
			p.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK",`+sent+`}}`, assigned))
			p.expectError(code)
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","status":"purple"}}`, assigned))
		p.expectError(wire.CodeInvalidMessage)
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"done"}}`, assigned))
		if got := a.answer(opened); got.Text != "done" {
			t.Errorf("answer: got %+v, want done", got)
		}
	})
}

func TestAnUndeclaredExtensionIsRefused(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		for _, name := range []string{"task_accepted", "task_progress", "task_request", "task_cancel"} {
			p.send(string(pageSamples(t)[name]))
			if _, r := p.expectError(wire.CodeUnsupported); !strings.Contains(r.Message, "payload.config.extensions") {
				t.Errorf("%s: got %q, want one that says where to declare it", name, r.Message)
			}
		}
	})
}

func TestADuplicateChunkIsIgnored(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, conn := coretest.Pipe[[]byte, []byte](4)
		ended := make(chan link.Reason, 1)
		// register, accepted, then the chunk "b" passes twice.
		faulty := coretest.Break(conn, coretest.Fault{Duplicate: 4}, coretest.Fault{})
		go func() { ended <- parallax.Serve(s.Context(), s.hub, faulty, &parallax.Options{AgentID: "a"}) }()
		s.Cleanup(func() { _ = agent.Close(link.Reason{}); <-ended })
		p := &peer{s, agent, ended}
		p.send(`{"type":"register","id":"r","payload":` + streaming + `}`)
		p.receive(wire.TypeRegistered)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		for i, chunk := range []string{"a", "b", "c"} {
			p.send(withIDs(fmt.Sprintf(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":%d,"text":%q}}`, i+1, chunk), assigned))
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		if got := a.answer(opened); got.Text != "abc" {
			t.Errorf("answer: got %q, want abc", got.Text)
		}
		p.expectNothing()
		s.expectCount("parallax.ignored.duplicate", 1)
		s.expectCount("parallax.ignored.late", 1)
	})
}

func TestAGapInAStreamFailsTheTask(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		p.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":1,"text":"a"}}`, assigned))
		p.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":3,"text":"c"}}`, assigned))
		p.expectError(wire.CodeInvalidMessage)
		if c := decode[wire.TaskCancelled](p, p.receive(wire.TypeTaskCancelled)); c.TaskID != assigned.TaskID || c.Reason != "progress_lost" {
			t.Errorf("cancelled: got %+v, want the task, for progress_lost", c)
		}
		if got := a.answer(opened); got.End != core.KindFailed || got.Text != "a" {
			t.Errorf("answer: got %+v, want it failed after a", got)
		}
		p.expectNothing()
	})
}

func TestProgressThatIsRefusedIsNoGap(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		for i, said := range []struct{ item, code string }{
			{`"text":"a"`, ""},
			{`"retrying":{"attempt":2,"agent":"a"}`, wire.CodeUnsupported},
			{`"approvalRequested":{"id":"c","name":"rm"}`, wire.CodeUnsupported},
			{`"text":"b"`, ""},
		} {
			p.send(withIDs(fmt.Sprintf(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":%d,%s}}`, i+1, said.item), assigned))
			if said.code != "" {
				p.expectError(said.code)
			}
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		if got := a.answer(opened); got.End != core.KindDone || got.Text != "ab" {
			t.Errorf("answer: got %+v, want it done with ab", got)
		}
	})
}

func TestACharacterInTwoPiecesOfProgressIsOne(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		for i, item := range []string{`"text":"a\ud83d"`, `"thinking":"hm"`, `"text":"\ude00b"`, `"text":"\ud83d"`} {
			p.send(withIDs(fmt.Sprintf(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":%d,%s}}`, i+1, item), assigned))
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		if got := a.answer(opened); got.End != core.KindDone || got.Text != "a😀b�" {
			t.Errorf("answer: got %+v, want a😀b�", got)
		}
	})
}
