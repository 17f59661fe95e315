package acp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/acptest"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// partialAnswer returns the events that an agent sends before it fails.
func partialAnswer() []core.Body {
	return []core.Body{
		core.Text{Text: "roses "}, core.Thinking{Text: "hm"}, core.Text{Text: "are"}, core.File{Name: "f", Data: []byte{0}}, core.Usage{Input: 3, Output: 4},
	}
}

const halfwayPartial = `{"summary":"roses are","data":{"files":[{"name":"f","data":"AA=="}]},"tokens_used":7}`

func TestAPartialAnswerBeforeAFailureReachesTheRequester(t *testing.T) {
	query := `{"id":"q1","to":"poet","kind":"query","payload":{"question":"?","deadline_ms":5000}}`
	delegate := `{"id":"q1","to":"poet","kind":"delegate","payload":{"task":"!","deadline_ms":5000}}`
	failed := core.Failed{Fault: core.NewFault(core.CodeBudget, "no money")}
	for name, c := range map[string]struct {
		ask  string
		end  core.Body // nil lets the deadline pass
		want string
	}{
		"failed":     {query, failed, `{"code":"budget","message":"no money","retryable":false,"partial":` + halfwayPartial + `}`},
		"cancelled":  {query, core.Cancelled{Reason: "stop"}, `{"code":"cancelled","message":"stop","retryable":false,"partial":` + halfwayPartial + `}`},
		"late":       {query, nil, `{"code":"timeout","message":"no answer by the deadline of 2000-01-01T00:00:05Z","retryable":true,"partial":` + halfwayPartial + `}`},
		"delegate":   {delegate, failed, `{"status":"failed","outcome":"roses are","data":{"files":[{"name":"f","data":"AA=="}]},"error":"budget: no money","tokens_used":7,"task_ref":"!"}`},
		"delegate 2": {delegate, core.Cancelled{Reason: "stop"}, `{"status":"failed","outcome":"roses are","data":{"files":[{"name":"f","data":"AA=="}]},"error":"cancelled: stop","tokens_used":7,"task_ref":"!"}`},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				poet, kit := s.plainAgent("poet", core.Card{}), s.peer("kit")
				kit.send("%s", c.ask)
				if c.ask == delegate {
					kit.expect(wire.KindAck)
				}
				task := s.assigned(poet)
				s.report(poet, task, partialAnswer()...)
				if c.end != nil {
					s.report(poet, task, c.end)
				}
				if e := kit.next(); string(e.Payload) != c.want {
					t.Errorf("got %s %s\nwant %s", e.Kind, e.Payload, c.want)
				}
				s.counted("acp.folded.text", 2)
				s.counted("acp.folded.file", 1)
				s.counted("acp.folded.usage", 1)
				s.counted("acp.folded.thinking", 1)
			})
		})
	}
}

func TestAFailureDoesNotRepeatReportedProgress(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		poet, kit := s.plainAgent("poet", core.Card{}), s.peer("kit").declareProgress()
		kit.send(`{"id":"q1","to":"poet","kind":"query","payload":{"question":"?"}}`)
		s.report(poet, s.assigned(poet), append(partialAnswer(), core.Failed{Fault: core.NewFault(core.CodeBudget, "no money")})...)
		progress, last := kit.readProgress("q1")
		var text strings.Builder
		for _, e := range progress {
			text.WriteString(wire.TextOf(e.Payload, "text"))
		}
		if want := `{"code":"budget","message":"no money","retryable":false}`; text.String() != "roses are" || string(last.Payload) != want {
			t.Errorf("got %q in pieces and then %s, want roses are and %s", text.String(), last.Payload, want)
		}
	})
}

func TestATranslatedEndHasContentMissingInProgress(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam, kit := s.agent("fam", `{"extensions":["progress"]}`), s.peer("kit").declareProgress()
		kit.send(`{"id":"q1","to":"fam","kind":"query","payload":{"question":"?"}}`)
		fam.expect(wire.KindQuery)
		fam.send(`{"id":"p1","kind":"progress","ref":"q1","payload":{"seq":1,"thinking":"hm"}}`)
		fam.send(`{"id":"e","kind":"result","ref":"q1","payload":{"status":"failed","outcome":"half of it","error":"no flour"}}`)
		progress, last := kit.readProgress("q1")
		want := `{"code":"internal","message":"no flour","retryable":false,"partial":{"summary":"half of it"}}`
		if len(progress) != 1 || last.Kind != wire.KindError || string(last.Payload) != want {
			t.Errorf("got %d pieces and %s %s, want one and an error %s", len(progress), last.Kind, last.Payload, want)
		}
	})
}

func TestAPartialAnswerOfAnACPAgentReachesAPeerWithoutTheExtension(t *testing.T) {
	const said = `{"id":"p1","kind":"progress","ref":"q1","payload":{"seq":1,"text":"ro"}}`
	for name, c := range map[string]struct {
		kind  string
		says  []string
		want  string
		after string
	}{
		"in pieces": {"query", []string{said, `{"id":"e","kind":"error","ref":"q1","payload":{"code":"internal","message":"oops","z": 1}}`},
			`{"id":"e","kind":"error","ref":"q1","payload":{"code":"internal","message":"oops","z": 1,"partial":{"summary":"ro"}},"from":"fam","to":"kit"}`, "ro"},
		"in empty pieces": {"query", []string{strings.Replace(said, `"ro"`, `""`, 1), `{"id":"e","kind":"error","ref":"q1","payload":{"code":"internal","message":"oops"}}`},
			`{"id":"e","kind":"error","ref":"q1","payload":{"code":"internal","message":"oops"},"from":"fam","to":"kit"}`, ""},
		"in the error": {"query", []string{`{"id":"e","kind":"error","ref":"q1","payload":{"code":"internal","message":"oops","partial":{"summary":"ro","x": 1}}}`},
			`{"id":"e","kind":"error","ref":"q1","payload":{"code":"internal","message":"oops","partial":{"summary":"ro","x": 1}},"from":"fam","to":"kit"}`, "ro"},
		"as its own matter": {"query", []string{`{"id":"e","kind":"error","ref":"q1","payload":{"code":"internal","message":"oops","partial":true}}`},
			`{"id":"e","kind":"error","ref":"q1","payload":{"code":"internal","message":"oops","partial":true},"from":"fam","to":"kit"}`, ""},
		"in the outcome": {"delegate", []string{`{"id":"e","kind":"result","ref":"q1","payload":{"status":"failed","outcome":"half of it","error":"no flour","data":{"n": 1}}}`},
			`{"id":"e","kind":"result","ref":"q1","payload":{"status":"failed","outcome":"half of it","error":"no flour","data":{"n": 1}},"from":"fam","to":"kit"}`, "half of it\n{\"n\": 1}"},
		"in pieces of a result": {"delegate", []string{said, `{"id":"e","kind":"result","ref":"q1","payload":{"status":"failed","outcome":"r...","error":"no flour"}}`},
			`{"id":"e","kind":"result","ref":"q1","payload":{"status":"failed","outcome":"ro","error":"no flour"},"from":"fam","to":"kit"}`, "ro"},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				fam, kit := s.agent("fam", `{"extensions":["progress"]}`), s.peer("kit")
				kit.send(`{"id":"q1","to":"fam","kind":"%s","payload":{"question":"?","task":"!"}}`, c.kind)
				if c.kind == "delegate" {
					kit.expect(wire.KindAck)
				}
				fam.expect(wire.Kind(c.kind))
				for _, e := range c.says {
					fam.send("%s", e)
				}
				if got := string(kit.next().Raw); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
				id := fam.expect(wire.KindQuery).ID
				for _, e := range c.says {
					if c.kind == "query" {
						fam.send("%s", strings.NewReplacer(`"q1"`, `"`+id+`"`, `"id":"`, `"id":"again`).Replace(e))
					}
				}
				if c.kind == "query" {
					if got := s.ended(task); got.Text != c.after || got.Fault == nil || got.Fault.Message != "oops" {
						t.Errorf("a requester of another dialect: got %+v, want %q and then oops", got, c.after)
					}
				}
			})
		})
	}
}

func TestAPartialAnswerThatDoesNotFitIsOmittedAndTheErrorSaysSo(t *testing.T) {
	long := strings.Repeat("x", wire.DefaultMaxEnvelopeBytes)
	for kind, status := range map[wire.Kind]string{wire.KindQuery: "", wire.KindDelegate: wire.StatusFailed} {
		t.Run(string(kind), func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				poet, kit := s.plainAgent("poet", core.Card{}), s.peer("kit")
				kit.send(`{"id":"q1","to":"poet","kind":"%s","payload":{"question":"?","task":"!"}}`, kind)
				if kind == wire.KindDelegate {
					kit.expect(wire.KindAck)
				}
				s.report(poet, s.assigned(poet), core.Text{Text: long}, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "no more")})
				e := kit.next()
				why := wire.TextOf(e.Payload, "message") + wire.TextOf(e.Payload, "error")
				if wire.TextOf(e.Payload, "status") != status || !strings.Contains(string(e.Payload), "overloaded") || !strings.Contains(why, "no more (what was answered before has 1000000 bytes") {
					t.Errorf("got %.300s, want overloaded, and a note of the omitted parts", e.Raw)
				}
				s.counted("acp.refused.text", 1)
			})
		})
	}
	t.Run("of an ACP agent", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			fam, kit := s.agent("fam", `{"extensions":["progress"]}`), s.peer("kit")
			kit.send(`{"id":"q1","to":"fam","kind":"query","payload":{"question":"?"}}`)
			fam.expect(wire.KindQuery)
			for i := range 2 {
				fam.send(`{"id":"p%d","kind":"progress","ref":"q1","payload":{"seq":%d,"text":"%s"}}`, i, i, long[:600_000])
			}
			fam.send(`{"id":"e","kind":"error","ref":"q1","payload":{"code":"overloaded","message":"no more","retryable":true}}`)
			if got := expect[wire.Error](kit, wire.KindError, "q1"); got.Code != wire.CodeOverloaded || !got.Retryable || !strings.Contains(got.Message, "1200000 bytes") {
				t.Errorf("got %+v, want overloaded, and a note of the omitted parts", &got)
			}
			s.counted("acp.refused.text", 1)
		})
	})
}

func TestClientAndAgentKeepThePartialAnswerOfAFailure(t *testing.T) {
	for _, noProgress := range []bool{true, false} {
		for _, progress := range []bool{true, false} {
			withHub(t, func(t *testing.T, s *setup) {
				s.work(core.Card{ID: "poet"}, acpclient.WorkOptions{NoProgress: noProgress}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
					for _, b := range partialAnswer() {
						if err := say(b); err != nil {
							return err
						}
					}
					return core.NewFault(core.CodeBudget, "no money")
				})
				c := s.client(acptest.Options{ID: "kit", Progress: progress})
				for _, intent := range []core.Intent{core.IntentAsk, core.IntentDelegate} {
					a, err := c.Ask(s.Context(), core.Request{Intent: intent, To: core.ToAgent("poet"), Content: "?"}, nil)
					want := core.NewFault(core.CodeBudget, "no money")
					if !errors.Is(err, &core.Fault{Code: core.CodeBudget}) || a.Text != "roses are" || len(a.Files) != 1 || a.TokensUsed != 7 {
						t.Errorf("agent with progress: %t, client with: %t, %s: got %+v and %v, want roses are, a file, 7 tokens and %v", !noProgress, progress, intent, a, err, want)
					}
				}
			})
		}
	}
}

func TestTheAgentEndReportsAPartialAnswerThatDoesNotFit(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.work(core.Card{ID: "poet"}, acpclient.WorkOptions{NoProgress: true}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			return errors.Join(say(core.Text{Text: strings.Repeat("x", wire.DefaultMaxEnvelopeBytes)}), core.NewFault(core.CodeBudget, "no money"))
		})
		got := s.ended(s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("poet"), Content: "?"}))
		if got.Fault == nil || got.Fault.Code != core.CodeBudget || !strings.Contains(got.Fault.Message, "1000000 bytes") {
			t.Errorf("got %+v, want budget, and a note of the omitted parts", got.Fault)
		}
	})
}

func TestAFailureIsRetriedUnlessThereWasOutput(t *testing.T) {
	for partial, retried := range map[string]bool{``: true, `,"partial":{}`: true, `,"partial":{"tokens_used":5}`: true, `,"partial":{"summary":"ro"}`: false} {
		withHub(t, func(t *testing.T, s *setup) {
			one, two := s.agent("one", `{"domains":["d"]}`), s.agent("two", `{"domains":["d"]}`)
			task := s.ask(s.plainSession("rest"), core.Request{To: core.ToDomain("d"), Content: "?", Deadline: time.Now().Add(time.Second)})
			id := one.expect(wire.KindQuery).ID
			one.send(`{"id":"e","kind":"error","ref":"%s","payload":{"code":"overloaded","message":"no","retryable":true%s}}`, id, partial)
			if retried {
				two.answerQuery("roses")
			}
			if got := s.ended(task); retried != (got.End == core.KindDone) {
				t.Errorf("with %q: got %+v, want a retry: %t", partial, got, retried)
			}
		})
	}
}
