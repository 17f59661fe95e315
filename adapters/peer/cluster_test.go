package peer_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/transports/bus"
)

// world is a cluster of whole hubs with a network, claims and a journal in memory.
type world struct {
	t       *testing.T
	net     *coretest.Network
	claims  *coretest.Claims
	keys    *coretest.Keys
	journal *coretest.SharedMemory
	before  atomic.Pointer[func(coretest.Write) error] // of the journal: see [coretest.SharedMemory]
	after   atomic.Pointer[func(coretest.Write) error] // likewise
	reading atomic.Pointer[func(journal.Life) error]   // likewise
	hubs    map[string]*member
	// redactor takes secrets out of what the journal gets; nil takes none.
	redactor *redact.Redactor
	options  func(hub string, o *hub.Options) // sets what the hubs need beside the cluster; may be nil
	// dialled returns what a hub uses of a connection to another one; nil uses it as it is.
	dialled func(from, to string, conn link.Conn[[]byte, []byte]) link.Conn[[]byte, []byte]
	log     *slog.Logger // of the hubs; nil for none
}

// member is a hub of a world.
type member struct {
	*hub.Hub
	part    *peer.Member
	others  *remote.Hubs
	deposed chan journal.Life
	stopped atomic.Bool // it is not asked any more
	stop    func()
}

func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	return newWorldWith(t, nil, names...)
}

// newWorldWith is newWorld for hubs with options.
func newWorldWith(t *testing.T, options func(hub string, o *hub.Options), names ...string) *world {
	t.Helper()
	net := coretest.NewNetwork(1)
	w := &world{t: t, net: net, claims: coretest.NewClaims(net), journal: coretest.NewSharedMemory(journal.Retention{Age: 1000 * time.Hour}), hubs: map[string]*member{}, options: options}
	w.keys = coretest.NewKeys(w.claims, 5*time.Minute)
	w.journal.Before = func(wr coretest.Write) error {
		if before := w.before.Load(); before != nil {
			return (*before)(wr)
		}
		return nil
	}
	w.journal.After = func(wr coretest.Write) error {
		if after := w.after.Load(); after != nil {
			return (*after)(wr)
		}
		return nil
	}
	w.journal.Reading = func(by journal.Life) error {
		if reading := w.reading.Load(); reading != nil {
			return (*reading)(by)
		}
		return nil
	}
	for i, name := range names {
		w.start(name, i)
	}
	for _, name := range names {
		w.until(name+" has a quorum", w.hubs[name].part.Cluster().HasQuorum)
	}
	return w
}

// start begins a life of a hub.
func (w *world) start(name string, index int) *member {
	w.t.Helper()
	life := w.journal.Open(name)
	b := w.net.Bus(name)
	m := &member{deposed: make(chan journal.Life, 1)}
	node, err := bus.Listen(b, bus.Life(life.Life()))
	if err != nil {
		w.t.Fatal(err)
	}
	m.part, err = peer.NewMember(peer.MemberOptions{
		Settings: cluster.Settings{Index: index, Address: "http://" + name + ":8080", Bus: b, Claims: w.claims.Of(name), Tasks: func() int { return m.Running() }, Log: w.log},
		Journal:  life, Keys: w.keys.Of(name),
		Dial: func(l journal.Life) link.Conn[[]byte, []byte] {
			var conn link.Conn[[]byte, []byte] = node.Connect(bus.Life(l))
			if w.dialled != nil {
				conn = w.dialled(name, l.Hub, conn)
			}
			return conn
		},
		Deposed: func(by journal.Life) { m.deposed <- by },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var opts hub.Options
	opts.Redact = func() *redact.Redactor { return w.redactor }
	if w.options != nil {
		w.options(name, &opts)
	}
	m.part.Configure(&opts)
	m.others = opts.Remote.(*remote.Hubs)
	m.Hub = hub.New(opts)
	if err := m.Recover(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.part.Run(ctx, m.Hub); err != nil {
			w.t.Errorf("hub %s: %v", name, err)
		}
	})
	m.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		node.Close()
		done, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = m.Close(done, "the test is over") // a hub that was deposed cannot store its tasks
	})
	w.t.Cleanup(m.stop)
	w.hubs[name] = m
	return m
}

// delayWrites makes each write of a hub to the journal take a while; with late only those that have such
// a record.
func (w *world) delayWrites(by string, takes time.Duration, late func(journal.Record) bool) {
	before := func(wr coretest.Write) error {
		if wr.By.Hub == by && (late == nil || slices.ContainsFunc(wr.Records, late)) {
			time.Sleep(takes)
		}
		return nil
	}
	w.before.Store(&before)
}

// until waits for something that takes a while.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatalf("after 10 s: want that %s", what)
}

// join makes a session of a hub an agent, and waits until all hubs know it.
func (w *world) join(at string, card core.Card) *hub.Session {
	w.t.Helper()
	s := w.hubs[at].Connect(hub.Identity{Principal: core.Principal{ID: string(card.ID), Dialect: "test"}, Dialect: "test"})
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		w.t.Fatal(err)
	}
	for name, m := range w.hubs {
		w.until(name+" knows "+string(card.ID), func() bool {
			_, ok := m.Agent(core.Principal{ID: "ann"}, card.ID)
			return ok
		})
	}
	return s
}

func (w *world) person(at string) *hub.Session {
	return w.hubs[at].Connect(hub.Identity{Principal: core.Principal{ID: "ann"}, Dialect: "test"})
}

func TestThreeHubsAnswerAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		ann := w.person("a")
		asked := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		for i := range 50 {
			if err := bob.Report(held.ID(), core.Text{Text: fmt.Sprint(i)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := bob.Report(held.ID(), core.Done{Text: "all"}, nil); err != nil {
			t.Fatal(err)
		}
		if got := until(t, ann, asked.ID(), core.KindDone); strings.Count(got, "text") != 50 {
			t.Errorf("got %s, want 50 chunks and the end", got)
		}
		read, err := w.hubs["c"].Task(t.Context(), core.Principal{ID: "ann"}, asked.ID())
		if err != nil {
			t.Fatal(err)
		}
		there := w.person("c")
		if err := there.Watch(read, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		if got := until(t, there, asked.ID(), core.KindDone); strings.Count(got, "text") != 50 {
			t.Errorf("from a third hub: got %s", got)
		}
	})
}

func TestATaskWhoseIdNamesNoHubIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		_, err := w.hubs["a"].Task(t.Context(), core.Principal{ID: "ann"}, "01980c3e-0000-7000-bfff-ffffffffffff")
		if f := core.AsFault(err); f == nil || f.Code != core.CodeUnknownTask {
			t.Errorf("got %v, want an unknown task", err)
		}
	})
}

func TestTheTasksOfAHubThatDiesEndOnceForEveryReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		ann := w.person("a")
		asked := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		for _, said := range []core.Body{core.ToolCall{ID: "1", Name: "look"}, core.Text{Text: "because"}} {
			if err := bob.Report(held.ID(), said, nil); err != nil {
				t.Fatal(err)
			}
		}
		until(t, ann, asked.ID(), core.KindText)
		reader := w.person("c")
		read, err := w.hubs["c"].Task(t.Context(), core.Principal{ID: "ann"}, asked.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Watch(read, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		w.net.Kill("b")
		until(t, ann, asked.ID(), core.KindFailed)
		until(t, reader, asked.ID(), core.KindFailed)
		if took := time.Since(killed); took > 2*time.Second {
			t.Errorf("the end took %s, want at most 2s", took)
		}
		one, _ := asked.Last().MarshalJSON()
		other, _ := read.Last().MarshalJSON()
		if string(one) != string(other) {
			t.Errorf("got %s at one hub and %s at another, want one end", one, other)
		}
		if f := asked.Last().Body.(core.Failed).Fault; f.Code != core.CodeUnreachable || !f.Retryable {
			t.Errorf("got %v, want unreachable, retryable", f)
		}
		for at, one := range map[string]*task.Task{"a": asked, "c": read} {
			all := one.Events()
			if s, is := all[len(all)-2].Body.(core.ToolState); !is || s.ID != "1" || s.State != core.ToolFailed {
				t.Errorf("%s: got %+v before the end, want the open tool call failed", at, all[len(all)-2].Body)
			}
		}
		if _, ok := w.hubs["a"].Agent(core.Principal{ID: "ann"}, "bob"); ok {
			t.Error("the agent of the hub that died is still listed")
		}
		late, err := w.hubs["c"].Task(t.Context(), core.Principal{ID: "ann"}, asked.ID())
		if err != nil || late.State() != task.Ended {
			t.Errorf("reading it later: got %v, want its end", err)
		}
	})
}

func TestAHubThatWasCutOffCannotEndATaskAnotherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		ann := w.person("a")
		asked := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		there := w.person("b") // it is cut off with its hub
		if err := there.Watch(held, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		w.net.Isolate("b")
		until(t, ann, asked.ID(), core.KindFailed)
		if err := bob.Report(held.ID(), core.Done{Text: "done"}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if held.State() == task.Ended {
			t.Errorf("the hub that was cut off shows the end %s", held.Last().Body.Kind())
		}
		w.net.Heal()
		select {
		case by := <-w.hubs["b"].deposed:
			if by.Hub == "b" {
				t.Errorf("got %s, want another hub to have taken it over", by)
			}
		case <-time.After(10 * time.Second):
			t.Error("the hub was not told that it was taken over")
		}
	})
}

func TestAHubThatWasCutOffRefusesNoCursorForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		ann, eve := w.person("a"), w.person("b")
		asked := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		time.Sleep(time.Second) // the journal has it
		w.net.Isolate("b")
		until(t, ann, asked.ID(), core.KindFailed)
		read := asked.Last().Cursor()
		check := func(when string) {
			t.Helper()
			if f := core.AsFault(eve.Watch(held, read, nil)); f == nil || f.Code != core.CodeUnreachable || !f.Retryable {
				t.Errorf("%s: got %v, want that the cursor %s can be sent again", when, f, read)
			}
		}
		check("it believes that it has the task")
		if err := bob.Report(held.ID(), core.Done{Text: "because"}, nil); err != nil {
			t.Fatal(err)
		}
		check("it has an end that it cannot store")
	})
}

func TestAConnectionThatIsRefusedLeavesTheIdOfTheAgentClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		for _, at := range []string{"b", "a"} {
			s := w.hubs[at].Connect(hub.Identity{Principal: core.Principal{ID: "eve"}, Dialect: "test"})
			if err := s.Join(core.Card{ID: "bob"}, hub.JoinOptions{}); core.AsFault(err).Code != core.CodeConflict {
				t.Errorf("another one at hub %s: got %v, want a conflict", at, err)
			}
			time.Sleep(time.Second) // a claim is given back in the background
		}
		if got := len(w.claims.Holders()); got != 1 {
			t.Errorf("got %d claims, want that of the agent", got)
		}
	})
}

func TestAHubIsToldByTheJournalThatItWasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		heir := w.journal.Open("d") // which tells nobody
		if _, err := heir.TakeOver(t.Context(), journal.Life{Hub: "b", Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		ask(t, w.person("a"), core.ToAgent("bob"))
		select {
		case <-w.hubs["b"].deposed:
		case <-time.After(10 * time.Second):
			t.Error("the hub was not told that it was taken over")
		}
	})
}

func TestWhatIsOpenedAtAHubThatIsStoppingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.hubs["b"].Close(ctx, "an upgrade"); err != nil {
			t.Fatal(err)
		}
		w.hubs["a"].others.HubUp("b", 1) // as for a hub that has not heard of it
		ann := w.person("a")
		asked := ask(t, ann, core.ToAgent("bob")) // who has not left yet
		w.hubs["b"].stop()
		if got := until(t, ann, asked.ID(), core.KindFailed); got != "1 opened, 2 failed" {
			t.Errorf("got %s, want the task to fail", got)
		}
	})
}
