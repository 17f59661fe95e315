package pi_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

var overloadedFault = core.Failed{Fault: core.NewFault(core.CodeOverloaded, "busy")}

// failingFirst returns the work of an agent that sends one list of bodies in each of its first
// tasks and then answers. requests counts its tasks.
func failingFirst(first ...[]core.Body) (work func(*testAgent, hub.Batch), asked *int) {
	asked = new(int)
	return func(a *testAgent, b hub.Batch) {
		if !assigned(b) {
			return
		}
		if *asked++; *asked <= len(first) {
			a.report(b.Task, first[*asked-1]...)
			return
		}
		a.report(b.Task, core.Text{Text: "fine"}, core.Done{})
	}, asked
}

func TestATransientFailureIsRetried(t *testing.T) {
	fails := []core.Body{core.Text{Text: "I"}, overloadedFault}
	for what, tt := range map[string]struct {
		said   [][]core.Body
		opts   pi.Options
		before string // a command
		asked  int
		took   time.Duration
		stop   string
		told   string
	}{
		"twice":                 {said: [][]core.Body{fails, fails}, asked: 3, took: 6 * time.Second, stop: render.StopDone, told: `"success":true,"attempt":2`},
		"too often":             {said: [][]core.Body{fails, fails, fails, fails}, asked: 4, took: 14 * time.Second, stop: render.StopError, told: `"success":false,"attempt":3,"finalError":"busy"`},
		"never":                 {said: [][]core.Body{fails}, opts: pi.Options{Retries: -1}, asked: 1, stop: render.StopError},
		"not in this session":   {said: [][]core.Body{fails}, before: `{"type":"set_auto_retry","sessionId":"s","enabled":false}`, asked: 1, stop: render.StopError},
		"in this session again": {said: [][]core.Body{fails}, before: `{"type":"set_auto_retry","sessionId":"s","enabled":true}`, asked: 2, took: 2 * time.Second, stop: render.StopDone, told: `"success":true,"attempt":1`},
		"for good":              {said: [][]core.Body{{core.Failed{Fault: core.NewFault(core.CodeInvalid, "no")}}}, asked: 1, stop: render.StopError},
		"as not for this agent": {said: [][]core.Body{{core.Failed{Fault: &core.Fault{Code: core.CodeUnsupported, Message: "not me", Retryable: true, PeerCode: "REJECTED"}}}}, asked: 1, stop: render.StopError},
		"as broken, retryable":  {said: [][]core.Body{{core.Failed{Fault: &core.Fault{Code: core.CodeInternal, Message: "broke", Retryable: true}}}}, asked: 1, stop: render.StopError},
		"as not retryable":      {said: [][]core.Body{{core.Failed{Fault: &core.Fault{Code: core.CodeOverloaded, Message: "closed for today"}}}}, asked: 1, stop: render.StopError},
		"behind a tool call":    {said: [][]core.Body{{core.ToolCall{ID: "k", Name: "rm", Input: "{}"}, overloadedFault}}, asked: 1, stop: render.StopError},
		"with no time left":     {said: [][]core.Body{fails}, opts: pi.Options{Commands: command.Options{PromptTimeout: time.Second}}, asked: 1, stop: render.StopError},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.opts.RetryDelay = 2 * time.Second
				h, s := newServer(t, tt.opts)
				work, asked := failingFirst(tt.said...)
				joinAgent(t, h, core.Card{ID: "a"}, work)
				c := dial(t, s, pi.ConnOptions{})
				c.open("s", "a")
				if tt.before != "" {
					c.ok(tt.before)
				}
				began := time.Now()
				if f := c.doUnlimited(`{"id":"p","type":"prompt","sessionId":"s","message":"hi"}`); !f.Success {
					t.Errorf("got %q, want success although the agent failed", f.Error)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("got the response after %s, want %s", took, tt.took)
				}
				tr := c.transcript("s")
				if tr.StopReason != tt.stop || *asked != tt.asked {
					t.Errorf("got %d requests and stop reason %s, want %d and %s", *asked, tr.StopReason, tt.asked, tt.stop)
				}
				if got := c.count("auto_retry_end"); tt.told == "" && got != 0 || tt.told != "" && c.count("auto_retry_end", tt.told) != 1 {
					t.Errorf("got %d ends of retries, want %q\n%s", got, tt.told, c.log())
				}
				if starts, ends := c.count(`"event":{"type":"agent_start"`), c.count(`"event":{"type":"agent_end"`); starts != ends || starts != tt.asked {
					t.Errorf("got %d starts and %d ends, want %d", starts, ends, tt.asked)
				}
				var roles []string
				for _, m := range messagesOf(t, c, "s") {
					roles = append(roles, m.Role)
				}
				if tt.asked > 1 {
					if diff := cmp.Diff([]string{conversation.RoleUser, conversation.RoleAssistant}, roles); diff != "" {
						t.Errorf("messages (-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

func TestOnlyTransientFaultsAreRetriedWithTheSameAgent(t *testing.T) {
	worth := []core.Code{core.CodeOverloaded, core.CodeUnreachable, core.CodeRateLimited, core.CodeTimeout}
	for _, code := range core.Codes() {
		h, s := newServer(t, pi.Options{})
		work, asked := failingFirst([]core.Body{core.Failed{Fault: &core.Fault{Code: code, Message: "no", Retryable: true}}})
		joinAgent(t, h, core.Card{ID: "a"}, work)
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		c.ok(`{"type":"prompt","sessionId":"s","message":"hi"}`)
		if got, want := *asked > 1, slices.Contains(worth, code); got != want {
			t.Errorf("%s, retryable: got a retry %v, want %v", code, got, want)
		}
	}
}

func TestARetryHasTheMessagesInjectedIntoTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{RetryDelay: time.Second})
		tasks := make(chan *task.Task, 3)
		a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureInjection}, func(a *testAgent, b hub.Batch) {
			if assigned(b) {
				tasks <- b.Task
			}
		})
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
		first := <-tasks
		c.ok(`{"type":"steer","sessionId":"s","message":"two"}`)
		a.report(first, overloadedFault)
		synctest.Wait()
		c.ok(`{"type":"steer","sessionId":"s","message":"three"}`) // no task is running: it waits
		second := <-tasks
		if got := second.Request().Content; got != "one\n\ntwo" {
			t.Errorf("got request %q, want the injected message in it", got)
		}
		a.report(second, core.Done{})
		third := <-tasks
		if got := third.Request().Content; got != "three" {
			t.Errorf("got request %q, want three", got)
		}
		a.report(third, core.Done{})
		c.until(`"response"`, `"id":"p"`, `"success":true`)
	})
}

func TestARunThatWaitsForItsRetryEndsWithTheSessionTheClientAndTheHub(t *testing.T) {
	for what, end := range map[string]func(h *hub.Hub, c, other *testClient){
		"abort":   func(_ *hub.Hub, _, other *testClient) { other.ok(`{"type":"abort","sessionId":"s"}`) },
		"session": func(_ *hub.Hub, _, other *testClient) { other.ok(`{"type":"delete_session","sessionId":"s"}`) },
		"client":  func(_ *hub.Hub, c, _ *testClient) { c.Close(); c.served <- <-c.served },
		"hub":     func(h *hub.Hub, _, _ *testClient) { _ = h.Close(context.Background(), "over") },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, s := newServer(t, pi.Options{Commands: command.Options{PromptTimeout: 5 * time.Hour}, RetryDelay: time.Hour, DropTasks: true})
				work, asked := failingFirst([]core.Body{overloadedFault})
				joinAgent(t, h, core.Card{ID: "a"}, work)
				c, other := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
				c.open("s", "a")
				other.ok(`{"type":"switch_session","sessionId":"s"}`)
				c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"hi"}`)
				other.until("auto_retry_start")
				end(h, c, other)
				other.until("command_finished", `"commandId":"p"`, `"success":true`)
				if what != "session" { // a deleted session sends no more events
					other.until("auto_retry_end", `"success":false`)
				}
				time.Sleep(2 * time.Hour)
				if *asked != 1 {
					t.Errorf("got %d requests, want one", *asked)
				}
			})
		})
	}
}

func TestAnAgentThatReconnectsInTimeIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{RetryDelay: 2 * time.Second})
		gone := joinAgent(t, h, core.Card{ID: "a"}, func(*testAgent, hub.Batch) {})
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"hi"}`)
		synctest.Wait()
		gone.Close(nil)
		c.until("auto_retry_start")
		joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
		c.until(`"response"`, `"id":"p"`, `"success":true`)
		if tr := c.transcript("s"); tr.Snapshots != "you said hi" || tr.StopReason != render.StopDone {
			t.Errorf("got %q and %s, want the answer", tr.Snapshots, tr.StopReason)
		}
	})
}
