package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// workFunc is an agent that is always ready.
type workFunc func(context.Context, agent.Turn) error

func (workFunc) Run(ctx context.Context, ready func(agent.Profile)) error {
	ready(agent.Profile{})
	<-ctx.Done()
	return nil
}

func (f workFunc) Work(ctx context.Context, t agent.Turn) error { return f(ctx, t) }

const all = core.FeatureStreaming | core.FeatureCancellation | core.FeatureInjection | core.FeatureApprovals | core.FeatureNotices

// served is a hub with an agent that Serve gives its tasks.
type served struct {
	*testing.T
	hub         *hub.Hub
	agent, user *hub.Session
	stop        context.CancelFunc
	end         chan error
}

// serve runs a test with an agent that works with f.
func serve(t *testing.T, f workFunc, test func(*served)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := coretest.NewHub(t, hub.Options{})
		s := &served{T: t, hub: h, end: make(chan error, 1)}
		s.agent = h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "test"})
		s.user = h.Connect(hub.Identity{Principal: core.Principal{ID: "user", Operator: true}, Dialect: "test"})
		if err := s.agent.Join(core.Card{ID: "a", Features: all}, hub.JoinOptions{NoticeTasks: true}); err != nil {
			t.Fatal(err)
		}
		var ctx context.Context
		ctx, s.stop = context.WithCancel(t.Context())
		go func() { s.end <- coretest.Serve(ctx, s.agent, f, s.lost) }()
		test(s)
		s.stop()
		<-s.end
		s.user.Close(nil)
		s.agent.Close(nil)
	})
}

func (s *served) ask(content string) *task.Task {
	s.Helper()
	t, err := s.user.Open(core.Request{To: core.ToAgent("a"), Content: content}, hub.OpenOptions{Unwatched: true})
	if err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
	return t
}

// lost does what a supervisor does.
func (s *served) lost(err error) {
	s.agent.SetChild(core.Child{State: core.ChildRestarting, LastError: err.Error()})
}

// wants fails the test unless the task has ended with the kind and the text.
func (s *served) wants(t *task.Task, end core.Kind, text string) {
	s.Helper()
	synctest.Wait()
	a := t.Answer()
	if a.End != end || a.Text != text {
		s.Errorf("the task ended as %s with %q (%v), want %s with %q", a.End, a.Text, a.Fault, end, text)
	}
}

func TestAnAgentThatReturnsHasDoneItsTask(t *testing.T) {
	serve(t, func(_ context.Context, turn agent.Turn) error {
		turn.Delivered()
		return turn.Report(core.Text{Text: turn.Request().Content + "!"}, nil)
	}, func(s *served) {
		s.wants(s.ask("hello"), core.KindDone, "hello!")
	})
}

func TestTheErrorOfAnAgentIsTheEndOfItsTask(t *testing.T) {
	serve(t, func(context.Context, agent.Turn) error {
		return core.NewFault(core.CodeUnreachable, "the child died")
	}, func(s *served) {
		asked := s.ask("hello")
		s.wants(asked, core.KindFailed, "")
		if f := asked.Answer().Fault; !errors.Is(f, &core.Fault{Code: core.CodeUnreachable}) || f.Message != "the child died" {
			t.Errorf("got %v, want unreachable, the child died", f)
		}
	})
}

func TestAnEndThatTheAgentReportedCounts(t *testing.T) {
	serve(t, func(_ context.Context, turn agent.Turn) error {
		_ = turn.Report(core.Done{Text: "all"}, nil)
		return errors.New("too late")
	}, func(s *served) {
		s.wants(s.ask("hello"), core.KindDone, "all")
	})
}

func TestAnAgentIsToldOfDecisionsContextAndCancels(t *testing.T) {
	var told []core.Kind
	serve(t, func(ctx context.Context, turn agent.Turn) error {
		_ = turn.Report(core.ApprovalRequested{ID: "t1", Name: "write", Input: "{}"}, nil)
		for {
			b, err := turn.Next(ctx)
			if err != nil {
				return err
			}
			told = append(told, b.Kind())
			if b.Kind() == core.KindCancelRequested {
				_ = turn.Report(core.Text{Text: "what was left"}, nil)
				return turn.Report(core.Cancelled{Reason: "as asked"}, nil)
			}
		}
	}, func(s *served) {
		asked := s.ask("hello")
		if err := s.user.Decide(hub.NoWait, asked.ID(), core.ApprovalDecided{ID: "t1", Approved: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.user.Inject(hub.NoWait, asked.ID(), core.Injected{ID: "i", Content: "more"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := s.user.Cancel(asked.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		s.wants(asked, core.KindCancelled, "what was left")
		if want := []core.Kind{core.KindApprovalDecided, core.KindInjected, core.KindCancelRequested}; len(told) != 3 || told[0] != want[0] || told[1] != want[1] || told[2] != want[2] {
			t.Errorf("the agent was told %v, want %v", told, want)
		}
	})
}

func TestAnAgentThatIgnoresACancelIsAbandonedAfterTheGrace(t *testing.T) {
	var why error
	serve(t, func(ctx context.Context, _ agent.Turn) error {
		<-ctx.Done()
		why = context.Cause(ctx)
		return why
	}, func(s *served) {
		asked := s.ask("hello")
		if err := s.user.Cancel(asked.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(hub.Limits{}.WithDefaults().CancelGrace + time.Second) // of the fake clock
		s.wants(asked, core.KindCancelled, "")
		if !errors.Is(why, &core.Fault{Code: core.CodeCancelled}) {
			t.Errorf("the context ended with %v, want a cancelled Fault", why)
		}
	})
}

func TestANoticeIsWorkedOnAfterItWasDelivered(t *testing.T) {
	var worked error
	serve(t, func(ctx context.Context, turn agent.Turn) error {
		turn.Delivered()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		worked = errors.Join(context.Cause(ctx), turn.Report(core.Text{Text: "thanks"}, nil))
		return worked
	}, func(s *served) {
		notice, err := s.user.Open(core.Request{Intent: core.IntentNotify, To: core.ToAgent("a"), Notice: &core.Notice{Topic: "door.open"}}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		s.wants(notice, core.KindDone, "")
		next := s.ask("next")
		if got := next.State(); got != task.Queued {
			t.Errorf("while the agent works on the notice the next task is %s, want queued", got)
		}
		time.Sleep(2 * time.Second) // of the test's clock: one for each
		s.wants(next, core.KindDone, "thanks")
		if worked != nil {
			t.Errorf("the agent got %v, want nothing to stop it", worked)
		}
	})
}

func TestWhoServesNoMoreFailsWhatRuns(t *testing.T) {
	serve(t, func(ctx context.Context, _ agent.Turn) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, func(s *served) {
		asked := s.ask("hello")
		s.stop()
		s.wants(asked, core.KindFailed, "")
		if f := asked.Answer().Fault; !errors.Is(f, &core.Fault{Code: core.CodeUnreachable}) {
			t.Errorf("got %v, want an unreachable Fault", f)
		}
	})
}

func TestAnAgentAsksThePeopleOfItsTask(t *testing.T) {
	serve(t, func(ctx context.Context, turn agent.Turn) error {
		o, err := turn.Ask(ctx, question.Question{Text: "Which?", Options: []core.Option{{Label: "this"}, {Label: "that"}}})
		if err != nil {
			return err
		}
		return turn.Report(core.Text{Text: o.String()}, nil)
	}, func(s *served) {
		s.wants(s.ask("nobody looks"), core.KindFailed, "")
		s.user.WatchQuestions(question.View{Agent: "a", For: s.user.Identity().Principal})
		asked := s.ask("somebody looks")
		open := s.hub.Questions(s.user.Identity().Principal)
		if len(open) != 1 || open[0].Agent != "a" || len(open[0].Tasks) != 1 || open[0].Tasks[0] != asked.ID() {
			t.Fatalf("open questions: got %+v, want one of agent a for task %s", open, asked.ID())
		}
		if _, err := s.user.AnswerQuestion(t.Context(), core.Reply{Question: open[0].ID, Selected: []string{"that"}}); err != nil {
			t.Fatal(err)
		}
		s.wants(asked, core.KindDone, "that")
	})
}

func TestAnAgentCallsToolsOfTheHub(t *testing.T) {
	serve(t, func(ctx context.Context, turn agent.Turn) error {
		out, err := turn.CallTool(ctx, "agents_list", nil)
		if err != nil {
			return err
		}
		var list struct{ Agents []struct{ ID string } }
		if err := json.Unmarshal(out, &list); err != nil {
			return err
		}
		if _, err := turn.CallTool(ctx, "no_such_tool", nil); !errors.Is(err, &core.Fault{Code: core.CodeUnsupported}) {
			t.Errorf("an unknown tool: got %v, want an unsupported Fault", err)
		}
		return turn.Report(core.Text{Text: list.Agents[0].ID}, nil)
	}, func(s *served) {
		s.wants(s.ask("who is here?"), core.KindDone, "a")
	})
}

func TestTheQueueOfALostAgentWaitsUntilItIsBack(t *testing.T) {
	worked := 0
	serve(t, func(ctx context.Context, turn agent.Turn) error {
		if worked++; turn.Request().Content == "first" {
			_, _ = turn.Next(ctx)
			return agent.Lost(errors.New("exit status 1"))
		}
		return nil
	}, func(s *served) {
		first, second := s.ask("first"), s.ask("second")
		if err := s.user.Inject(hub.NoWait, first.ID(), core.Injected{ID: "i", Content: "die"}); err != nil {
			t.Fatal(err)
		}
		s.wants(first, core.KindFailed, "")
		if f := first.Answer().Fault; !errors.Is(f, &core.Fault{Code: core.CodeUnreachable}) || !f.Retryable {
			t.Errorf("got %v, want a retryable unreachable Fault", f)
		}
		if worked != 1 || second.HasEnded() {
			t.Fatalf("the agent got %d tasks, and the second has ended: %v; want it to wait", worked, second.HasEnded())
		}
		s.agent.SetChild(core.Child{State: core.ChildReady, Restarts: 1})
		s.wants(second, core.KindDone, "")
	})
}

func TestAnAgentThatTheHubRunsIsSeenWhenItSpeaks(t *testing.T) {
	for name, speak := range map[string]func(context.Context, agent.Turn){
		"text": func(_ context.Context, turn agent.Turn) { _ = turn.Report(core.Text{Text: "word"}, nil) },
		"tool": func(ctx context.Context, turn agent.Turn) { _, _ = turn.CallTool(ctx, "no_such_tool", nil) },
		"question": func(ctx context.Context, turn agent.Turn) {
			_, _ = turn.Ask(ctx, question.Question{Text: "Which day?"})
		},
		"receipt": func(_ context.Context, turn agent.Turn) { turn.Delivered() },
		"end":     nil,
	} {
		serve(t, func(ctx context.Context, turn agent.Turn) error {
			time.Sleep(time.Minute) // of the fake clock
			if speak != nil {
				speak(ctx, turn)
				<-ctx.Done()
			}
			return ctx.Err()
		}, func(s *served) {
			joined := time.Now()
			s.ask("hello")
			time.Sleep(2 * time.Minute)
			a, _ := s.hub.Agent(s.user.Identity().Principal, "a")
			if got, want := a.Load.LastSeen.Sub(joined), time.Minute; got != want {
				t.Errorf("%s: last seen %s after it joined, want %s", name, got, want)
			}
		})
	}
}
