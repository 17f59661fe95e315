package peer_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// slow is a journal with slow writes.
type slow struct{ *journal.Memory }

const slowWrite = time.Second

func (s slow) Append(ctx context.Context, records ...journal.Record) error {
	time.Sleep(slowWrite)
	return s.Memory.Append(ctx, records...)
}

// lossy is the end of a connection that is about to be lost: from a moment on nothing comes any more.
type lossy struct {
	*coretest.End[[]byte, []byte]
	loses atomic.Bool
}

func (l *lossy) Receive(ctx context.Context) ([]byte, error) {
	for {
		if m, err := l.End.Receive(ctx); err != nil || !l.loses.Load() {
			return m, err
		}
	}
}

// losing are two hubs between which what b says can be lost: bob is at b, and works on a task that ann has
// opened at a.
type losing struct {
	*relinked
	here      *lossy
	bob, ann  *hub.Session
	held, has *task.Task // at b, and at a
}

func newLosing(t *testing.T) *losing {
	l := &losing{relinked: newRelinkedWith(t, hub.Options{Journal: slow{journal.NewMemory(journal.Retention{})}, Limits: hub.Limits{JournalLag: -1}})}
	one, other := coretest.Pipe[[]byte, []byte](1000)
	l.here = &lossy{End: one}
	l.linkOver(l.here, other)
	meet(t, l.a, "b")
	l.bob, l.ann = l.b.join(t, map[string]*node{"a": l.a, "b": l.b}, core.Card{ID: "bob"}), l.a.person("ann")
	l.has = ask(t, l.ann, core.ToAgent("bob"))
	l.held = assigned(t, l.bob)
	until(t, l.ann, l.has.ID(), core.KindAssigned)
	return l
}

// say lets bob say something of the task. a gets it, or it is lost.
func (l *losing) say(all ...core.Body) {
	l.Helper()
	for _, body := range all {
		if err := l.bob.Report(l.held.ID(), body, nil); err != nil {
			l.Fatal(err)
		}
	}
	synctest.Wait()
}

func (l *losing) wantAll() {
	l.Helper()
	if got, want := until(l, l.ann, l.has.ID(), core.KindDone), "3 text because, 4 done"; got != want {
		l.Errorf("got %s, want %s", got, want)
	}
}

// The connection between a requester's hub and the owner is lost together with what the owner has said over
// it last. By then the task has ended at the owner, which tells nobody before the end is stored.
func TestWhatWasLostBeforeAnEndComesBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLosing(t)
		l.here.loses.Store(true)
		l.say(core.Text{Text: "because"}, core.Done{})
		l.end()
		time.Sleep(10 * slowWrite) // the end is stored, and waits for a connection
		l.link()
		l.wantAll()
	})
}

// Whatever a hub forgets to say again, the other one asks for what it lacks.
func TestACopyAsksForWhatItLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLosing(t)
		l.here.loses.Store(true)
		l.say(core.Text{Text: "because"})
		time.Sleep(10 * slowWrite) // it is stored, and lost on its way
		l.here.loses.Store(false)
		l.say(core.Done{})
		l.wantAll()
		if got := l.a.Counters()["mirror.lacks"]; got != 1 {
			t.Errorf("got %d questions for what was lost, want one", got)
		}
	})
}

// Behind a hole an event has come, and with the connection the rest is lost. The owner starts again, and its
// journal has less than what has come.
func TestACopyEndsThoughItsOwnerHasLessOverTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLosing(t)
		id, text := l.has.ID(), core.Text{Text: "because"}
		l.a.hubs.Extend(id, []core.Event{{Epoch: 1, Seq: 5, Body: text}})
		l.end()
		l.link()
		synctest.Wait()
		left := []core.Event{{Epoch: 2, Seq: 7, Body: text}, {Epoch: 2, Seq: 8, Body: core.Done{}}}
		l.a.hubs.Extend(id, left)
		l.a.hubs.Extend(id, left) // it was asked again
		if !l.has.HasEnded() {
			t.Errorf("got the task %s, want it ended", l.has.State())
		}
	})
}

// Who begins to read all tasks reads those whose end is still to be told, also the ones of another hub.
func TestAnEndThatIsStillToBeToldIsToldToThoseWhoComeNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLosing(t)
		c := l.third()
		time.Sleep(10 * slowWrite) // the beginning of the task is stored
		l.say(core.Done{})
		op := hub.Identity{Principal: core.Principal{ID: "op", Operator: true}, Dialect: "test"}
		watcher := c.Connect(op)
		if err := watcher.WatchAll(); err != nil {
			t.Fatal(err)
		}
		feed, err := c.Connect(op).Feed("")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for ended := false; !ended; {
			b, err := feed.Next(ctx)
			if err != nil {
				t.Fatalf("the stream of all tasks: %v, want the end of %s", err, l.held.ID())
			}
			for _, e := range b.Events {
				ended = ended || e.Body.Kind().Ends()
			}
		}
		until(t, watcher, l.held.ID(), core.KindDone)
	})
}

// third connects a third hub to b, at which nobody reads all tasks yet.
func (l *losing) third() *node {
	c := &node{name: "c", peers: &peer.Peers{}}
	c.hubs = remote.New(remote.Options{Links: c.peers, Name: "c", Index: 2})
	c.Hub = hub.New(hub.Options{Remote: c.hubs, Node: c.hubs.RPC()})
	there, back := c.add(peer.Options{Name: "b"}), l.b.add(peer.Options{Name: "c"})
	c.hubs.HubUp("b", 1)
	l.b.hubs.HubUp("c", 2)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	one, other := coretest.Pipe[[]byte, []byte](1000)
	serving.Go(func() { there.Run(ctx, one); there.Close() })
	serving.Go(func() { back.Run(ctx, other); back.Close() })
	l.Cleanup(func() {
		cancel()
		serving.Wait()
		if err := c.Close(context.Background(), "the test is over"); err != nil {
			l.Error(err)
		}
	})
	meet(l, c, "b")
	return c
}
