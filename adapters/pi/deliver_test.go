package pi_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// events returns the frames of a session, in order.
func (c *testClient) events(session string) []string {
	var out []string
	for _, f := range c.received() {
		if f.SessionID == session {
			out = append(out, string(f.Raw))
		}
	}
	return out
}

func TestALateSubscriberSeesTheRunFromItsBeginning(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	early, late, never := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	early.open("s", "a")
	early.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
	first := <-w.tasks
	early.ok(`{"type":"follow_up","sessionId":"s","message":"two"}`)
	a.report(first, core.Done{})
	second := <-w.tasks
	late.ok(`{"type":"switch_session","sessionId":"s"}`)
	late.ok(`{"type":"switch_session","sessionId":"s"}`) // once is enough
	a.report(second, core.Thinking{Text: "hm"}, core.Done{})
	for _, c := range []*testClient{early, late} {
		c.until(`"type":"command_finished"`, `"commandId":"p"`)
	}
	want := early.transcript("s")
	got := late.transcript("s")
	if diff := cmp.Diff(ofTheRun(want), ofTheRun(got)); diff != "" {
		t.Errorf("events of the late one (-early +late):\n%s", diff)
	}
	if got.Snapshots != want.Snapshots || got.Snapshots != "begunbegun" {
		t.Errorf("text: got %q late and %q early, want both complete", got.Snapshots, want.Snapshots)
	}
	for _, c := range []*testClient{early, late} {
		order := types(t, c.received())
		if last := order[len(order)-1]; last != "response" && last != "command_finished" {
			t.Errorf("the last frame: got %s, want the outcome of the prompt after its events", last)
		}
		for i, f := range c.received() {
			if has(f, `"type":"command_finished"`, `"commandId":"p"`) && order[i-1] != "event/agent_end" {
				t.Errorf("before command_finished of the prompt: got %s, want agent_end", order[i-1])
			}
		}
	}
	if n := len(never.events("s")); n != 0 {
		t.Errorf("the unsubscribed client got %d events, want none", n)
	}
}

func TestAConnectionMayHaveDeltasWithoutSnapshots(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, answerWith(core.Text{Text: "one "}, core.Text{Text: "two"}, core.Done{}))
	c := dial(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone})
	c.open("s", "a")
	c.ok(`{"type":"prompt","sessionId":"s","message":"x"}`)
	for _, e := range c.events("s") {
		if strings.Contains(e, "message_update") && (strings.Contains(e, `"message":`) || strings.Contains(e, `"partial":`)) {
			t.Errorf("got a snapshot in %s", e)
		}
	}
	tr := c.transcript("s")
	if tr.Deltas.String() != "one two" || tr.Snapshots != "one two" {
		t.Errorf("got %q by deltas and %q in the end, want one two", tr.Deltas.String(), tr.Snapshots)
	}
}

func TestARunOutlivesTheClientThatStartedIt(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	c := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann"}})
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
	first := <-w.tasks
	c.ok(`{"type":"follow_up","sessionId":"s","message":"two"}`)
	c.Close()
	c.served <- <-c.served
	again := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "bob"}})
	a.report(first, core.Done{})
	second := <-w.tasks
	if got := second.From(); got.ID != "ann" || got.Operator {
		t.Errorf("the next turn: got requester %+v, want ann", got)
	}
	again.ok(`{"type":"switch_session","sessionId":"s"}`)
	a.report(second, core.Done{})
	again.until("command_finished", `"commandId":"p"`, `"success":true`)
	if got := roles(t, again, "s"); got != "user:one assistant:begun user:two assistant:begun" {
		t.Errorf("messages: got %s", got)
	}
	if got := again.transcript("s").Snapshots; got != "begunbegun" {
		t.Errorf("got %q, want both answers", got)
	}
}

func TestRunningCommandsAreAnsweredAfterTheEndOfInput(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	hubs, clients := coretest.Pipe[[]byte, []byte](64)
	half := &halfOpen{Conn: hubs, eof: make(chan struct{})}
	c := dialOver(t, s, pi.ConnOptions{Transport: pi.Stdio}, half, clients)
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
	task := <-w.tasks
	close(half.eof)
	a.report(task, core.Text{Text: " and done"}, core.Done{})
	c.until(`"response"`, `"id":"p"`, `"success":true`)
	if got := <-c.served; got.Cause != link.Normal {
		t.Errorf("got %+v, want a normal end", got)
	} else {
		c.served <- got
	}
	if got := c.transcript("s").Snapshots; got != "begun and done" {
		t.Errorf("got %q, want the whole answer", got)
	}
}

// halfOpen is a transport whose peer closes its own side only.
type halfOpen struct {
	link.Conn[[]byte, []byte]
	eof chan struct{}
}

func (c *halfOpen) Receive(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type received struct {
		m   []byte
		err error
	}
	got := make(chan received, 1)
	go func() {
		m, err := c.Conn.Receive(ctx)
		got <- received{m, err}
	}()
	select {
	case r := <-got:
		return r.m, r.err
	case <-c.eof:
		cancel()
		<-got
		return nil, io.EOF
	}
}

func TestADrainingHubInformsAndClosesItsClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{})
		w := newHeldAgent()
		a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
		task := <-w.tasks
		closed := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			closed <- h.Close(ctx, "going home")
		}()
		c.until(`{"type":"server_shutdown","data":{"reason":"graceful_shutdown","timeoutMs":30000}}`)
		c.fails(`{"id":"x","type":"list_sessions"}`, "Server is shutting down")
		if c.count(`"commandId":"x"`) != 0 {
			t.Error("a refused command has a lifecycle")
		}
		late := dial(t, s, pi.ConnOptions{})
		late.until("server_shutdown")
		if got := <-late.served; got.Code != 1001 || got.Text != "Server shutting down" {
			t.Errorf("a connection while it stops: got %+v, want it refused:\n%s", got, late.log())
		} else {
			late.served <- got
		}
		a.report(task, core.Text{Text: " ended"}, core.Done{})
		if err := <-closed; err != nil {
			t.Error(err)
		}
		want := link.Reason{Cause: link.ShuttingDown, Text: "Server shutting down", Code: 1001}
		if got := <-c.served; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		} else {
			c.served <- got
		}
		c.until(`"response"`, `"id":"p"`, `"success":true`)
		if got := c.transcript("s").Snapshots; got != "begun ended" {
			t.Errorf("got %q, want the whole answer", got)
		}
	})
}

func TestARunThatTheDrainCutsOffIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{})
		w := newHeldAgent()
		joinAgent(t, h, core.Card{ID: "a"}, w.work)
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
		<-w.tasks
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := h.Close(ctx, "now"); err != nil {
			t.Error(err)
		}
		c.served <- <-c.served
		c.until(`"response"`, `"id":"p"`, `"success":true`)
		if tr := c.transcript("s"); tr.StopReason != render.StopError || !strings.Contains(tr.ErrorMessage, "the hub stopped") {
			t.Errorf("got %q %q, want an error with the reason", tr.StopReason, tr.ErrorMessage)
		}
	})
}

func TestAConnectionToAStoppedHubIsClosedWithTheReason(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	if err := h.Close(t.Context(), "over"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	c := dial(t, s, pi.ConnOptions{})
	c.served <- <-c.served
	c.until("server_shutdown")
	if got := (<-c.served); got.Cause != link.ShuttingDown {
		t.Errorf("got %+v, want it shut down", got)
	} else {
		c.served <- got
	}
}

func TestDeletingASessionEndsItsRunAndItsEvents(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureCancellation}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
	task := <-w.tasks
	c.until("text_delta")
	c.ok(`{"id":"d","type":"delete_session","sessionId":"s"}`)
	c.until(`{"type":"session_deleted","data":{"sessionId":"s"}}`)
	<-w.requests
	a.report(task, core.Cancelled{})
	if f := c.until(`"response"`, `"id":"p"`); !f.Success || f.SessionVersion != nil {
		t.Errorf("the prompt of a deleted session: got %s, want success without a version", f.Raw)
	}
	if n := c.count(`"agent_end"`); n != 0 {
		t.Error("events went on after the session was deleted")
	}
	c.fails(`{"type":"get_state","sessionId":"s"}`, "Session s not found")
	c.open("s", "a") // the id is free again, for a new conversation
	if got := roles(t, c, "s"); got != "" {
		t.Errorf("messages of the new session: got %s, want none", got)
	}
}

// The path is agent, hub, server, link, client.
func TestABurstOfChunksArrivesWholeAndWithinTheBound(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	chunks := chunked(5000, 64)
	joinAgent(t, h, core.Card{ID: "a"}, func(a *testAgent, b hub.Batch) {
		if assigned(b) {
			for _, c := range chunks {
				a.report(b.Task, core.Text{Text: c})
			}
			a.report(b.Task, core.Done{})
		}
	})
	text := strings.Join(chunks, "")
	for _, how := range []render.Snapshots{render.SnapshotsAll, render.SnapshotsNone} {
		c := dial(t, s, pi.ConnOptions{Snapshots: how})
		session := []string{"", "all", "none"}[how]
		c.open(session, "a")
		before := len(c.received())
		c.ok(`{"type":"prompt","sessionId":"` + session + `","message":"x"}`)
		bytes := 0
		for _, f := range c.received()[before:] {
			bytes += len(f.Raw)
		}
		multiple := float64(bytes) / float64(len(text))
		t.Logf("%s: %d frames, %d bytes, %.2f times the text", session, len(c.received())-before, bytes, multiple)
		if multiple > 8 {
			t.Errorf("%s: got %.2f times the text, want at most 8", session, multiple)
		}
		tr := c.transcript(session)
		if tr.Deltas.String() != text || tr.Snapshots != text {
			t.Errorf("%s: got %d bytes by deltas and %d by snapshots, want %d", session, tr.Deltas.Len(), len(tr.Snapshots), len(text))
		}
	}
}

// chunked returns n chunks with different letters.
func chunked(n, size int) []string {
	chunks := make([]string, n)
	for i := range chunks {
		chunks[i] = strings.Repeat(string(rune('a'+i%26)), size)
	}
	return chunks
}
