package peer_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
)

// readOrder returns the tasks of a thread in the order in which a reader at a hub is shown them, up to
// a number of ends, or what came within three seconds.
func (w *world) readOrder(at string, thread core.ThreadID, ends int, reading func()) (got []core.TaskID) {
	w.t.Helper()
	r, err := w.hubs[at].ReadThread(w.t.Context(), hub.Identity{Principal: operator, Dialect: "test"}, thread, core.Place{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	reading()
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
	defer cancel()
	for n := 0; n < ends; {
		b, err := r.Next(ctx)
		if err != nil {
			break
		}
		if b.Gap {
			w.t.Errorf("a reader at %s: got a gap, want none", at)
		}
		for _, e := range b.Events {
			if e.Body.Kind() == core.KindOpened {
				got = append(got, b.Task.ID())
			}
			if e.Body.Kind().Ends() {
				n++
			}
		}
	}
	return got
}

// late is a connection on which everything takes 50 ms longer.
type late struct{ link.Conn[[]byte, []byte] }

func (l late) Send(ctx context.Context, frame []byte) error {
	time.Sleep(50 * time.Millisecond)
	return l.Conn.Send(ctx, frame)
}

func TestATaskOnItsWayToItsOwnerIsReadBeforeALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.dialled = func(from, to string, conn link.Conn[[]byte, []byte]) link.Conn[[]byte, []byte] {
			if from == "a" && to == "d" {
				return late{conn}
			}
			return conn
		}
		for i, name := range []string{"a", "c", "d"} {
			w.start(name, i)
		}
		w.until("c has a quorum", w.hubs["c"].part.Cluster().HasQuorum)
		cyd, dan := w.join("c", core.Card{ID: "cyd"}), w.join("d", core.Card{ID: "dan"})
		time.Sleep(time.Second)
		var ids []core.TaskID
		var working sync.WaitGroup
		got := w.readOrder("c", "talk", 2, func() {
			for _, next := range []struct {
				at    string
				agent *hub.Session
				to    core.AgentID
			}{{"a", dan, "dan"}, {"c", cyd, "cyd"}} {
				one, err := w.person(next.at).Open(core.Request{To: core.ToAgent(next.to), Thread: "talk", Content: "why?"}, hub.OpenOptions{Keep: true})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, one.ID())
				working.Go(func() { answers(t, next.agent, "because") })
				time.Sleep(time.Millisecond)
			}
		})
		working.Wait()
		if !slices.Equal(got, ids) {
			t.Errorf("got %q, want %q", got, ids)
		}
	})
}

func TestTasksThatAreOpenedAtTwoHubsAtOnceAreReadInOneOrder(t *testing.T) {
	for name, tt := range map[string]struct{ first, second core.AgentID }{
		"each asks the agent of its hub":     {"cyd", "bob"},
		"each asks the agent of a third":     {"dan", "dan"},
		"each asks the agent of the other":   {"bob", "cyd"},
		"one of them asks that of a third":   {"cyd", "dan"},
		"the other one asks that of a third": {"dan", "bob"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c", "d")
				agents := map[core.AgentID]*hub.Session{
					"bob": w.join("a", core.Card{ID: "bob", MaxConcurrent: 9}), "cyd": w.join("c", core.Card{ID: "cyd", MaxConcurrent: 9}), "dan": w.join("d", core.Card{ID: "dan", MaxConcurrent: 9}),
				}
				for _, s := range agents {
					defer s.Consume(t.Context(), func(b hub.Batch, err error) bool {
						if err == nil && b.Role == task.Agent && !b.Task.HasEnded() {
							_ = s.Report(b.Task.ID(), core.Done{Text: "because"}, nil)
						}
						return err == nil
					})()
				}
				for _, at := range []string{"a", "b", "c", "d"} {
					thread := core.ThreadID("talk at " + at)
					open := func(at string, to core.AgentID) core.TaskID {
						one, err := w.person(at).Open(core.Request{To: core.ToAgent(to), Thread: thread, Content: "why?"}, hub.OpenOptions{Keep: true})
						if err != nil {
							t.Fatal(err)
						}
						return one.ID()
					}
					var ids []core.TaskID
					got := w.readOrder(at, thread, 2, func() {
						ids = []core.TaskID{open("c", tt.first), open("a", tt.second)}
					})
					slices.Sort(ids)
					if !slices.Equal(got, ids) {
						t.Errorf("a reader at %s: got %q, want %q", at, got, ids)
					}
					for _, other := range []string{"a", "b", "c", "d"} {
						if got := w.readOrder(other, thread, 2, func() {}); !slices.Equal(got, ids) {
							t.Errorf("a later reader at %s: got %q, want %q", other, got, ids)
						}
					}
				}
			})
		})
	}
}
