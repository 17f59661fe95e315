package pi

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestEveryWaitingItemCounts(t *testing.T) {
	const limit = 64 << 10
	for _, tt := range []struct {
		name string
		item func() item
		most int // how many fit
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
				o.runEnded(it.step.run)
			}
		}
		if n > tt.most+1 {
			t.Errorf("%s: got %d accepted, want at most %d", tt.name, n, tt.most)
		}
		for range o.len() {
			it, _ := o.take(func(item) bool { return false })
			o.sent(it)
		}
		if o.bytes != 0 || len(o.live) != 0 {
			t.Errorf("%s: got %d bytes and %d runs with an empty queue, want none", tt.name, o.bytes, len(o.live))
		}
	}
}

// Among the waiting steps only those of ended runs count.
func TestOnlyTheStepsOfEndedRunsCount(t *testing.T) {
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
				waiting = append(waiting, o.items.Items()[o.items.Len()-1])
			case what == 3:
				o.runEnded(r)
				over[r] = true
			case len(waiting) > 0:
				o.sent(waiting[0])
				waiting = waiting[1:]
			}
			want := 0
			for _, it := range waiting {
				if want += it.size(); over[it.step.run] {
					want += it.retained
				}
			}
			if o.bytes != want {
				t.Fatalf("got %d bytes, want %d", o.bytes, want)
			}
		}
	})
}

func TestBroadcastsDoNotStarveTheHub(t *testing.T) {
	s := bareServer(t, coretest.NewHub(t, hub.Options{}), Options{})
	hubs, _ := coretest.Pipe[[]byte, []byte](0)
	c := s.newConnection(ConnOptions{})
	defer c.hub.Close(nil)
	c.link = link.New(hubs, link.Options{})
	ss := &session{server: s}
	c.subscriptions[ss] = struct{}{}
	const most = 10
	delivered := 0
	var more *step // each is added while the one before is delivered
	more = &step{run: &run{session: ss}, answer: func(*render.View) {
		if delivered++; delivered < most {
			c.push(item{step: more})
		}
	}}
	c.push(item{step: more})
	for want := 1; want <= most; want++ {
		if !c.deliver(t.Context()) || delivered != want {
			t.Fatalf("call %d: got %d delivered, want one per call", want, delivered)
		}
		if want < most && len(c.out.ready) == 0 {
			t.Fatalf("call %d: got no notification that more waits, want one", want)
		}
	}
}
