package pi

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestWhateverWaitsForAClientCounts(t *testing.T) {
	const limit = 64 << 10
	told := &step{opening: [][]byte{make([]byte, 1000), make([]byte, 1000)}}
	for _, tt := range []struct {
		name string
		item item
		most int // so many fit
	}{
		{"a frame", item{frame: make([]byte, 1000)}, limit/1000 + 1},
		{"a step", item{step: told}, limit/2000 + 1},
		{"a fence", item{fence: told}, limit/itemBytes + 1},
		{"the end", item{last: &link.Reason{}}, limit/itemBytes + 1},
	} {
		o := newOutbox(limit)
		n := 1
		for o.push(tt.item) && n <= tt.most+1 {
			n++
		}
		if n > tt.most+1 {
			t.Errorf("%s: got %d taken, want at most %d", tt.name, n, tt.most)
		}
		items, err := o.take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			o.sent(it.size())
		}
		if o.bytes != 0 {
			t.Errorf("%s: got %d bytes once nothing waits, want none", tt.name, o.bytes)
		}
	}
}

// closedAs waits for the end of a connection and holds it to the reason.
func (c *caller) closedAs(want link.Reason) {
	c.t.Helper()
	select {
	case got := <-c.served:
		c.served <- got
		if got.Cause != want.Cause || want.Text != "" && got != want {
			c.t.Errorf("the end of the connection: got %+v, want %+v", got, want)
		}
	case <-time.After(patience):
		c.t.Error("the connection is open yet, want it closed")
	}
}

var tooSlow = link.Reason{Cause: link.Slow, Text: "Server overloaded - backpressure critical", Code: 1011}

func TestARunThatWaitsForAClientCountsWithAllThatItKeeps(t *testing.T) {
	h, s := newStage(t, Options{BacklogBytes: 64 << 10, Link: link.Options{QueueBytes: 4 << 10, WriteTimeout: time.Hour}})
	w := holding()
	join(t, h, core.Card{ID: "a"}, w.work)
	hubs, clients := coretest.Pipe[[]byte, []byte](8)
	wall := &stuck{Conn: hubs, after: `"switch_session"`, free: make(chan struct{})}
	slow := dialOver(t, s, ConnOptions{}, wall, clients)
	fast := dial(t, s, ConnOptions{})
	fast.open("s", "a")
	slow.send(`{"id":"w","type":"switch_session","sessionId":"s"}`)
	fast.until("command_finished", `"commandId":"w"`)
	fill := strings.Repeat("k", 5000)
	for range 2 { // what the link still takes
		fast.ok(`{"type":"list_sessions","dependsOn":[],"sessionId":"` + fill + `"}`)
	}
	fast.send(`{"id":"p","type":"prompt","sessionId":"s","message":"` + strings.Repeat("x", 100_000) + `"}`)
	<-w.tasks
	fast.ok(`{"type":"health_check"}`)
	slow.closedAs(tooSlow)
}

func TestAClientThatReadsNothingOfARunIsClosedAsSlowAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newStage(t, Options{})
		w := holding()
		a := join(t, h, core.Card{ID: "a"}, w.work)
		hubs, clients := coretest.Pipe[[]byte, []byte](8)
		wall := &stuck{Conn: hubs, after: `"message_update"`, free: make(chan struct{})}
		slow := dialOver(t, s, ConnOptions{}, wall, clients)
		slow.open("s", "a")
		slow.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
		task := <-w.tasks
		synctest.Wait()
		time.Sleep(link.DefaultWriteTimeout)
		slow.closedAs(link.Reason{Cause: link.Slow})
		again := dial(t, s, ConnOptions{})
		again.ok(`{"type":"switch_session","sessionId":"s"}`)
		a.say(task, core.Text{Text: " and ended"}, core.Done{})
		again.until("command_finished", `"commandId":"p"`, `"success":true`)
		if got := again.transcript("s"); got.Snapshots != "begun and ended" || got.Deltas.String() != "begun and ended" {
			t.Errorf("who came back: got %q and %q, want the whole run", got.Snapshots, got.Deltas.String())
		}
	})
}
