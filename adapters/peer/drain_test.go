package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAHubThatDrainsNamesTheHubsToGoTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		drained := func(name string) *member {
			t.Helper()
			if err := w.hubs[name].Drain(core.Principal{ID: "zoe", Operator: true}); err != nil {
				t.Fatal(err)
			}
			<-w.hubs[name].Drained()
			return w.hubs[name]
		}
		refuses := func(b *member, want string) {
			t.Helper()
			late := b.Connect(hub.Identity{Principal: core.Principal{ID: "bob"}, Dialect: "test"})
			_, opened := late.Open(core.Request{To: core.ToAgent("cid"), Content: "go"}, hub.OpenOptions{})
			for what, err := range map[string]error{"a task": opened, "an agent": late.Join(core.Card{ID: "bob"}, hub.JoinOptions{}), "a pack": late.Provide("kit", nil)} {
				if f := core.AsFault(err); f == nil || f.Code != core.CodeUnreachable || !f.Retryable || f.Message != "the hub is stopping (an operator drains it): "+want {
					t.Errorf("%s: got %v, want that it is told to %s", what, err, want)
				}
			}
			if told, err := readToItsEnd(t, late); !told || err.Error() != "unreachable: the hub was drained: "+want {
				t.Errorf("its connection ends with %v, want that it is told to %s", err, want)
			}
		}
		b := drained("b")
		refuses(b, "go to hub a at http://a:8080, or to hub c at http://c:8080")
		c := drained("c")
		w.until("b knows that c drains", func() bool { return len(b.part.Cluster().Open()) == 1 })
		refuses(c, "go to hub a at http://a:8080")
		refuses(drained("a"), "try again once it is back")
	})
}

func TestAHubThatDrainsWaitsForWhatItsClientsHaveAskedElsewhere(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			bob, ann := w.join("b", core.Card{ID: "bob"}), w.person("a")
			asked := ask(t, ann, core.ToAgent("bob"))
			held := assigned(t, bob)
			a := w.hubs["a"]
			if err := a.Drain(core.Principal{ID: "zoe", Operator: true}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			select {
			case <-a.Drained():
				t.Error("the hub is empty while a client waits for an answer")
			default:
			}
			if leaves {
				ann.Close(nil)
				until(t, bob, held.ID(), core.KindCancelled)
			} else if err := bob.Report(held.ID(), core.Done{Text: "answer"}, nil); err != nil {
				t.Fatal(err)
			} else {
				until(t, ann, asked.ID(), core.KindDone)
			}
			<-a.Drained()
		})
	}
}

func TestATaskThatWasSentBeforeTheOthersKnewOfADrainIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, ann := w.join("b", core.Card{ID: "bob"}), w.person("a")
		if err := w.hubs["b"].Drain(core.Principal{ID: "zoe", Operator: true}); err != nil {
			t.Fatal(err)
		}
		asked := ask(t, ann, core.ToAgent("bob")) // a has not been told
		if err := bob.Report(assigned(t, bob).ID(), core.Done{Text: "answer"}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, ann, asked.ID(), core.KindDone)
		<-w.hubs["b"].Drained()
	})
}

func TestAHubThatStopsWaitsForWhatItsClientsHaveAskedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, ann, eve := w.join("b", core.Card{ID: "bob", MaxConcurrent: 2}), w.person("a"), w.person("a")
		answered := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		ask(t, eve, core.ToAgent("bob"))
		late := assigned(t, bob)
		stopped := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			stopped <- w.hubs["a"].Close(ctx, "an upgrade")
		}()
		time.Sleep(5 * time.Second)
		if err := bob.Report(held.ID(), core.Done{Text: "answer"}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, ann, answered.ID(), core.KindDone)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		w.hubs["a"].stop()
		until(t, bob, late.ID(), core.KindCancelled)
	})
}

// readToItsEnd reads a session to its end, and reports whether it was told that the hub drains.
func readToItsEnd(t *testing.T, s *hub.Session) (told bool, err error) {
	t.Helper()
	for {
		b, err := s.Next(t.Context())
		if err != nil {
			return told, err
		}
		told = told || b.Draining != ""
	}
}
