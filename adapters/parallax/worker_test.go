package parallax_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// work runs a worker on the hub. The returned function stops it and returns the error of
// Work.
func (s *setup) work(card core.Card, handle core.Handler, opts parallaxclient.WorkOptions) func() error {
	s.Helper()
	mine, theirs := coretest.Pipe[[]byte, []byte](4)
	ctx, cancel := context.WithCancel(context.Background())
	worked, served := make(chan error, 1), make(chan link.Reason, 1)
	go func() { worked <- parallaxclient.Work(ctx, mine, card, handle, opts) }()
	go func() { served <- parallax.Serve(context.Background(), s.hub, theirs, &parallax.Options{}) }()
	stopped := false
	stop := func() error {
		cancel()
		if stopped {
			return nil
		}
		stopped = true
		err := <-worked
		<-served
		return err
	}
	s.Cleanup(func() { _ = stop() })
	synctest.Wait()
	return stop
}

func echo(_ context.Context, r core.Request, say func(core.Body) error) error {
	return say(core.Text{Text: strings.ToUpper(r.Content)})
}

func TestAWorkerAnswersWithAndWithoutExtensions(t *testing.T) {
	sent := []core.Body{
		core.Thinking{Text: "hm"}, core.ToolCall{ID: "c", Name: "n", Input: `{"a":1}`}, core.ToolState{ID: "c", State: core.ToolCompleted}, core.ToolResult{ID: "c", Output: "o"},
		core.Usage{Input: 1, Output: 2}, core.File{Name: "f", MediaType: "m", Data: []byte("hi")}, core.Text{Text: "hel"}, core.Text{Text: "lo"},
		core.Done{Data: json.RawMessage(`{"k":1}`), Truncated: true},
	}
	for name, plain := range map[string]bool{"extended": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(s *setup) {
				s.work(core.Card{ID: "w", Name: "Worker", Capabilities: []string{"x"}, Domains: []string{"d"}, Model: "m"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
					for _, b := range sent {
						if err := say(b); err != nil {
							return err
						}
					}
					return nil
				}, parallaxclient.WorkOptions{Plain: plain})
				if a, here := s.hub.Agent(core.Principal{Operator: true}, "w"); !here || a.Name != "Worker" || a.Model != "m" || !cmp.Equal(a.Domains, []string{"d"}) || a.Features.Has(core.FeatureStreaming) == plain {
					t.Errorf("card: got %+v, want that of the worker", a.Card)
				}
				a := s.requester()
				got := a.answer(a.ask("w", "go"))
				want := core.Answer{
					Text: "hello", Data: json.RawMessage(`{"k":1}`), Files: []core.File{{Name: "f", MediaType: "m", Data: []byte("hi")}},
					Usage: core.Usage{Input: 1, Output: 2}, Truncated: true, TokensUsed: 3, End: core.KindDone, Agent: "w",
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("answer differs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAPlainWorkerSendsItsProgressWithTheResult(t *testing.T) {
	withHub(t, func(s *setup) {
		s.work(core.Card{ID: "w"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			_ = say(core.Thinking{Text: "hm"})
			return say(core.Text{Text: "hello"})
		}, parallaxclient.WorkOptions{Plain: true})
		a := s.requester()
		if got, want := kinds(a.events(a.ask("w", "go"))), "opened assigned accepted thinking text done"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
	})
}

func TestAWorkerGetsTheWholeRequest(t *testing.T) {
	withHub(t, func(s *setup) {
		seen := make(chan core.Request, 1)
		s.work(core.Card{ID: "w"}, func(_ context.Context, r core.Request, _ func(core.Body) error) error {
			seen <- r
			return nil
		}, parallaxclient.WorkOptions{})
		a := s.requester()
		want := core.Request{
			Intent: core.IntentDelegate, To: core.ToAgent("w"), Thread: "th", Content: "do it", Data: json.RawMessage(`{"n":1}`), Context: json.RawMessage(`{"c":2}`),
			Attachments: []core.File{{Name: "f", Data: []byte("hi")}}, Domain: "d", Priority: core.PriorityLow, MaxTokens: 9, ReportBack: true, Deadline: time.Now().Add(3 * time.Second),
		}
		a.answer(a.open(want))
		got := <-seen
		got.Foreign = nil
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b core.Address) bool { return a == b })); diff != "" {
			t.Errorf("request differs (-want +got):\n%s", diff)
		}
	})
}

func TestAWorkerStreamsManyChunksAndLongText(t *testing.T) {
	long := strings.Repeat("0123456789\"世", 90_000)
	withHub(t, func(s *setup) {
		s.work(core.Card{ID: "w"}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			if r.Content == "long" {
				return say(core.Text{Text: long})
			}
			for i := range 5000 {
				if err := say(core.Text{Text: fmt.Sprintf("%d;", i)}); err != nil {
					return err
				}
			}
			return nil
		}, parallaxclient.WorkOptions{})
		a := s.requester()
		if got := a.answer(a.ask("w", "long")); got.Text != long {
			t.Errorf("long text: got %d bytes, want %d", len(got.Text), len(long))
		}
		var want strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&want, "%d;", i)
		}
		if got := a.answer(a.ask("w", "burst")); got.Text != want.String() {
			t.Errorf("burst: got %d bytes, want %d", len(got.Text), want.Len())
		}
	})
}

func TestAWorkerEndsACancelledTask(t *testing.T) {
	withHub(t, func(s *setup) {
		s.work(core.Card{ID: "w"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			return ctx.Err()
		}, parallaxclient.WorkOptions{})
		a := s.requester()
		opened := a.ask("w", "wait")
		synctest.Wait()
		if err := a.session.Cancel(opened.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if got := a.answer(opened); got.End != core.KindCancelled || got.Fault.Message != "enough" || time.Since(start) != 0 {
			t.Errorf("answer: got %+v after %v, want it cancelled at once with the reason", got, time.Since(start))
		}
	})
}

func TestAWorkerFailsWithTheErrorOfItsHandler(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want *core.Fault
	}{
		"with a fault":         {core.NewFault(core.CodeUnsupported, "cannot draw"), core.NewFault(core.CodeUnsupported, "cannot draw")},
		"with any error":       {errors.New("secret detail"), core.NewFault(core.CodeInternal, core.InternalMessage)},
		"with something large": {nil, core.NewFault(core.CodeTooLarge, "")},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(s *setup) {
				s.work(core.Card{ID: "w"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
					if c.err == nil {
						return say(core.File{Name: "big", Data: make([]byte, 800_000)})
					}
					return c.err
				}, parallaxclient.WorkOptions{})
				a := s.requester()
				got := a.answer(a.ask("w", "go")).Fault
				if got == nil || got.Code != c.want.Code || (c.want.Message != "" && got.Message != c.want.Message) {
					t.Errorf("fault: got %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestAWorkerRunsAsManyTasksAsItsCardAllows(t *testing.T) {
	withHub(t, func(s *setup) {
		release := make(chan struct{})
		begun := make(chan struct{}, 3)
		s.work(core.Card{ID: "w", MaxConcurrent: 2}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			begun <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		}, parallaxclient.WorkOptions{})
		a := s.requester()
		for range 3 {
			a.ask("w", "go")
		}
		synctest.Wait()
		if len(begun) != 2 {
			t.Errorf("begun: got %d, want 2", len(begun))
		}
		if w, _ := s.hub.Agent(core.Principal{Operator: true}, "w"); w.Load.Active != 2 || w.Load.Queued != 1 {
			t.Errorf("load: got %+v, want 2 active and 1 queued", w.Load)
		}
		close(release)
		synctest.Wait()
		if len(begun) != 3 {
			t.Errorf("begun in the end: got %d, want 3", len(begun))
		}
	})
}

func TestAWorkerWithHeartbeatsStaysConnected(t *testing.T) {
	withHub(t, func(s *setup) {
		s.work(core.Card{ID: "w"}, echo, parallaxclient.WorkOptions{})
		time.Sleep(time.Hour)
		synctest.Wait()
		if w, here := s.hub.Agent(core.Principal{Operator: true}, "w"); !here || time.Since(w.Load.LastSeen) > wire.DefaultHeartbeatInterval {
			t.Errorf("got %v, last seen %v ago, want it registered and seen recently", here, time.Since(w.Load.LastSeen))
		}
	})
}

func TestAStoppedWorkerDisconnects(t *testing.T) {
	withHub(t, func(s *setup) {
		stop := s.work(core.Card{ID: "w"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			return ctx.Err()
		}, parallaxclient.WorkOptions{})
		a := s.requester()
		opened := a.ask("w", "wait")
		synctest.Wait()
		if err := stop(); err != nil {
			t.Errorf("work: got %v, want no error", err)
		}
		if got := a.answer(opened); got.Fault == nil || got.Fault.Code != core.CodeUnreachable || !strings.Contains(got.Fault.Message, "it ended its connection") {
			t.Errorf("answer: got %v, want unreachable because it ended its connection", got.Fault)
		}
	})
}

func TestWorkReturnsWhyTheAgentWasRefused(t *testing.T) {
	withHub(t, func(s *setup) {
		s.registered(parallax.Options{AgentID: "w"}, `{"capabilities":[]}`).discard()
		mine, theirs := coretest.Pipe[[]byte, []byte](4)
		go parallax.Serve(s.Context(), s.hub, theirs, &parallax.Options{})
		err := parallaxclient.Work(s.Context(), mine, core.Card{ID: "w"}, echo, parallaxclient.WorkOptions{})
		if f := (*core.Fault)(nil); !errors.As(err, &f) || f.Code != core.CodeConflict {
			t.Errorf("an id in use: got %v, want a conflict", err)
		}

		mine, theirs = coretest.Pipe[[]byte, []byte](4)
		go func() {
			for {
				if _, err := theirs.Receive(s.Context()); err != nil {
					return
				}
			}
		}()
		err = parallaxclient.Work(s.Context(), mine, core.Card{ID: "v"}, echo, parallaxclient.WorkOptions{})
		if r := (*link.Reason)(nil); !errors.As(err, &r) || r.Cause != link.Unresponsive {
			t.Errorf("a silent hub: got %v, want unresponsive", err)
		}
		synctest.Wait()
	})
}

func TestALostConnectionEndsTheHandlers(t *testing.T) {
	withHub(t, func(s *setup) {
		mine, theirs := coretest.Pipe[[]byte, []byte](4)
		faulty := coretest.Break(mine, coretest.Fault{Cut: 2}, coretest.Fault{}) // after registered and one task
		served := make(chan link.Reason, 1)
		go func() { served <- parallax.Serve(s.Context(), s.hub, theirs, &parallax.Options{}) }()
		ended := make(chan error, 1)
		go func() {
			ended <- parallaxclient.Work(s.Context(), faulty, core.Card{ID: "w"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
				<-ctx.Done()
				return ctx.Err()
			}, parallaxclient.WorkOptions{})
		}()
		synctest.Wait()
		a := s.requester()
		opened := a.ask("w", "wait")
		if r := (*link.Reason)(nil); !errors.As(<-ended, &r) {
			t.Errorf("work: got %v, want the reason of the link", r)
		}
		if got := a.answer(opened); got.Fault == nil || got.Fault.Code != core.CodeUnreachable {
			t.Errorf("answer: got %v, want unreachable", got.Fault)
		}
		<-served
	})
}

func TestAWorkerIgnoresDuplicatesAndRefusesExcessTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, hubEnd := coretest.Pipe[[]byte, []byte](16)
		worked := make(chan error, 1)
		go func() {
			worked <- parallaxclient.Work(t.Context(), mine, core.Card{ID: "w"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
				<-ctx.Done()
				return ctx.Err()
			}, parallaxclient.WorkOptions{Plain: true})
		}()
		hub := &peer{setup: &setup{T: t}, conn: hubEnd}
		hub.receive(wire.TypeRegister)
		hub.send(`{"type":"registered","id":"register","payload":{"agentId":"w","config":{"heartbeatInterval":3600000}}}`)
		hub.send(`{"type":"registered","id":"register","payload":{"agentId":"other"}}`)
		hub.send("\x00 not a frame")
		hub.send(`{"type":"config_update","id":"c","payload":{"config":{"heartbeatInterval":7200000,"maxConcurrentTasks":3}}}`)
		hub.send(`{"type":"error","id":"m","payload":{"code":"INVALID_MESSAGE","message":"no","fatal":false}}`)
		for _, id := range []string{"1", "1", "2", "3"} {
			hub.send(`{"type":"task","id":"t","payload":{"taskId":"` + id + `","input":{"content":"go"}}}`)
			synctest.Wait() // 1 runs, 2 waits, 3 is refused
		}
		if e := decode[wire.TaskError](hub, hub.receive(wire.TypeTaskError)); e.TaskID != "3" || e.Error.Code != wire.CodeOf(core.NewFault(core.CodeOverloaded, "")) || !*e.Retryable {
			t.Errorf("got %+v, want 3 refused as overloaded, retryable", e)
		}
		hub.send(`{"type":"task_cancelled","id":"c","payload":{"taskId":"2","reason":"before it began"}}`)
		hub.send(`{"type":"task_cancelled","id":"c","payload":{"taskId":"1","executionId":"another","reason":"not this one"}}`)
		hub.expectNothing()
		hub.send(`{"type":"task_cancelled","id":"c","payload":{"taskId":"1","reason":"enough"}}`)
		for _, want := range []string{"enough", "before it began"} {
			if e := decode[wire.TaskError](hub, hub.receive(wire.TypeTaskError)); e.Error.Code != wire.CodeCancelled || e.Error.Message != want {
				t.Errorf("got %+v, want CANCELLED, %s", e, want)
			}
		}
		_ = hubEnd.Close(link.Reason{Cause: link.Normal})
		if err := <-worked; err != nil {
			t.Errorf("work: got %v, want a normal end", err)
		}
	})
}

// "Fatal errors require reconnection": only an agent that the hub does not want gets a Fault.
func TestAFatalErrorEndsTheConnectionAndNotTheAgent(t *testing.T) {
	for name, c := range map[string]struct {
		sent    string
		refused bool
	}{
		"its token has expired":   {`{"type":"error","id":"m","payload":{"code":"AUTHENTICATION_EXPIRED","message":"Token has expired","fatal":true}}`, false},
		"its task did not end":    {`{"type":"error","id":"m","payload":{"code":"TIMEOUT","message":"the task did not end","fatal":true}}`, false},
		"it was slow to register": {`{"type":"error","id":"m","payload":{"code":"REGISTER_TIMEOUT","message":"no register","fatal":true}}`, false},
		"it was replaced":         {`{"type":"error","id":"m","payload":{"code":"REPLACED","message":"another has the id","fatal":true}}`, true},
		"its id is taken":         {`{"type":"error","id":"register","payload":{"code":"DUPLICATE_NAME","message":"taken","fatal":true}}`, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			mine, hubEnd := coretest.Pipe[[]byte, []byte](16)
			worked := make(chan error, 1)
			go func() {
				worked <- parallaxclient.Work(t.Context(), mine, core.Card{ID: "w"}, silence, parallaxclient.WorkOptions{})
			}()
			hub := &peer{setup: &setup{T: t}, conn: hubEnd}
			hub.receive(wire.TypeRegister)
			hub.send(c.sent)
			err := <-worked
			if _, isFault := errors.AsType[*core.Fault](err); isFault != c.refused || err == nil {
				t.Errorf("%s: got %v, want a Fault: %t", name, err, c.refused)
			}
		})
	}
}

func silence(context.Context, core.Request, func(core.Body) error) error { return nil }
