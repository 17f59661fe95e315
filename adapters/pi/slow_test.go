package pi_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// blockedTransport is a transport whose peer stops reading at a certain frame.
type blockedTransport struct {
	link.Conn[[]byte, []byte]
	after string
	held  bool
	free  chan struct{}
	once  sync.Once
}

// release makes the peer read again.
func (c *blockedTransport) release() { c.once.Do(func() { close(c.free) }) }

func (c *blockedTransport) Close(r link.Reason) error {
	c.release()
	return c.Conn.Close(r)
}

func (c *blockedTransport) Send(ctx context.Context, m []byte) error {
	if c.held = c.held || strings.Contains(string(m), c.after); c.held {
		select {
		case <-c.free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return c.Conn.Send(ctx, m)
}

func TestASlowClientDoesNotSlowOthers(t *testing.T) {
	h, s := newServer(t, pi.Options{Link: link.Options{QueueBytes: 16 << 10}})
	chunk := strings.Repeat("x", 1000)
	joinAgent(t, h, core.Card{ID: "a"}, func(a *testAgent, b hub.Batch) {
		if assigned(b) {
			for range 500 {
				a.report(b.Task, core.Text{Text: chunk})
			}
			a.report(b.Task, core.Done{})
		}
	})
	hubs, clients := coretest.Pipe[[]byte, []byte](8)
	wall := &blockedTransport{Conn: hubs, after: `"agent_start"`, free: make(chan struct{})}
	slow := dialOver(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone}, wall, clients)
	fast := dial(t, s, pi.ConnOptions{Snapshots: render.SnapshotsNone})
	fast.open("s", "a")
	slow.ok(`{"type":"switch_session","sessionId":"s"}`)
	slow.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	fast.until(`"command_finished"`, `"commandId":"p"`)
	if got := fast.transcript("s").Deltas.Len(); got != 500_000 {
		t.Errorf("the fast client got %d bytes, want all", got)
	}
	wall.release()
	slow.until(`"response"`, `"id":"p"`)
	if got := slow.transcript("s").Deltas.Len(); got != 500_000 {
		t.Errorf("the slow client got %d bytes at the end, want all", got)
	}
}

func TestAClientThatReadsNothingIsClosedAsSlow(t *testing.T) {
	h, s := newServer(t, pi.Options{BacklogBytes: 64 << 10, Link: link.Options{QueueBytes: 4 << 10, WriteTimeout: time.Hour}})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	hubs, clients := coretest.Pipe[[]byte, []byte](8)
	wall := &blockedTransport{Conn: hubs, after: `"switch_session"`, free: make(chan struct{})}
	slow := dialOver(t, s, pi.ConnOptions{}, wall, clients)
	fast := dial(t, s, pi.ConnOptions{})
	fast.open("s", "a")
	slow.send(`{"id":"w","type":"switch_session","sessionId":"s"}`)
	fast.until("command_finished", `"commandId":"w"`)
	key := strings.Repeat("k", 256)
	for range 100 {
		// Every client gets every lifecycle event with the ids of the command.
		fast.ok(`{"type":"set_session_name","sessionId":"s","name":"n","idempotencyKey":"` + key + `"}`)
	}
	slow.requireClosed(tooSlow)
}

// requireClosed waits for the end of the connection and checks the reason.
func (c *testClient) requireClosed(want link.Reason) {
	c.t.Helper()
	select {
	case got := <-c.served:
		c.served <- got
		if got.Cause != want.Cause || want.Text != "" && got != want {
			c.t.Errorf("the end of the connection: got %+v, want %+v", got, want)
		}
	case <-time.After(testTimeout):
		c.t.Error("got an open connection, want it closed")
	}
}

var tooSlow = link.Reason{Cause: link.Slow, Text: "Server overloaded - backpressure critical", Code: 1011}

func TestAClientMayJoinARunLargerThanItsBacklog(t *testing.T) {
	h, s := newServer(t, pi.Options{BacklogBytes: 64 << 10})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	early, late := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	early.open("s", "a")
	long := strings.Repeat("x", 1000) // and each request has the earlier turns
	early.send(`{"id":"p","type":"prompt","sessionId":"s","message":"` + long + `"}`)
	task := <-w.tasks
	const turns = 20
	for i := range turns {
		early.ok(fmt.Sprintf(`{"type":"follow_up","sessionId":"s","message":"%s%d"}`, long, i))
		a.report(task, core.Done{})
		task = <-w.tasks
	}
	late.ok(`{"type":"switch_session","sessionId":"s"}`)
	late.until("message_end", fmt.Sprint(long, turns-1)) // from here on it keeps up with the others
	a.report(task, core.Done{})
	late.until("command_finished", `"commandId":"p"`, `"success":true`)
	if n := late.count(`"turn_end"`); n != turns+1 {
		t.Errorf("got %d turns, want all %d", n, turns+1)
	}
}

func TestAClientThatReadsNothingOfARunIsClosedAndCanReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{})
		w := newHeldAgent()
		a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
		hubs, clients := coretest.Pipe[[]byte, []byte](8)
		wall := &blockedTransport{Conn: hubs, after: `"message_update"`, free: make(chan struct{})}
		slow := dialOver(t, s, pi.ConnOptions{}, wall, clients)
		slow.open("s", "a")
		slow.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
		task := <-w.tasks
		synctest.Wait()
		time.Sleep(link.DefaultWriteTimeout)
		slow.requireClosed(link.Reason{Cause: link.Slow})
		again := dial(t, s, pi.ConnOptions{})
		again.ok(`{"type":"switch_session","sessionId":"s"}`)
		a.report(task, core.Text{Text: " and ended"}, core.Done{})
		again.until("command_finished", `"commandId":"p"`, `"success":true`)
		if got := again.transcript("s"); got.Snapshots != "begun and ended" || got.Deltas.String() != "begun and ended" {
			t.Errorf("after the reconnect: got %q and %q, want the whole run", got.Snapshots, got.Deltas.String())
		}
	})
}
