package coven_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// hire connects an agent to the hub and waits until it has joined. Its Work ends with the
// test; quit ends it before and returns what Work returned.
func hire(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler) (quit func() error) {
	t.Helper()
	return hireWith(t, h, card, handle, covenclient.WorkOptions{})
}

func hireWith(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler, opts covenclient.WorkOptions) (quit func() error) {
	t.Helper()
	server, client := wired(64)
	ctx, cancel := context.WithCancel(context.Background())
	joined, served, worked := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	opts.Joined = func(*pb.Welcome) { close(joined) }
	go func() { coven.Serve(context.Background(), h, server, &coven.Options{}); close(served) }()
	go func() { worked <- covenclient.Work(ctx, client, card, handle, opts) }()
	quit = func() error {
		cancel()
		<-served
		err := <-worked
		worked <- err
		return err
	}
	t.Cleanup(func() { _ = quit() })
	select {
	case <-joined:
	case err := <-worked:
		t.Fatalf("work: got %v before the agent joined", err)
	}
	return quit
}

func TestEveryEventOfAHandlerReachesTheTask(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		var asked core.Request
		hire(t, h, core.Card{ID: "a", Name: "A", Capabilities: []string{"chat"}, Domains: []string{"x.y"}, Model: "m"},
			func(_ context.Context, r core.Request, say func(core.Body) error) error {
				asked = r
				for _, b := range []core.Body{
					core.Accepted{Estimate: time.Minute}, core.SessionStarted{Session: "s"}, core.Thinking{Text: "hm"}, core.Text{Text: "one "},
					core.ToolCall{ID: "t", Name: "n", Input: "{}"}, core.ToolState{ID: "t", State: core.ToolRunning},
					core.ToolResult{ID: "t", Output: "o"}, core.Usage{Input: 1, Output: 2}, core.File{Name: "f", Data: []byte("x")}, core.Text{Text: "two"},
				} {
					if err := say(b); err != nil {
						return err
					}
				}
				return nil
			})
		q := ask(t, h)
		task := q.open(core.Request{To: core.ToDomain("x.y.z"), Thread: "th", Content: "go", Attachments: []core.File{{Name: "in", MediaType: "a/b", Data: []byte{1}}}})
		q.until(task, core.KindDone)
		want := "opened assigned accepted thinking session_started thinking text tool_call tool_state tool_result usage file text done"
		if got := kinds(task); got != want {
			t.Errorf("events:\n got %s\nwant %s", got, want)
		}
		if got := task.Answer().Text; got != "one two" {
			t.Errorf("answer: got %q, want %q", got, "one two")
		}
		wantAsked := core.Request{
			Intent: core.IntentAsk, To: core.ToAgent("a"), Thread: "th", Content: "go",
			Attachments: []core.File{{Name: "in", MediaType: "a/b", Data: []byte{1}}},
		}
		if diff := cmp.Diff(wantAsked, asked, cmp.AllowUnexported(core.Address{})); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	})
}

func TestTheEndOfAHandlerEndsTheTask(t *testing.T) {
	for name, c := range map[string]struct {
		handle core.Handler
		want   core.Answer
	}{
		"returns nil": {
			func(context.Context, core.Request, func(core.Body) error) error { return nil },
			core.Answer{End: core.KindDone},
		},
		"reports done": {
			func(_ context.Context, _ core.Request, say func(core.Body) error) error {
				return say(core.Done{Text: "all"})
			},
			core.Answer{End: core.KindDone, Text: "all"},
		},
		"a fault": {
			func(context.Context, core.Request, func(core.Body) error) error {
				return core.NewFault(core.CodeOverloaded, "later: please")
			},
			core.Answer{End: core.KindFailed, Fault: core.NewFault(core.CodeOverloaded, "later: please")},
		},
		"any error": {
			func(context.Context, core.Request, func(core.Body) error) error { return errors.New("secret detail") },
			core.Answer{End: core.KindFailed, Fault: core.NewFault(core.CodeInternal, core.InternalMessage)},
		},
		"reports failed without a fault": {
			func(_ context.Context, _ core.Request, say func(core.Body) error) error { return say(core.Failed{}) },
			core.Answer{End: core.KindFailed, Fault: core.NewFault(core.CodeInternal, "the agent failed and did not say why")},
		},
		"reports cancelled": {
			func(_ context.Context, _ core.Request, say func(core.Body) error) error {
				return say(core.Cancelled{Reason: "no"})
			},
			core.Answer{End: core.KindCancelled, Fault: core.NewFault(core.CodeCancelled, "no")},
		},
		"data": {
			func(_ context.Context, _ core.Request, say func(core.Body) error) error {
				return say(core.Done{Data: json.RawMessage(`{"a":1}`)})
			},
			core.Answer{End: core.KindDone, Text: "Data:\n```json\n{\"a\":1}\n```"},
		},
		"text and data": {
			func(_ context.Context, _ core.Request, say func(core.Body) error) error {
				return errors.Join(say(core.Text{Text: "see"}), say(core.Done{Data: json.RawMessage(`{"a":1}`)}))
			},
			core.Answer{End: core.KindDone, Text: "see\n\nData:\n```json\n{\"a\":1}\n```"},
		},
		"whole text and data": {
			func(_ context.Context, _ core.Request, say func(core.Body) error) error {
				return errors.Join(say(core.Text{}), say(core.Done{Text: "see", Data: json.RawMessage(`{"a":1}`)}))
			},
			core.Answer{End: core.KindDone, Text: "see\n\nData:\n```json\n{\"a\":1}\n```"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
				hire(t, h, core.Card{ID: "a"}, c.handle)
				q := ask(t, h)
				task := q.question("a", "x")
				q.until(task, c.want.End)
				c.want.Agent = "a"
				ignoreCause := cmp.Comparer(func(a, b *core.Fault) bool {
					return (a == nil) == (b == nil) && (a == nil || a.Code == b.Code && a.Message == b.Message)
				})
				if diff := cmp.Diff(c.want, task.Answer(), ignoreCause); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTheNumbersOfDoneBecomeAStatusLine(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		hire(t, h, core.Card{ID: "a"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			return say(core.Done{Text: "short", Truncated: true, TokensUsed: 12})
		})
		q := ask(t, h)
		task := q.question("a", "x")
		got := q.until(task, core.KindThinking).Body.(core.Thinking).Text
		if want := "the answer was cut to stay within the token limit; tokens used: 12"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		q.until(task, core.KindDone)
	})
}

func TestTextOfAnySizeArrivesWhole(t *testing.T) {
	whole := strings.Repeat("aä€😀", 500_000)
	for name, body := range map[string]core.Body{"in text": core.Text{Text: whole}, "in done": core.Done{Text: whole}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
				hire(t, h, core.Card{ID: "a"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
					return say(body)
				})
				q := ask(t, h)
				task := q.question("a", "x")
				q.until(task, core.KindDone)
				if got := task.Answer().Text; got != whole {
					t.Errorf("got %d bytes, want %d", len(got), len(whole))
				}
			})
		})
	}
}

func TestAFileThatDoesNotFitIsRefusedToTheHandler(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		hire(t, h, core.Card{ID: "a"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			if err := say(core.File{Name: "f", Data: make([]byte, 5<<20)}); !isFault(err, core.CodeTooLarge) {
				t.Errorf("a file of 5 MiB: got %v, want a too_large Fault", err)
			}
			if err := say(core.Opened{}); !isFault(err, core.CodeUnsupported) {
				t.Errorf("opened: got %v, want an unsupported Fault", err)
			}
			return say(core.Text{Text: "the file is too large"})
		})
		q := ask(t, h)
		task := q.question("a", "x")
		q.until(task, core.KindDone)
		if got := task.Answer().Text; got != "the file is too large" {
			t.Errorf("answer: got %q", got)
		}
	})
}

func TestInvalidUTF8DoesNotEndTheConnection(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		hire(t, h, core.Card{ID: "a"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			return say(core.Text{Text: "caf\xe9"})
		})
		q := ask(t, h)
		task := q.question("a", "\xff")
		q.until(task, core.KindDone)
		if got := task.Answer().Text; got != "caf\uFFFD" {
			t.Errorf("answer: got %q, want %q", got, "caf\uFFFD")
		}
	})
}

func TestACancelEndsTheContextOfTheHandler(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		hire(t, h, core.Card{ID: "a"}, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
			if r.Content == "y" {
				return nil
			}
			if err := say(core.Text{Text: "working"}); err != nil {
				return err
			}
			<-ctx.Done()
			if err := say(core.Text{Text: "late"}); !isFault(err, core.CodeCancelled) {
				t.Errorf("report after the cancel: got %v, want a cancelled Fault", err)
			}
			return context.Cause(ctx)
		})
		q := ask(t, h)
		task := q.question("a", "x")
		q.until(task, core.KindText)
		start := time.Now()
		if err := q.s.Cancel(task.ID(), "user_requested"); err != nil {
			t.Fatal(err)
		}
		if got := q.until(task, core.KindCancelled).Body.(core.Cancelled).Reason; got != "user_requested" {
			t.Errorf("reason: got %q, want %q", got, "user_requested")
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("cancelled after %v, want at once", got)
		}
		q.until(q.question("a", "y"), core.KindDone)
	})
}

func TestAsManyHandlersRunAsTheCardDeclares(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		release := make(chan struct{})
		hire(t, h, core.Card{ID: "a", MaxConcurrent: 3}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			if err := say(core.Text{Text: "started"}); err != nil {
				return err
			}
			<-release
			return nil
		})
		q := ask(t, h)
		var tasks []*task.Task
		for range 5 {
			tasks = append(tasks, q.question("a", "x"))
		}
		synctest.Wait()
		started := 0
		for _, task := range tasks {
			if task.Answer().Text == "started" {
				started++
			}
		}
		if started != 3 {
			t.Errorf("running: got %d, want 3", started)
		}
		close(release)
		synctest.Wait()
		for i, task := range tasks {
			if got := task.Answer().End; got != core.KindDone {
				t.Errorf("task %d: got %s, want done", i, got)
			}
		}
	})
}

func TestAHandlerAsksOtherAgentsWithTheToolsOfTheHub(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		hire(t, h, core.Card{ID: "b"}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			return say(core.Done{Text: strings.ToUpper(r.Content)})
		})
		hire(t, h, core.Card{ID: "a"}, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
			input, err := json.Marshal(map[string]string{"to": "b", "content": r.Content})
			if err != nil {
				return err
			}
			raw, err := covenclient.CallTool(ctx, "agent_ask", input)
			if err != nil {
				return err
			}
			var out struct{ Text string }
			if err := json.Unmarshal(raw, &out); err != nil {
				return err
			}
			if _, err := covenclient.CallTool(ctx, "agent_ask", json.RawMessage(`{"to":"a","content":"echo"}`)); !isFault(err, core.CodeLoop) {
				t.Errorf("asking itself: got %v, want a loop Fault", err)
			}
			return say(core.Done{Text: "b says " + out.Text})
		})
		q := ask(t, h)
		task := q.question("a", "hello")
		q.until(task, core.KindDone)
		if got := task.Answer().Text; got != "b says HELLO" {
			t.Errorf("answer: got %q, want %q", got, "b says HELLO")
		}
	})
}

func TestToolsNeedTheContextOfAHandler(t *testing.T) {
	if _, err := covenclient.CallTool(context.Background(), "agents_list", nil); !isFault(err, core.CodeInvalid) {
		t.Errorf("CallTool: got %v, want an invalid Fault", err)
	}
}

func TestAnAgentGetsTheDecisionThatItsHandlerRequested(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		decided := make(chan core.ApprovalDecided, 1)
		hireWith(t, h, core.Card{ID: "a"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			if err := say(core.ApprovalRequested{ID: "t", Name: "rm", Input: "{}"}); err != nil {
				return err
			}
			if d := <-decided; d.ID != "t" || !d.Approved || !d.All {
				t.Errorf("got %+v, want it approved, with all later ones", d)
			}
			return nil
		}, covenclient.WorkOptions{Decided: func(d core.ApprovalDecided) { decided <- d }})
		q := ask(t, h)
		task := q.question("a", "x")
		q.until(task, core.KindApprovalRequested)
		if err := q.s.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t", Approved: true, All: true}); err != nil {
			t.Fatal(err)
		}
		q.until(task, core.KindDone)
	})
}

func TestAnAgentThatDeclaresInjectionGetsInjections(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		taken, answered := make(chan core.Injected, 1), make(chan struct{})
		hireWith(t, h, core.Card{ID: "a"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			if err := say(core.Text{Text: "started"}); err != nil {
				return err
			}
			in := <-taken
			<-answered
			return say(core.Done{Text: in.Content})
		}, covenclient.WorkOptions{Injected: func(in core.Injected) (func(), string) { return func() { taken <- in }, "" }})
		q := ask(t, h)
		task := q.question("a", "x")
		q.until(task, core.KindText)
		if err := q.s.Inject(hub.NoWait, task.ID(), core.Injected{ID: "i", Content: "hurry", Priority: core.InjectionDeferred}); err != nil {
			t.Fatal(err)
		}
		if got, want := q.until(task, core.KindInjectionAnswered).Body, (core.InjectionAnswered{ID: "i", Accepted: true}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		close(answered)
		q.until(task, core.KindDone)
	})
}

func TestATakenIDIsAConflict(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		idle := func(context.Context, core.Request, func(core.Body) error) error { return nil }
		hire(t, h, core.Card{ID: "a"}, idle)
		server, client := wired(8)
		served := make(chan struct{})
		go func() { coven.Serve(context.Background(), h, server, &coven.Options{}); close(served) }()
		err := covenclient.Work(context.Background(), client, core.Card{ID: "a"}, idle, covenclient.WorkOptions{})
		if !isFault(err, core.CodeConflict) || !strings.Contains(err.Error(), "choose another id, such as a-1, or wait") {
			t.Errorf("got %v, want a conflict Fault with a free id", err)
		}
		<-served
	})
}

func TestWorkReturnsTheCauseOfItsContext(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		quit := hire(t, h, core.Card{ID: "a"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		q := ask(t, h)
		task := q.question("a", "x")
		synctest.Wait()
		if err := quit(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		end := q.until(task, core.KindFailed).Body.(core.Failed)
		if end.Fault.Code != core.CodeUnreachable {
			t.Errorf("its task: got %v, want unreachable", end.Fault)
		}
	})
}

func TestAnAgentFinishesItsWorkWhenTheHubStops(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		server, client := wired(8)
		served, worked := make(chan link.Reason, 1), make(chan error, 1)
		go func() { served <- coven.Serve(context.Background(), h, server, &coven.Options{}) }()
		go func() {
			worked <- covenclient.Work(context.Background(), client, core.Card{ID: "a"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
				after(10 * time.Second)
				return say(core.Done{Text: "finished"})
			}, covenclient.WorkOptions{})
		}()
		synctest.Wait()
		q := ask(t, h)
		task := q.question("a", "x")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := h.Close(ctx, "maintenance"); err != nil {
			t.Fatal(err)
		}
		if got := task.Answer().Text; got != "finished" {
			t.Errorf("answer: got %q, want %q", got, "finished")
		}
		if err := <-worked; err != nil {
			t.Errorf("work: got %v, want nil after a Shutdown", err)
		}
		<-served
	})
}
