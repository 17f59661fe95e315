package peer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAnAgentOfAnotherHubAnswers(t *testing.T) {
	all := connected(t, "a", "b")
	bob := all["b"].join(t, all, core.Card{ID: "bob"})
	ann := all["a"].person("ann")
	asked := ask(t, ann, core.ToAgent("bob"))
	if task.OwnerOf(asked.ID()) != 1 || !asked.IsRemote() {
		t.Errorf("got the task %s of hub %d, want one of the agent's hub", asked.ID(), task.OwnerOf(asked.ID()))
	}
	held := assigned(t, bob)
	for _, body := range []core.Body{core.Text{Text: "because"}, core.Text{Text: " of it"}, core.Done{Text: "because of it"}} {
		if err := bob.Report(held.ID(), body, nil); err != nil {
			t.Fatal(err)
		}
	}
	const want = "1 opened, 2 assigned, 3 text because, 4 text  of it, 5 done"
	if got := until(t, ann, asked.ID(), core.KindDone); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if held.ID() != asked.ID() || held.From().ID != "ann" || held.IsRemote() {
		t.Errorf("the agent got task %s from %s, want %s from ann", held.ID(), held.From().ID, asked.ID())
	}
	mine, theirs := asked.Events(), held.Events()
	for i := range theirs {
		one, _ := mine[i].MarshalJSON()
		other, _ := theirs[i].MarshalJSON()
		if string(one) != string(other) {
			t.Errorf("event %d: got %s at the requester's hub and %s at the owner", i+1, one, other)
		}
	}
}

func TestCommandsReachTheOwner(t *testing.T) {
	all := connected(t, "a", "b")
	bob := all["b"].join(t, all, core.Card{ID: "bob", Features: core.FeatureCancellation | core.FeatureInjection | core.FeatureApprovals})
	ann := all["a"].person("ann")
	asked := ask(t, ann, core.ToAgent("bob"))
	held := assigned(t, bob)
	if err := bob.Report(held.ID(), core.ApprovalRequested{ID: "1", Name: "rm", Input: "-r"}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, ann, asked.ID(), core.KindApprovalRequested)
	if got, _ := all["a"].Approvals(t.Context(), core.Principal{ID: "ann"}); len(got) != 1 || got[0].Name != "rm" {
		t.Errorf("got the approvals %+v at the requester's hub, want one", got)
	}
	if err := ann.Inject(t.Context(), asked.ID(), core.Injected{Content: "hurry"}); err != nil {
		t.Fatal(err)
	}
	if err := ann.Decide(t.Context(), asked.ID(), core.ApprovalDecided{ID: "1", Approved: true}); err != nil {
		t.Fatal(err)
	}
	until(t, bob, held.ID(), core.KindApprovalDecided)
	if err := ann.Decide(t.Context(), asked.ID(), core.ApprovalDecided{ID: "none"}); core.AsFault(err).Code != core.CodeInvalid {
		t.Errorf("an approval that nobody asked for: got %v, want it refused at once", err)
	}
	if err := ann.Cancel(asked.ID(), "enough"); err != nil {
		t.Fatal(err)
	}
	until(t, bob, held.ID(), core.KindCancelRequested)
	if err := bob.Report(held.ID(), core.Cancelled{}, nil); err != nil {
		t.Fatal(err)
	}
	const want = "approval_decided"
	if got := until(t, ann, asked.ID(), core.KindCancelled); got == "" {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestARefusalOfTheOwnerEndsTheTask(t *testing.T) {
	all := connected(t, "a", "b")
	bob := all["b"].join(t, all, core.Card{ID: "bob"})
	bob.Close(nil)
	ann := all["a"].person("ann") // whose hub has not heard of it yet
	asked := ask(t, ann, core.ToAgent("bob"))
	if got := until(t, ann, asked.ID(), core.KindFailed); got != "1 opened, 2 failed" {
		t.Errorf("got %s, want the task to fail", got)
	}
	if f := asked.Last().Body.(core.Failed).Fault; f.Code != core.CodeUnknownAgent {
		t.Errorf("got %v, want unknown_agent", f)
	}
}

func TestATaskIsReadFromAThirdHub(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob := all["b"].join(t, all, core.Card{ID: "bob"})
	ann := all["a"].person("ann")
	asked := ask(t, ann, core.ToAgent("bob"))
	held := assigned(t, bob)
	if err := bob.Report(held.ID(), core.Text{Text: "because"}, nil); err != nil {
		t.Fatal(err)
	}
	read, err := all["c"].Task(t.Context(), core.Principal{ID: "ann"}, asked.ID())
	if err != nil {
		t.Fatal(err)
	}
	reader := all["c"].person("ann")
	if err := reader.Watch(read, core.Cursor{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := bob.Report(held.ID(), core.Done{}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := until(t, reader, asked.ID(), core.KindDone), "1 opened, 2 assigned, 3 text because, 4 done"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := all["c"].Task(t.Context(), core.Principal{ID: "ann"}, "019c0000-0000-7000-8010-000000000000"); core.AsFault(err).Code != core.CodeUnknownTask {
		t.Errorf("a task that never was: got %v, want unknown_task", err)
	}
	if _, err := all["c"].Task(t.Context(), core.Principal{ID: "eve"}, asked.ID()); core.AsFault(err).Code != core.CodeUnknownTask {
		t.Errorf("a task of somebody else: got %v, want unknown_task", err)
	}
}

func TestOfEqualAgentsThatOfTheOwnHubIsAskedFirst(t *testing.T) {
	all := connected(t, "a", "b")
	near := all["a"].join(t, all, core.Card{ID: "near", Capabilities: []string{"think"}})
	far := all["b"].join(t, all, core.Card{ID: "far", Capabilities: []string{"think"}})
	ann := all["a"].person("ann")
	to := core.ToCapability("think")
	one, two := ask(t, ann, to), ask(t, ann, to)
	if one.IsRemote() || !two.IsRemote() {
		t.Errorf("got the first task at another hub: %v, the second: %v, want the second alone", one.IsRemote(), two.IsRemote())
	}
	assigned(t, near)
	assigned(t, far)
}

// relinked are two hubs between which a test ends one connection and begins the next.
type relinked struct {
	*testing.T
	a, b        *node
	life        uint64     // that of both
	there, back *peer.Peer // b as a knows it, and a as b does
	end         func()     // ends the connection
}

func newRelinked(t *testing.T) *relinked {
	return newRelinkedWith(t, hub.Options{})
}

// newRelinkedWith is newRelinked with options of b.
func newRelinkedWith(t *testing.T, ofB hub.Options) *relinked {
	r := &relinked{T: t, end: func() {}}
	for i, n := range []**node{&r.a, &r.b} {
		name := string(rune('a' + i))
		var opts hub.Options
		if name == "b" {
			opts = ofB
		}
		*n = newNode(t, name, i, opts, nil)
	}
	r.a.hubs.HubUp("b", 1)
	r.b.hubs.HubUp("a", 0)
	r.meet()
	t.Cleanup(func() {
		r.end()
		r.there.Close()
		r.back.Close()
	})
	return r
}

// meet begins a life of each hub, as the other one sees it.
func (r *relinked) meet() {
	r.life++
	r.there = r.a.add(peer.Options{Name: "b", Epoch: r.life})
	r.back = r.b.add(peer.Options{Name: "a", Epoch: r.life})
}

// link connects a to b, and b to a.
func (r *relinked) link() {
	one, other := coretest.Pipe[[]byte, []byte](1000)
	r.linkOver(one, other)
}

// linkOver is link over a connection with these ends, for a and for b.
func (r *relinked) linkOver(one, other link.Conn[[]byte, []byte]) {
	r.end()
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	r.end = func() {
		cancel()
		serving.Wait()
	}
	serving.Go(func() { r.there.Run(ctx, one) })
	serving.Go(func() { r.back.Run(ctx, other) })
}

func TestACopyGoesOnOverTheNextConnection(t *testing.T) {
	r := newRelinked(t)
	r.link()
	bob := r.b.join(t, map[string]*node{"a": r.a, "b": r.b}, core.Card{ID: "bob"})
	ann := r.a.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}, Dialect: "test"})
	asked, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "why?"}, hub.OpenOptions{Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	held := assigned(t, bob)
	until(t, ann, asked.ID(), core.KindAssigned)
	r.end()
	for _, body := range []core.Body{core.Text{Text: "because"}, core.Done{}} {
		if err := bob.Report(held.ID(), body, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.link()
	if got, want := until(t, ann, asked.ID(), core.KindDone), "3 text because, 4 done"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCommandsThatWereLostWithAConnectionArriveOnceOverTheNext(t *testing.T) {
	r := newRelinked(t)
	bob := r.b.join(t, map[string]*node{"a": r.a, "b": r.b}, core.Card{ID: "bob", Features: core.FeatureInjection | core.FeatureCancellation})
	ann := r.a.person("ann")
	first := ask(t, ann, core.ToAgent("bob")) // before there is a connection
	r.link()
	held := assigned(t, bob)
	if held.ID() != first.ID() {
		t.Fatalf("got task %s, want %s", held.ID(), first.ID())
	}
	until(t, ann, first.ID(), core.KindAssigned)
	const times = 40 // more than are told at once
	for i := range times {
		if i%7 == 0 {
			r.link()
		}
		if err := ann.Inject(t.Context(), first.ID(), core.Injected{Content: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ann.Cancel(first.ID(), "enough"); err != nil {
		t.Fatal(err)
	}
	until(t, ann, first.ID(), core.KindCancelRequested)
	if got := len(held.Events()); got != 2+times+1 {
		t.Fatalf("got %d events, want each context once", got)
	}
	for i, e := range held.Events()[2 : 2+times] {
		if got := e.Body.(core.Injected).Content; got != fmt.Sprint(i) {
			t.Errorf("context %d: got %q", i, got)
		}
	}
}

func TestATaskThatALifeOfItsOwnerNeverGotFails(t *testing.T) {
	r := newRelinked(t)
	r.b.join(t, map[string]*node{"a": r.a, "b": r.b}, core.Card{ID: "bob"})
	ann := r.a.person("ann")
	asked := ask(t, ann, core.ToAgent("bob"))
	r.there.Close()
	r.back.Close()
	r.meet() // the next lives, which have not heard of it
	r.link()
	if got, want := until(t, ann, asked.ID(), core.KindFailed), "1 opened, 2 failed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if f := asked.Last().Body.(core.Failed).Fault; f.Code != core.CodeUnreachable || !f.Retryable {
		t.Errorf("got %v, want unreachable, retryable", f)
	}
}

// stalling is a journal that cannot be read for a while.
type stalling struct {
	*journal.Memory
	fails atomic.Int32 // so many times
}

func (s *stalling) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	if s.fails.Add(-1) >= 0 {
		return nil, errors.New("the journal has no leader")
	}
	return s.Memory.Read(ctx, id, after, limit)
}

func TestATaskWhoseJournalCannotBeReadForAWhileEndsAsTheJournalSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &stalling{Memory: journal.NewMemory(journal.Retention{Age: time.Hour})}
		r := newRelinkedWith(t, hub.Options{Journal: j, Limits: hub.Limits{FinishedTasks: 1}})
		r.link()
		bob := r.b.join(t, map[string]*node{"a": r.a, "b": r.b}, core.Card{ID: "bob"})
		ann, ben := r.a.person("ann"), r.b.person("ben")
		asked := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		until(t, ann, asked.ID(), core.KindAssigned)
		r.end()
		if err := bob.Report(held.ID(), core.Done{Text: "because"}, nil); err != nil {
			t.Fatal(err)
		}
		for range 3 { // which are kept in memory instead
			ask(t, ben, core.ToAgent("bob"))
			answers(t, bob, "done")
			time.Sleep(time.Second) // the journal has it
		}
		r.there.Close()
		r.back.Close()
		r.meet() // the next lives: the session that had the task is gone
		j.fails.Store(3)
		r.link()
		if got, want := until(t, ann, asked.ID(), core.KindDone), "3 done"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if left := j.fails.Load(); left >= 0 {
			t.Errorf("the journal was to fail %d times more, want it asked until it answers", left+1)
		}
	})
}

func TestNobodyWaitsForATaskOfAHubThatIsGone(t *testing.T) {
	r := newRelinked(t)
	const id = "019c0000-0000-7000-8010-000000000000" // of b
	got := make(chan error, 1)
	read := func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := r.a.Task(ctx, core.Principal{ID: "ann"}, id)
		got <- err
	}
	go read()
	for r.b.hubs.HubGone("a"); len(got) == 0; runtime.Gosched() { // it may not wait yet
		r.a.hubs.HubGone("b")
	}
	if err := <-got; core.AsFault(err).Code != core.CodeUnreachable {
		t.Errorf("got %v, want unreachable", err)
	}
	began := time.Now()
	read() // its connection may end later
	if err := <-got; core.AsFault(err).Code != core.CodeUnreachable || time.Since(began) >= patience {
		t.Errorf("once the hub is gone: got %v after %s, want unreachable at once", err, time.Since(began))
	}
	r.a.hubs.HubUp("b", 1)
	r.link()
	read()
	if err := <-got; core.AsFault(err).Code != core.CodeUnknownTask {
		t.Errorf("once the hub is back: got %v, want its answer", err)
	}
}
