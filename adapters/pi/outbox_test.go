package pi

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestWhateverWaitsForAClientCounts(t *testing.T) {
	const limit = 64 << 10
	for _, tt := range []struct {
		name string
		item func() item
		most int // so many fit
	}{
		{"a frame", func() item { return item{frame: make([]byte, 1000)} }, limit/1000 + 1},
		{"a step", func() item {
			return item{step: &step{run: &run{}, opening: [][]byte{make([]byte, 1000), make([]byte, 1000)}}}
		}, limit/2000 + 1},
		{"a fence", func() item { return item{fence: &step{}} }, limit/itemBytes + 1},
		{"the end", func() item { return item{last: &link.Reason{}} }, limit/itemBytes + 1},
	} {
		o := newOutbox(limit)
		n := 1
		for it := tt.item(); o.push(it) && n <= tt.most+1; it = tt.item() {
			if n++; it.step != nil {
				o.over(it.step.run)
			}
		}
		if n > tt.most+1 {
			t.Errorf("%s: got %d taken, want at most %d", tt.name, n, tt.most)
		}
		for _, it := range o.take(nil) {
			o.sent(it)
		}
		if o.bytes != 0 || len(o.live) != 0 {
			t.Errorf("%s: got %d bytes and %d runs once nothing waits, want none", tt.name, o.bytes, len(o.live))
		}
	}
}

// Whatever steps wait, those whose run has ended count and no others.
func TestOnlyTheStepsOfARunThatIsOverCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOutbox(1 << 30)
		runs := []*run{{}, {}, {}}
		over := map[*run]bool{}
		var waiting []item
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			r := rapid.SampledFrom(runs).Draw(t, "run")
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what < 3 && !over[r]:
				o.push(item{step: &step{run: r, opening: [][]byte{make([]byte, rapid.IntRange(0, 50).Draw(t, "bytes"))}}})
				waiting = append(waiting, o.items[len(o.items)-1])
			case what == 3:
				o.over(r)
				over[r] = true
			case len(waiting) > 0:
				o.sent(waiting[0])
				waiting = waiting[1:]
			}
			want := 0
			for _, it := range waiting {
				if want += it.size(); over[it.step.run] {
					want += it.keeps
				}
			}
			if o.bytes != want {
				t.Fatalf("got %d bytes, want %d", o.bytes, want)
			}
		}
	})
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

func TestAClientMayJoinARunThatIsLargerThanItsBound(t *testing.T) {
	h, s := newStage(t, Options{BacklogBytes: 64 << 10})
	w := holding()
	a := join(t, h, core.Card{ID: "a"}, w.work)
	early, late := dial(t, s, ConnOptions{}), dial(t, s, ConnOptions{})
	early.open("s", "a")
	long := strings.Repeat("x", 1000) // and each turn is asked with those before it
	early.send(`{"id":"p","type":"prompt","sessionId":"s","message":"` + long + `"}`)
	task := <-w.tasks
	const turns = 20
	for i := range turns {
		early.ok(fmt.Sprintf(`{"type":"follow_up","sessionId":"s","message":"%s%d"}`, long, i))
		a.say(task, core.Done{})
		task = <-w.tasks
	}
	late.ok(`{"type":"switch_session","sessionId":"s"}`)
	late.until("message_end", fmt.Sprint(long, turns-1)) // from here on it is told no more slowly than the others
	a.say(task, core.Done{})
	late.until("command_finished", `"commandId":"p"`, `"success":true`)
	if n := late.count(`"turn_end"`); n != turns+1 {
		t.Errorf("got %d turns told, want all %d", n, turns+1)
	}
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

func TestTheRoomOfABurstIsGivenBackOnceItWasSent(t *testing.T) {
	_, s := newStage(t, Options{})
	hubs, _ := coretest.Pipe[[]byte, []byte](1)
	c := s.newConnection(ConnOptions{})
	defer c.hub.Close(nil)
	c.link = link.New(hubs, link.Options{})
	rooms := func() int { return cap(c.turn) + cap(c.spare) + cap(c.out.items) }
	for _, burst := range []int{2 * spareItems, 1, 2 * spareItems, 2 * spareItems} {
		for range burst {
			c.push(item{frame: []byte("x")})
		}
		if !c.deliver(t.Context()) || rooms() > 2*spareItems {
			t.Errorf("behind %d frames: got room for %d more, want it for %d at most", burst, rooms(), 2*spareItems)
		}
	}
}
