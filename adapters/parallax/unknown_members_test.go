package parallax_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// frame returns the next frame as values, without its timestamp.
func (p *peer) frame() map[string]any {
	p.Helper()
	raw, err := p.conn.Receive(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	f := fromJSON(p, raw).(map[string]any)
	delete(f, "timestamp")
	return f
}

// expectFrame checks that the next frame is want, except for its timestamp.
func (p *peer) expectFrame(want string) {
	p.Helper()
	if diff := cmp.Diff(fromJSON(p, []byte(want)), any(p.frame())); diff != "" {
		p.Errorf("messages differ (-want +got):\n%s", diff)
	}
}

func TestUnknownMembersOfARequestReachAParallaxAgentButNotItsSignature(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, full)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","timestamp":"2026-01-02T03:04:05Z","trace":{"span":[1]},"signature":"sha256:abc",
			"payload":{"to":"worker","patternName":"mine","patternVersion":"7","input":{"content":"x"},"timeout":9000,"context":{"stepIndex":3,"lane":"a"},"trace":9}}`)
		got := worker.frame()
		id := got["payload"].(map[string]any)["taskId"].(string)
		want := `{"type":"task","id":"hub_1","trace":{"span":[1]},"payload":{"taskId":"TASK","executionId":"TASK.1","capability":"x","patternName":"mine","patternVersion":"7",
			"input":{"content":"x"},"timeout":9000,"priority":"normal","trace":9,
			"context":{"stepIndex":0,"totalSteps":1,"lane":"a","intent":"ask","requester":"asker","thread":"TASK"}}}`
		if diff := cmp.Diff(fromJSON(t, []byte(strings.ReplaceAll(want, "TASK", id))), any(got)); diff != "" {
			t.Errorf("task differs (-want +got):\n%s", diff)
		}
		s.expectCount("parallax.refused.signature", 1)
		worker.send(`{"type":"task_result","id":"m","payload":{"taskId":"` + id + `"}}`)
	})
}

func TestUnknownMembersOfAnAnswerReachAParallaxRequesterButNotItsSignature(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, full)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"x"}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		long := strings.Repeat("x", wire.PieceBytes+1)
		for _, frame := range []string{
			`{"type":"task_accepted","id":"m1","trace":1,"payload":{"taskId":"TASK","estimatedMs":5,"node":"a"}}`,
			`{"type":"task_progress","id":"m2","trace":2,"signature":"sha256:abc","payload":{"taskId":"TASK","seq":1,"text":"he","confidence":0.5}}`,
			`{"type":"task_progress","id":"m3","trace":3,"payload":{"taskId":"TASK","seq":2,"thinking":"` + long + `","mood":"good"}}`,
			`{"type":"task_progress","id":"m4","trace":4,"payload":{"taskId":"TASK","seq":3,"mood":"better"}}`,
			`{"type":"task_result","id":"m5","trace":{"span":5},"signature":"sha256:def","payload":{"taskId":"TASK","status":"completed","result":null,"duration":3}}`,
		} {
			worker.send(withIDs(frame, assigned))
		}
		const ids = `"requestId":"q1","taskId":"TASK","executionId":"TASK.1"`
		for _, want := range []string{
			`{"type":"task_accepted","id":"hub_1","trace":1,"payload":{` + ids + `,"estimatedMs":5,"node":"a"}}`,
			`{"type":"task_progress","id":"hub_2","trace":2,"payload":{` + ids + `,"seq":1,"text":"he","confidence":0.5}}`,
			`{"type":"task_progress","id":"hub_3","trace":3,"payload":{` + ids + `,"seq":2,"thinking":"` + long[:wire.PieceBytes] + `","mood":"good"}}`,
			`{"type":"task_progress","id":"hub_4","payload":{` + ids + `,"seq":3,"thinking":"x"}}`,
			`{"type":"task_progress","id":"hub_5","trace":4,"payload":{` + ids + `,"seq":4,"mood":"better"}}`,
			`{"type":"task_result","id":"hub_6","trace":{"span":5},"payload":{` + ids + `,"status":"completed","result":null,"duration":3}}`,
		} {
			asker.expectFrame(withIDs(want, assigned))
		}
		s.expectCount("parallax.refused.signature", 2)
	})
}

func TestTheErrorOfAFailedAttemptReachesAParallaxRequester(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, `{"capabilities":[],"config":{"extensions":["task_progress","task_request"]}}`)
		one := s.registered(parallax.Options{AgentID: "one"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"capability":"x","input":"x"}}`)
		assigned := decode[wire.Task](one, one.receive(wire.TypeTask))
		two := s.registered(parallax.Options{AgentID: "two"}, full)
		one.send(withIDs(`{"type":"task_error","id":"m","trace":1,"payload":{"taskId":"TASK","error":{"code":"OUT_OF_CHEESE","message":"no cheese","details":{"shelf":3}},"retryable":true}}`, assigned))
		two.receive(wire.TypeTask)
		asker.expectFrame(withIDs(`{"type":"task_progress","id":"hub_1","trace":1,"payload":{"requestId":"q1","taskId":"TASK","executionId":"TASK.1","seq":1,
			"retrying":{"attempt":1,"agent":"one","error":{"code":"OUT_OF_CHEESE","message":"no cheese","details":{"shelf":3}}}}}`, assigned))
		two.send(withIDs(`{"type":"task_error","id":"m","trace":2,"payload":{"taskId":"TASK","error":{"code":"MY_OWN","message":"no"},"retryable":false}}`, assigned))
		asker.expectFrame(withIDs(`{"type":"task_error","id":"hub_2","trace":2,"payload":{"requestId":"q1","taskId":"TASK","executionId":"TASK.2","error":{"code":"MY_OWN","message":"no"},"retryable":false}}`, assigned))
	})
}

func TestOutputBeforeAFailureReachesARequesterWithoutProgress(t *testing.T) {
	for name, c := range map[string]struct{ end, want string }{
		"failed": {
			`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"PROCESSING_ERROR","message":"broke"},"retryable":true}}`,
			`"error":{"code":"PROCESSING_ERROR","message":"broke"},"retryable":true,`,
		},
		"cancelled": {
			`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"CANCELLED","message":"stopped"}}}`,
			`"error":{"code":"CANCELLED","message":"stopped"},"retryable":false,`,
		},
		"with a failed result": {
			`{"type":"task_result","id":"m","payload":{"taskId":"TASK","status":"failed","result":"broke"}}`,
			`"error":{"code":"INTERNAL_ERROR","message":"broke"},"retryable":false,`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(s *setup) {
				asker := s.registered(parallax.Options{AgentID: "asker"}, onlyAsks)
				worker := s.registered(parallax.Options{AgentID: "worker"}, full)
				asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"x"}}`)
				assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
				for _, sent := range []string{`"thinking":"hm","sure":0.5`, `"text":"ha"`, `"text":"lf"`, `"usage":{"input":1,"output":2}`, `"file":{"name":"f","data":"aGk="}`, `"mood":"bad"`} {
					worker.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK",`+sent+`}}`, assigned))
				}
				worker.send(withIDs(c.end, assigned))
				asker.expectFrame(withIDs(`{"type":"task_error","id":"hub_1","payload":{"requestId":"q1","taskId":"TASK","executionId":"TASK.1",`+c.want+`
					"partialResult":{"content":"half","files":[{"name":"f","data":"aGk="}]},
					"metadata":{"tokensUsed":3,"progress":[{"thinking":"hm","sure":0.5},{"usage":{"input":1,"output":2}},{"mood":"bad"}]}}}`, assigned))
				for _, kind := range []core.Kind{core.KindAccepted, core.KindThinking, core.KindUsage, core.KindForeign} {
					s.expectCount("parallax.folded."+kind.String(), 1)
				}
			})
		})
	}
}

func TestOutputBeforeADeadlineReachesARequesterWithoutProgress(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, onlyAsks)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"x","timeout":1000}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		worker.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","text":"half"}}`, assigned))
		e := decode[wire.TaskError](asker, asker.receive(wire.TypeTaskError))
		if e.Error.Code != "TIMEOUT" || string(e.PartialResult) != `"half"` {
			t.Errorf("got %+v, want TIMEOUT and half", e)
		}
		worker.receive(wire.TypeTaskCancelled)
		worker.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"CANCELLED"}}}`, assigned))
	})
}

func TestARequesterWithProgressGetsOutputBeforeAFailureOnce(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, full)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"x"}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		worker.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","text":"half"}}`, assigned))
		worker.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"TIMEOUT","message":"late"}}}`, assigned))
		asker.receive(wire.TypeTaskAccepted)
		asker.receive(wire.TypeTaskProgress)
		asker.expectFrame(withIDs(`{"type":"task_error","id":"hub_3","payload":{"requestId":"q1","taskId":"TASK","executionId":"TASK.1","error":{"code":"TIMEOUT","message":"late"},"retryable":true}}`, assigned))
	})
}

func TestAPartialResultThatDoesNotFitIsReportedAsOmitted(t *testing.T) {
	withHub(t, func(s *setup) {
		asker := s.registered(parallax.Options{AgentID: "asker"}, onlyAsks)
		worker := s.registered(parallax.Options{AgentID: "worker"}, full)
		asker.send(`{"type":"task_request","id":"q1","payload":{"to":"worker","input":"x"}}`)
		assigned := decode[wire.Task](worker, worker.receive(wire.TypeTask))
		for range 3 {
			worker.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","text":"`+strings.Repeat("x", 400_000)+`"}}`, assigned))
		}
		worker.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","thinking":"hm"}}`, assigned))
		worker.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"TIMEOUT","message":"late"}}}`, assigned))
		e := decode[wire.TaskError](asker, asker.receive(wire.TypeTaskError))
		if e.Error.Code != "TIMEOUT" || e.PartialResult != nil || e.Omitted == nil || e.Omitted.Kind != "partialResult" || e.Omitted.Bytes != 1_200_002 || e.Metadata.ProgressOmitted != 1 {
			t.Errorf("got %+v and %+v, want the error with what was left out", e, e.Omitted)
		}
		s.expectCount("parallax.refused.partial_result", 1)
		s.expectCount("parallax.refused.progress", 1)
	})
}

func TestATaskErrorMayHaveAPartialResult(t *testing.T) {
	for name, c := range map[string]struct{ sent, want, text string }{
		"words":            {`"partialResult":"half"`, "opened assigned accepted text failed", "half"},
		"nothing":          {`"partialResult":null`, "opened assigned failed", ""},
		"words and a file": {`"partialResult":{"content":"half","files":[{"name":"f","data":"aGk="}]}`, "opened assigned accepted text file failed", "half"},
		"a structure":      {`"partialResult":{"n":1}`, "opened assigned accepted text failed", `{"n":1}`},
		"with progress":    {`"metadata":{"tokensUsed":3,"progress":[{"thinking":"hm"},{"text":"ha"},{"text":"lf"},{"n":1},7]},"partialResult":"half"`, "opened assigned accepted thinking text text usage failed", "half"},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(s *setup) {
				p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":["x"]}`)
				a := s.requester()
				opened := a.ask("a", "go")
				assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
				p.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"X","message":"broke"},`+strings.Replace(c.sent, ",7]", "]", 1)+`}}`, assigned))
				events := a.events(opened)
				if got := kinds(events); got != c.want {
					t.Errorf("events: got %s, want %s", got, c.want)
				}
				if got := core.Fold(events); got.Text != c.text || got.Fault.Message != "broke" {
					t.Errorf("got %q and %v, want %q and broke", got.Text, got.Fault, c.text)
				}
			})
		})
	}
}

func TestAFailedResultIsKeptWhole(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":["x"]}`)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","status":"failed","result":{"summary":"broke","shelf":3}}}`, assigned))
		if got := a.answer(opened); got.Fault.Message != "broke" || got.Text != `{"summary":"broke","shelf":3}` {
			t.Errorf("got %q and %v, want the whole result, and broke", got.Text, got.Fault)
		}
	})
}

func TestAPlainWorkerSendsItsOutputWithAFailure(t *testing.T) {
	for name, end := range map[string]core.Body{"failed": core.Failed{Fault: core.NewFault(core.CodeBudget, "spent")}, "cancelled": core.Cancelled{Reason: "enough"}} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(s *setup) {
				s.work(core.Card{ID: "w"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
					for _, b := range []core.Body{core.Thinking{Text: "hm"}, core.Text{Text: "half"}, core.Usage{Input: 1, Output: 2}, core.File{Name: "f", Data: []byte("hi")}, end} {
						if err := say(b); err != nil {
							return err
						}
					}
					return nil
				}, parallaxclient.WorkOptions{Plain: true})
				a := s.requester()
				events := a.events(a.ask("w", "go"))
				if got, want := kinds(events), "opened assigned accepted thinking usage text file "+end.Kind().String(); got != want {
					t.Errorf("events: got %s, want %s", got, want)
				}
				got := core.Fold(events)
				if got.Text != "half" || got.TokensUsed != 3 || len(got.Files) != 1 {
					t.Errorf("got %+v, want the whole output", got)
				}
			})
		})
	}
}
