package pi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// asker opens tasks in a thread without a pi client.
type asker struct {
	*hub.Session
	t *testing.T
}

func newAsker(t *testing.T, h *hub.Hub, name string) *asker {
	t.Helper()
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: name}, Dialect: "rest"})
	t.Cleanup(func() { s.Close(nil) })
	return &asker{s, t}
}

func (who *asker) ask(thread core.ThreadID, agent, content string) *task.Task {
	who.t.Helper()
	task, err := who.Open(core.Request{To: core.ToAgent(core.AgentID(agent)), Thread: thread, Content: content}, hub.OpenOptions{Keep: true, Unwatched: true})
	if err != nil {
		who.t.Fatal(err)
	}
	return task
}

// threadOf returns the thread of a session from get_state.
func threadOf(c *testClient, session string) core.ThreadID {
	c.t.Helper()
	return core.ThreadID(textOf(c, `{"type":"get_state","sessionId":"`+session+`"}`, "thread"))
}

func textOf(c *testClient, line, name string) string {
	c.t.Helper()
	r, _ := command.Decode(c.ok(line).Data, 1<<20)
	text, _ := r.Text(name)
	return text
}

func TestASessionShowsWhatOthersAskInItsThread(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	c, late := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.open("t", "a") // not subscribed to the thread
	thread := threadOf(c, "s")
	if got := textOf(c, `{"type":"get_session_stats","sessionId":"s"}`, "sessionId"); got != string(thread) {
		t.Errorf("sessionId of get_session_stats: got %s, want the thread %s", got, thread)
	}
	commands := c.count(`"command_`)
	newAsker(t, h, "rest").ask(thread, "a", "Two?")
	task := <-w.tasks
	c.until(`"role":"user"`, `"text":"Two?"`, `"from":"rest"`)
	late.ok(`{"type":"switch_session","sessionId":"s"}`)
	a.report(task, core.Text{Text: " Two."}, core.Done{})
	want := strings.Fields(`agent_start turn_start message_start message_end
		message_start message_update/text_start message_update/text_delta message_update/text_end message_end turn_end agent_end`)
	for _, c := range []*testClient{c, late} {
		c.until(`"agent_end"`)
		tr := c.transcript("s")
		if diff := cmp.Diff(want, slices.Compact(ofTheRun(tr))); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if tr.Snapshots != "begun Two." {
			t.Errorf("text: got %q, want all of the answer", tr.Snapshots)
		}
	}
	// Clients got the lifecycle events of the late switch_session only.
	if got := c.count(`"command_`) - commands; got != 3 {
		t.Errorf("lifecycle events: got %d, want the 3 of the late client's command", got)
	}
	if got := roles(t, c, "s"); got != "user:Two? assistant:begun Two." {
		t.Errorf("messages: got %s", got)
	}
	if got := roles(t, c, "t"); got != "" {
		t.Errorf("messages of the other session: got %s, want none", got)
	}
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"isStreaming":false`) || f.SessionVersion == nil || *f.SessionVersion != 0 {
		t.Errorf("state: got %s, want idle and of version 0", f.Raw)
	}
}

func TestSharedAndOwnRunsAreShownOneAfterTheOther(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 4}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	who, thread := newAsker(t, h, "rest"), threadOf(c, "s")
	who.ask(thread, "a", "one")
	first := <-w.tasks
	c.until(`"role":"user"`, `"text":"one"`)
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"two"}`)
	c.until(`command_accepted`, `"p"`)
	who.ask(thread, "a", "three")
	third := <-w.tasks
	a.report(third, core.Text{Text: " three"}, core.Done{}) // earlier than the others
	if c.count(`command_started`, `"p"`) > 0 {
		t.Error("the prompt has started beside a run that is told")
	}
	a.report(first, core.Text{Text: " one"}, core.Done{})
	a.report(<-w.tasks, core.Text{Text: " two"}, core.Done{})
	c.until(`"agent_end"`, `"text":"three"`)
	want := "user:one assistant:begun one user:two assistant:begun two user:three assistant:begun three"
	if got := roles(t, c, "s"); got != want {
		t.Errorf("messages: got %s, want %s", got, want)
	}
	one := slices.Compact(ofTheRun(c.transcript("s")))
	if n := len(one) / 3; len(one) != 3*n || strings.Join(one[:n], " ") != strings.Join(one[n:2*n], " ") || one[0] != "agent_start" || one[n-1] != "agent_end" {
		t.Errorf("events: got %v, want three runs one after the other", one)
	}
}

func TestASharedRunIsControlledLikeAnOwnOne(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureInjection | core.FeatureCancellation | core.FeatureApprovals}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	who, thread := newAsker(t, h, "rest"), threadOf(c, "s")

	task := who.ask(thread, "a", "one")
	<-w.tasks
	c.until(`"role":"user"`, `"text":"one"`)
	c.ok(`{"type":"steer","sessionId":"s","message":"left"}`)
	in := (<-w.requests).(core.Injected)
	if err := who.Inject(hub.NoWait, task.ID(), core.Injected{ID: "theirs", Content: "up"}); err != nil {
		t.Fatal(err)
	}
	<-w.requests
	// Of the refused injections only that of this session becomes a turn.
	a.report(task, core.InjectionAnswered{ID: in.ID}, core.InjectionAnswered{ID: "theirs"})
	a.report(task, core.ToolCall{ID: "k", Name: "rm", Input: "{}"}, core.ApprovalRequested{ID: "k", Name: "rm", Input: "{}"})
	id := c.until("extension_ui_request", `"confirm"`)
	var asked pitest.UIRequest
	if err := strictjson.Decode(id.Event, strictjson.Limits{Bytes: len(id.Event)}, &asked); err != nil {
		t.Fatal(err)
	}
	c.ok(`{"type":"extension_ui_response","sessionId":"s","requestId":"` + asked.RequestID + `","response":{"method":"confirm","confirmed":true}}`)
	if d, ok := (<-w.requests).(core.ApprovalDecided); !ok || !d.Approved {
		t.Errorf("decision: got %+v, want approved", d)
	}
	a.report(task, core.ToolResult{ID: "k", Output: "gone"}, core.Done{})
	next := <-w.tasks
	if got := next.Request(); got.Content != "left" || got.Thread != thread {
		t.Errorf("the next turn: got %q in thread %s, want left in %s", got.Content, got.Thread, thread)
	}
	a.report(next, core.Done{})
	c.until("agent_end")

	task = who.ask(thread, "a", "two")
	<-w.tasks
	c.until(`"role":"user"`, `"text":"two"`)
	c.ok(`{"type":"abort","sessionId":"s"}`)
	if got, ok := (<-w.requests).(core.CancelRequested); !ok {
		t.Errorf("got %+v, want a cancel for the agent", got)
	}
	a.report(task, core.Cancelled{})
	c.until("agent_end", `"stopReason":"aborted"`)
}

func TestLeavingAThreadStopsItsEventsAndNoTasks(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 4, Features: core.FeatureCancellation}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	who, thread := newAsker(t, h, "rest"), threadOf(c, "s")
	c.ok(`{"type":"new_session","sessionId":"s"}`)
	next := threadOf(c, "s")
	if next == thread {
		t.Fatal("got the same thread after new_session, want another")
	}
	old := who.ask(thread, "a", "old")
	a.report(<-w.tasks, core.Done{})
	<-w.ended(t, h, old)
	task := who.ask(next, "a", "new")
	<-w.tasks
	c.until(`"role":"user"`, `"text":"new"`)
	if got := c.count(`"text":"old"`); got != 0 {
		t.Errorf("got %d frames of the old thread, want none", got)
	}
	// Deleting the session stops neither the task of the other requester nor the lane.
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"never"}`)
	c.until(`command_accepted`, `"p"`)
	c.ok(`{"type":"delete_session","sessionId":"s"}`)
	if f := c.until(`"response"`, `"p"`); f.Error != "Session s not found" {
		t.Errorf("the waiting prompt: got %s", f.Raw)
	}
	a.report(task, core.Done{})
	<-w.ended(t, h, task)
	if got := task.Answer().Fault; got != nil {
		t.Errorf("the task of the other requester: got %v, want done", got)
	}
	left := s.Left()
	if n := left["threads"] + left["runs"] + left["lanes"]; n != 0 {
		t.Errorf("got %v left, want no threads, runs or lanes", left)
	}
}

// ended waits for a task to end.
func (*heldAgent) ended(t *testing.T, h *hub.Hub, task *task.Task) <-chan struct{} {
	t.Helper()
	over := make(chan struct{})
	v := h.Connect(hub.Identity{Principal: core.Principal{ID: "viewer", Operator: true}})
	if err := v.Watch(task, core.Cursor{}, nil); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(over)
		defer v.Close(nil)
		for {
			b, err := v.Next(t.Context())
			if err != nil {
				return
			}
			for _, e := range b.Events {
				if e.Body.Kind().Ends() {
					return
				}
			}
		}
	}()
	return over
}

func TestASessionReportsSharedTurnsThatItCannotShow(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 1000}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	const others = 100 // the limit of waiting tasks in a session
	who, thread := newAsker(t, h, "rest"), threadOf(c, "s")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"mine"}`)
	mine := <-w.tasks
	for i := range others + 1 {
		who.ask(thread, "a", fmt.Sprint(i))
		a.report(<-w.tasks, core.Done{})
	}
	c.until("notify", "is not shown here: 100 others wait to be")
	a.report(mine, core.Done{})
	c.until(`"agent_end"`, fmt.Sprintf(`"text":"%d"`, others-1))
	if got := len(messagesOf(t, c, "s")); got != 2*(others+1) {
		t.Errorf("messages: got %d, want %d", got, 2*(others+1))
	}
	if got := h.Counters()["pi.heard.overrun"]; got != 1 {
		t.Errorf("pi.heard.overrun: got %d, want 1", got)
	}
}

func TestAStoppingHubFailsPromptsThatWaitForASharedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}})
		w := newHeldAgent()
		joinAgent(t, h, core.Card{ID: "a"}, w.work)
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		newAsker(t, h, "rest").ask(threadOf(c, "s"), "a", "one")
		<-w.tasks
		c.until(`"text":"begun"`)
		c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"two"}`)
		c.until(`command_accepted`, `"p"`)
		_ = h.Close(t.Context(), "over")
		if f := c.until(`"response"`, `"p"`); f.Success {
			t.Errorf("the waiting prompt: got %s, want a failure", f.Raw)
		}
	})
}

func TestASharedConversationIsNotCompactedAutomatically(t *testing.T) {
	for _, shared := range []bool{false, true} {
		g := newSummarizer(summaryBodies...)
		g.usage = 120_000
		h, s := newServer(t, pi.Options{CompactAt: 50})
		joinAgent(t, h, core.Card{ID: "a"}, g.work)
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		thread := threadOf(c, "s")
		if shared {
			newAsker(t, h, "rest").ask(thread, "a", "zero")
			c.until("agent_end")
		}
		for _, text := range []string{"one", "two", "three"} {
			c.ok(`{"type":"prompt","sessionId":"s","message":"` + text + `"}`)
		}
		c.ok(`{"type":"set_session_name","sessionId":"s","name":"behind all"}`)
		if stays := threadOf(c, "s") == thread; stays != shared {
			t.Errorf("shared %v: got the same thread %v, want it only if it is shared", shared, stays)
		}
	}
}
