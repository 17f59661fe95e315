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
	onStage(t, func(s *stage) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.asker()
		asked := a.ask("a", "go")
		given := inside[wire.Task](p, p.hear(wire.TypeTask))
		start := time.Now()
		p.say(fill(`{"type":"task_accepted","id":"m","payload":{"taskId":"TASK","estimatedMs":2000}}`, given))
		var want strings.Builder
		for i := range 5000 {
			chunk := fmt.Sprintf("chunk %d;", i)
			want.WriteString(chunk)
			p.say(fill(fmt.Sprintf(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","seq":%d,"text":%q}}`, i+1, chunk), given))
		}
		p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","status":"completed","result":null}}`, given))
		events := a.events(asked)
		if got := core.Fold(events); got.Text != want.String() || got.End != core.KindDone {
			t.Errorf("answer: got %d bytes and %v, want %d", len(got.Text), got.End, want.Len())
		}
		if len(events) != 5004 || events[2].Body != (core.Accepted{Estimate: 2 * time.Second}) {
			t.Errorf("events: got %d and %v, want 5004 and the estimate", len(events), events[2].Body)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("got paced for %v, want a stream not to be", took)
		}
		if asked.Receipt().Stage != core.StageAcknowledged {
			t.Errorf("receipt: got %v, want acknowledged", asked.Receipt().Stage)
		}
	})
}

func TestEverythingSaidOnTheWayArrives(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.asker()
		asked := a.ask("a", "go")
		given := inside[wire.Task](p, p.hear(wire.TypeTask))
		for i, said := range []string{
			`"thinking":"hm"`, `"text":"he"`, `"toolCall":{"id":"c","name":"search","input":{"q":1}}`, `"toolState":{"id":"c","state":"running"}`,
			`"toolResult":{"id":"c","output":"found","isError":true}`, `"text":"llo","confidence":0.5`, `"usage":{"input":3,"output":4.0}`,
			`"file":{"name":"f","mediaType":"m","data":"aGk="}`, `"session":{"id":"s"}`, `"mood":"good"`,
		} {
			p.say(fill(fmt.Sprintf(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":%d,%s}}`, i+1, said), given))
		}
		p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"hello again","metadata":{"tokensUsed":7}}}`, given))
		events := a.events(asked)
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
			t.Errorf("events otherwise (-want +got):\n%s", diff)
		}
		if f := events[8].Foreign; f == nil || string(f.JSON) != `{"payload":{"confidence":0.5}}` {
			t.Errorf("foreign of a text: got %+v, want its confidence", f)
		}
		if answer := core.Fold(events); answer.Text != "hello" {
			t.Errorf("answer: got %q, want the streamed text", answer.Text)
		}
	})
}

func TestProgressThatSaysNothingOrTooMuchIsRefused(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.asker()
		asked := a.ask("a", "go")
		given := inside[wire.Task](p, p.hear(wire.TypeTask))
		for said, code := range map[string]string{
			`"seq":1`: wire.CodeInvalidMessage,
			`"toolState":{"id":"c","state":"purple"}`:         wire.CodeInvalidMessage,
			`"approvalRequested":{"id":"c","name":"rm"}`:      wire.CodeUnsupported,
			`"injectionAnswered":{"id":"c","accepted":true}`:  wire.CodeUnsupported,
			`"retrying":{"attempt":1,"agent":"b"},"text":"x"`: wire.CodeUnsupported,
		} {
			p.say(fill(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK",`+said+`}}`, given))
			p.refused(code)
		}
		p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","status":"purple"}}`, given))
		p.refused(wire.CodeInvalidMessage)
		p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"still here"}}`, given))
		if got := a.answer(asked); got.Text != "still here" {
			t.Errorf("answer: got %+v, want still here", got)
		}
	})
}

func TestAnExtensionThatWasNotDeclaredIsRefused(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		for _, name := range []string{"task_accepted", "task_progress", "task_request", "task_cancel"} {
			p.say(string(samplesOfPage(t)[name]))
			if _, r := p.refused(wire.CodeUnsupported); !strings.Contains(r.Message, "payload.config.extensions") {
				t.Errorf("%s: got %q, want one that says where to declare it", name, r.Message)
			}
		}
	})
}

func TestAChunkThatComesTwiceIsTakenOnce(t *testing.T) {
	onStage(t, func(s *stage) {
		agent, conn := coretest.Pipe[[]byte, []byte](4)
		ended := make(chan link.Reason, 1)
		// register, accepted, then the chunk "b" passes twice.
		faulty := coretest.Break(conn, coretest.Fault{Duplicate: 4}, coretest.Fault{})
		go func() { ended <- parallax.Serve(s.Context(), s.hub, faulty, parallax.Options{AgentID: "a"}) }()
		s.Cleanup(func() { _ = agent.Close(link.Reason{}); <-ended })
		p := &peer{s, agent, ended}
		p.say(`{"type":"register","id":"r","payload":` + streaming + `}`)
		p.hear(wire.TypeRegistered)
		a := s.asker()
		asked := a.ask("a", "go")
		given := inside[wire.Task](p, p.hear(wire.TypeTask))
		for i, chunk := range []string{"a", "b", "c"} {
			p.say(fill(fmt.Sprintf(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":%d,"text":%q}}`, i+1, chunk), given))
		}
		p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, given))
		p.say(fill(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, given))
		if got := a.answer(asked); got.Text != "abc" {
			t.Errorf("answer: got %q, want abc", got.Text)
		}
		p.quiet()
		s.counted("parallax.ignored.duplicate", 1)
		s.counted("parallax.ignored.late", 1)
	})
}

func TestAHoleInAStreamFailsTheTask(t *testing.T) {
	onStage(t, func(s *stage) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.asker()
		asked := a.ask("a", "go")
		given := inside[wire.Task](p, p.hear(wire.TypeTask))
		p.say(fill(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":1,"text":"a"}}`, given))
		p.say(fill(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":3,"text":"c"}}`, given))
		p.refused(wire.CodeInvalidMessage)
		if c := inside[wire.TaskCancelled](p, p.hear(wire.TypeTaskCancelled)); c.TaskID != given.TaskID || c.Reason != "progress_lost" {
			t.Errorf("cancelled: got %+v, want the task, for progress_lost", c)
		}
		if got := a.answer(asked); got.End != core.KindFailed || got.Text != "a" {
			t.Errorf("answer: got %+v, want it failed behind a", got)
		}
		p.quiet()
	})
}
