package peer_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAHubThatCouldNotBeToldAsksForWhatItHasMissed(t *testing.T) {
	tier.Full(t, "it misses thousands of tasks")
	synctest.Test(t, func(t *testing.T) {
		r := newRelinked(t)
		r.link()
		all := map[string]*node{"a": r.a, "b": r.b}
		amy := r.a.join(t, all, core.Card{ID: "amy"})
		ann, there := r.a.person("ann"), r.b.Connect(hub.Identity{Principal: core.Principal{ID: "op", Operator: true}, Dialect: "test"})
		feed, err := there.Feed("")
		if err != nil {
			t.Fatal(err)
		}
		subscriber := subscribing(t, r.b.person("sue"), "family.*")
		turns := 0
		turn := func() {
			t.Helper()
			turns++
			asked, err := ann.Open(core.Request{To: core.ToAgent("amy"), Thread: "talk", Content: fmt.Sprint(turns)}, hub.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := assigned(t, amy)
			for got.ID() != asked.ID() { // the end of one before
				got = assigned(t, amy)
			}
			if err := amy.Report(got.ID(), core.Done{}, nil); err != nil {
				t.Fatal(err)
			}
			until(t, ann, asked.ID(), core.KindDone)
		}
		wantTurns := func(when string) {
			t.Helper()
			synctest.Wait()
			ann := core.Principal{ID: "ann"}
			want := len(r.a.Turns(t.Context(), ann, "talk"))
			if got := len(r.b.Turns(t.Context(), ann, "talk")); got != want || want == 0 {
				t.Errorf("%s: the other hub has %d turns of the conversation, want %d", when, got, want)
			}
		}
		notice := func(topic string, size int) error {
			_, err := ann.Open(core.Request{Intent: core.IntentNotify, To: core.ToHub(), Notice: &core.Notice{Topic: topic}, Content: strings.Repeat("x", size)}, hub.OpenOptions{})
			return err
		}
		turn()
		wantTurns("while it hears all")

		r.end()
		for _, fill := range []func(){func() { _ = notice("filler", 200<<10) }, turn} { // until no such news can be told
			for before := r.a.Counters()["peer.untold"]; r.a.Counters()["peer.untold"] == before; {
				fill()
			}
		}
		var nails, offered []string
		for i := range 30 {
			nails = append(nails, fmt.Sprintf("nail_%02d", i))
			offered = append(offered, "tools."+nails[i])
		}
		offering(t, r.a.person("paul"), "tools", nails...)
		err = notice("family.news", 5000)
		if f := core.AsFault(err); f == nil || f.Code != core.CodeUnreachable {
			t.Errorf("a notice that no hub could be told: got %v, want unreachable at once", err)
		}
		r.link()
		wantTurns("once it hears again")
		if got := noticed(t, subscriber, 1); got[0] != "gap" {
			t.Errorf("its subscriber: got %v, want a gap", got)
		}
		listed(t, "b", r.b.Hub, offered...)

		seen := map[core.TaskID]bool{}
		for len(seen) < turns {
			b, err := feed.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if b.Task != "" {
				seen[b.Task] = true
			}
		}
		time.Sleep(2 * time.Second)
		if got := r.b.Counters()["peer.missed"]; got == 0 || got > 5 {
			t.Errorf("it has asked %d times, want a few times", got)
		}
	})
}
