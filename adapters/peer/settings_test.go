package peer_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

func TestAnAgentHasItsSettingsAtEveryHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		stored := map[string]hub.AgentSettings{} // of bob, by hub
		w := newWorldWith(t, func(name string, o *hub.Options) {
			o.SaveAgentSettings = func(all map[core.AgentID]hub.AgentSettings) error {
				mu.Lock()
				defer mu.Unlock()
				stored[name] = all["bob"]
				return nil
			}
		}, "a", "b", "c")
		set := func(at string, most int) {
			t.Helper()
			if _, err := w.hubs[at].Configure(t.Context(), core.Principal{ID: "ops", Operator: true}, core.Configure{Agent: "bob", MaxConcurrent: &most}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		// comes lets bob come to a hub, and wants the settings there.
		comes := func(at string, most int) *hub.Session {
			t.Helper()
			bob := w.join(at, core.Card{ID: "bob", MaxConcurrent: 5})
			for name, m := range w.hubs {
				if s, ok := m.Agent(core.Principal{ID: "ann"}, "bob"); !ok || s.MaxConcurrent != most {
					t.Errorf("hub %s, while bob is at %s: got at most %d tasks at once, want %d", name, at, s.MaxConcurrent, most)
				}
			}
			return bob
		}
		leaves := func(bob *hub.Session) {
			bob.Close(nil)
			time.Sleep(time.Second)
		}
		bob := w.join("b", core.Card{ID: "bob", MaxConcurrent: 5})
		set("a", 2)
		leaves(bob)
		bob = comes("c", 2)
		mu.Lock()
		if want := (hub.AgentSettings{MaxConcurrent: 2, Changes: 1}); stored["a"] != want || stored["b"] != want || stored["c"] != want {
			t.Errorf("stored: got %+v, want %+v at every hub", stored, want)
		}
		mu.Unlock()

		// A hub that was away gets what has changed, and does not bring back what was.
		w.net.Kill("b")
		time.Sleep(5 * time.Second)
		set("a", 3)
		w.hubs["b"].stop()
		w.start("b", 1)
		w.until("b has a quorum", w.hubs["b"].part.Cluster().HasQuorum)
		time.Sleep(time.Second)
		leaves(bob)
		bob = comes("b", 3)
		set("c", 0)
		leaves(bob)
		leaves(comes("a", 5))
	})
}

func TestAHubThatCouldNotBeToldSettingsWantsThemAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		stored := map[core.AgentID]int{} // at hub b: how many tasks at once
		r := newRelinkedWith(t, hub.Options{SaveAgentSettings: func(all map[core.AgentID]hub.AgentSettings) error {
			mu.Lock()
			defer mu.Unlock()
			for id, s := range all {
				stored[id] = s.MaxConcurrent
			}
			return nil
		}})
		r.link()
		set := func(id core.AgentID, most int) {
			t.Helper()
			if _, err := r.a.Configure(t.Context(), operator, core.Configure{Agent: id, MaxConcurrent: &most}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []core.AgentID{"amy", "ben"} {
			r.a.join(t, map[string]*node{"a": r.a, "b": r.b}, core.Card{ID: id, MaxConcurrent: 9})
			set(id, 2)
		}
		want := func(when string, amy, ben int) {
			t.Helper()
			time.Sleep(5 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			if stored["amy"] != amy || stored["ben"] != ben {
				t.Errorf("%s: got at most %d tasks of amy and %d of ben at once, want %d and %d", when, stored["amy"], stored["ben"], amy, ben)
			}
		}
		want("while it hears all", 2, 2)

		r.end()
		for _, size := range []int{100 << 10, 900, 1} { // until nothing can be told
			news := rpc.Told{What: "nothing", Value: []byte(`"` + strings.Repeat("x", size) + `"`)}
			for r.a.peers.Tell("b", news) == nil {
			}
		}
		set("amy", 3)
		set("ben", 4)
		if got := r.a.Counters()["peer.untold"]; got == 0 {
			t.Errorf("while nothing can be told: got all of it told, want none")
		}
		want("before it hears again", 2, 2)
		r.link()
		want("once it hears again", 3, 4)
	})
}
