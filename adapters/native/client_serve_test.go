package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/question"
)

// works runs a client that works until the test or the connection ends, and returns once it has joined.
func (s *setup) works(opts native.Options, run func(ctx context.Context, conn link.Conn[[]byte, []byte], joined func(*client.Client)) error) <-chan error {
	s.Helper()
	end, _ := s.connect(opts)
	ended, joined := make(chan error, 1), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { ended <- run(s.Context(), end, func(*client.Client) { close(joined) }) })
	s.Cleanup(func() {
		_ = end.Close(link.Reason{Cause: link.Normal})
		running.Wait()
	})
	select {
	case <-joined:
	case err := <-ended:
		s.Fatalf("got %v, want the agent joined", err)
	}
	return ended
}

// handles is works for a handler.
func (s *setup) handles(opts native.Options, card core.Card, handle core.Handler, with client.WorkOptions) <-chan error {
	s.Helper()
	return s.works(opts, func(ctx context.Context, conn link.Conn[[]byte, []byte], joined func(*client.Client)) error {
		with.Joined = joined
		return client.Work(ctx, conn, card, handle, with)
	})
}

// ends waits until everything is delivered, and returns the last event.
func (p *peer) ends() core.Body {
	p.Helper()
	told := p.take()
	if len(told) == 0 {
		p.Fatal("got nothing, want the end of a task")
	}
	return told[len(told)-1].Event.Body
}

func TestTheEndOfAHandlerIsTheEndOfItsTask(t *testing.T) {
	withHub(t, func(s *setup) {
		s.handles(native.Options{AgentID: "worker", FrameBytes: 1000}, core.Card{ID: "worker"}, func(ctx context.Context, r core.Request, report func(core.Body) error) error {
			switch r.Content {
			case "fail":
				return core.NewFault(core.CodeOverloaded, "enough")
			case "break":
				return errors.New("a secret")
			case "long":
				return report(core.Text{Text: strings.Repeat("x", 2000)})
			case "wait":
				<-ctx.Done()
				return ctx.Err()
			case "twice":
				if err := report(core.Done{Data: json.RawMessage(`1`)}); err != nil {
					return err
				}
				if err := report(core.Text{Text: "late"}); !errors.Is(err, &core.Fault{Code: core.CodeConflict}) {
					t.Errorf("after the end: got %v, want a conflict", err)
				}
				return errors.New("too late to fail")
			}
			return nil
		}, client.WorkOptions{})
		asker := s.peer("asker")
		for _, tt := range []struct {
			content string
			cancel  bool
			want    string
		}{
			{"well", false, `done {}`},
			{"fail", false, `failed {"fault":{"code":"overloaded","message":"enough","retryable":true}}`},
			{"break", false, `failed {"fault":{"code":"internal","message":"` + core.InternalMessage + `"}}`},
			{"long", false, `failed {"fault":{"code":"too_large","message":"text makes a frame of `},
			{"twice", false, `done {"data":1}`},
			{"wait", true, `cancelled {"reason":"enough"}`},
			{"well", false, `done {}`}, // there is room again after each
		} {
			id := asker.open(ask("worker", tt.content))
			if tt.cancel {
				synctest.Wait()
				asker.call(core.Cancel{Task: id, Reason: "enough"}, wire.With{})
			}
			body := asker.ends()
			if got := body.Kind().String() + " " + asJSON(body); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: got %s, want %s", tt.content, got, tt.want)
			}
		}
	})
}

func TestAnAgentIsToldOfContextAndDecisions(t *testing.T) {
	withHub(t, func(s *setup) {
		told := make(chan string, 8)
		s.handles(newPeer("worker"), core.Card{ID: "worker"}, func(ctx context.Context, _ core.Request, report func(core.Body) error) error {
			if err := report(core.ApprovalRequested{ID: "t", Name: "rm", Input: "{}"}); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, client.WorkOptions{
			Injected: func(id core.TaskID, in core.Injected) (bool, string) {
				told <- string(id) + " " + in.Content
				return in.Content != "no", "not that"
			},
			Decided: func(id core.TaskID, d core.ApprovalDecided) { told <- string(id) + " " + asJSON(d.Approved) },
		})
		asker := s.peer("asker")
		id := asker.open(ask("worker", "?"))
		asker.take()
		for content, want := range map[string]core.InjectionAnswered{"no": {ID: "i", Reason: "not that"}, "yes": {ID: "i", Accepted: true, Reason: "not that"}} {
			asker.call(core.Inject{Task: id, Context: core.Injected{ID: "i", Content: content}}, wire.With{})
			if got := asker.ends(); got != core.Body(want) {
				t.Errorf("%s: got %#v, want %#v", content, got, want)
			}
			if got, want := <-told, string(id)+" "+content; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		asker.call(core.Decide{Task: id, Decision: core.ApprovalDecided{ID: "t", Approved: true}}, wire.With{})
		if got, want := <-told, string(id)+" true"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		asker.call(core.Cancel{Task: id}, wire.With{})
	})
}

func TestANoticeIsWorkedOnInSilence(t *testing.T) {
	withHub(t, func(s *setup) {
		said := make(chan error, 1)
		var log lockedLog
		s.handles(newPeer("worker"), core.Card{ID: "worker"}, func(_ context.Context, r core.Request, report func(core.Body) error) error {
			if r.Notice == nil {
				return report(core.Assigned{Agent: "worker"}) // which no agent may say
			}
			said <- report(core.Text{Text: "read"})
			return errors.New("nobody is told")
		}, client.WorkOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
		asker := s.peer("asker")
		asker.open(core.Request{Intent: core.IntentNotify, To: core.ToAgent("worker"), Notice: &core.Notice{Topic: "door.open"}})
		if err := <-said; err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if got := kinds(asker.take()); slices.Contains(got, "text") || got[len(got)-1] != "done" {
			t.Errorf("got %v, want the notice done, and nothing said", got)
		}
		if got := log.String(); got != "" {
			t.Errorf("got the log %s, want nothing refused", got)
		}
		asker.open(ask("worker", "?"))
		asker.take()
		if got := log.String(); !strings.Contains(got, "the hub refused a frame") || !strings.Contains(got, "an agent does not say assigned") {
			t.Errorf("got the log %q, want what the hub refused", got)
		}
	})
}

// lockedLog is what was logged.
type lockedLog struct {
	mu sync.Mutex
	strings.Builder
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.String()
}

func TestWorkSaysWhyItEnded(t *testing.T) {
	idle := func(context.Context, core.Request, func(core.Body) error) error { return nil }
	withHub(t, func(s *setup) {
		first := s.handles(native.Options{}, core.Card{ID: "worker"}, idle, client.WorkOptions{})
		end, _ := s.connect(native.Options{AgentID: "other"})
		wantFault(t, "a card with another id", client.Work(s.Context(), end, core.Card{ID: "worker"}, idle, client.WorkOptions{}), core.CodeNotAuthorized)
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "worker"); !here {
			t.Error("got the agent gone, want it undisturbed")
		}
		go func() { _ = s.hub.Close(context.Background(), "maintenance") }()
		wantFault(t, "a hub that stops", <-first, core.CodeUnreachable)
	})
	withHub(t, func(s *setup) {
		end, _ := s.connect(native.Options{})
		ctx, stop := context.WithCancel(s.Context())
		stop()
		if err := client.Work(ctx, end, core.Card{ID: "worker"}, idle, client.WorkOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: got %v, want that it did not join", err)
		}
		end, _ = s.connect(native.Options{})
		card := core.Card{ID: "worker", Metadata: map[string]json.RawMessage{"x": json.RawMessage(`{`)}}
		if err := client.Work(s.Context(), end, card, idle, client.WorkOptions{}); err == nil || !strings.Contains(err.Error(), "JSON") {
			t.Errorf("a card that is no JSON: got %v, want that it did not join", err)
		}
	})
}

func TestAServedAgentHasAllOfItsTurn(t *testing.T) {
	withHub(t, func(s *setup) {
		second, asker := s.agent(able("second")), s.peer("asker")
		turns, finish := make(chan agent.Turn, 1), make(chan error)
		s.works(newPeer("served"), func(ctx context.Context, conn link.Conn[[]byte, []byte], joined func(*client.Client)) error {
			return client.Serve(ctx, conn, core.Card{ID: "served", Features: core.FeatureInjection | core.FeatureApprovals}, func(_ context.Context, turn agent.Turn) error {
				turns <- turn
				return <-finish
			}, client.WorkOptions{Joined: joined})
		})
		id := asker.open(ask("served", "Well?"))
		turn := <-turns
		if turn.Task() != id || turn.Request().Content != "Well?" || turn.From().ID != "asker" || turn.Hops() != 0 {
			t.Errorf("got task %s %q of %q, want %s of asker", turn.Task(), turn.Request().Content, turn.From().ID, id)
		}

		_, err := turn.Ask(s.Context(), question.Question{Text: "Which?"})
		wantFault(t, "a question to nobody", err, core.CodeUnsupported)
		_, err = turn.CallTool(s.Context(), "none", nil)
		wantFault(t, "a tool that is not there", err, core.CodeUnsupported)

		called := make(chan asked, 1)
		go func() {
			out, err := turn.CallTool(s.Context(), "agent_ask", json.RawMessage(`{"to":"second","content":"?"}`))
			called <- asked{core.Answer{Text: string(out)}, err}
		}()
		theirs := second.take()[0].Task
		second.report(theirs, core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "enough")})
		got := <-called
		wantFault(t, "a tool that fails", got.err, core.CodeOverloaded)
		if !strings.Contains(got.answer.Text, `"text":"half"`) {
			t.Errorf("got the output %s, want what came before the tool failed", got.answer.Text)
		}

		if err := turn.Report(core.ApprovalRequested{ID: "t", Name: "rm", Input: "{}"}, nil); err != nil {
			t.Error(err)
		}
		asker.take()
		asker.call(core.Inject{Task: id, Context: core.Injected{ID: "i", Content: "by the way"}}, wire.With{})
		asker.call(core.Decide{Task: id, Decision: core.ApprovalDecided{ID: "t", Approved: true}}, wire.With{})
		asker.call(core.Cancel{Task: id, Reason: "enough"}, wire.With{})
		for _, want := range []string{"injected", "approval_decided", "cancel_requested"} {
			if b, err := turn.Next(s.Context()); err != nil || b.Kind().String() != want {
				t.Errorf("got %v and %v, want %s", b, err, want)
			}
		}
		finish <- core.NewFault(core.CodeCancelled, "stopped")
		if got, ok := asker.ends().(core.Cancelled); !ok || got.Reason != "stopped" {
			t.Errorf("got %#v, want it cancelled as the agent said", got)
		}
		asker.open(ask("served", "Again?"))
		<-turns
		finish <- nil
		if got := asker.ends(); got.Kind() != core.KindDone {
			t.Errorf("got %#v, want the next task done", got)
		}
	})
}
