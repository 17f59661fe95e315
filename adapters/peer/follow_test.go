package peer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
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

// waitingJournal lets readers wait.
type waitingJournal struct {
	*journal.Memory
	released <-chan struct{}
}

func (j *waitingJournal) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	select {
	case <-j.released:
		return j.Memory.Read(ctx, id, after, limit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestAHubMayAskForAsManyTasksAsItHas(t *testing.T) {
	const many = 6000
	read := make(chan struct{})
	a := newNode(t, "a", 0, hub.Options{Journal: &waitingJournal{journal.NewMemory(journal.Retention{}), read}}, nil)
	a.hubs.HubUp("b", 1)
	one, other := coretest.Pipe[[]byte, []byte](1000)
	b := a.add(peer.Options{Name: "b"})
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.Log(b.Run(ctx, one))
	}()
	defer func() { cancel(); <-ended }()

	frames := []string{`h{"version":1}`}
	for i := range many {
		frames = append(frames, fmt.Sprintf("f01234567-0123-7123-8123-%012x", i))
	}
	frames = append(frames, frames[1:]...) // some ids come twice, as after another loss
	for _, f := range append(frames, "q\x01"+`{"by":{"id":"ann"},"what":"none"}`) {
		if err := other.Send(t.Context(), []byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	unknown := 0
	for begun := false; unknown < many; {
		frame, err := other.Receive(t.Context())
		if err != nil {
			t.Fatalf("after %d answers: %v, want %d", unknown, err, many)
		}
		switch {
		case frame[0] == 'u':
			unknown++
		case frame[0] == 'a' && !begun: // all were asked for
			begun = true
			close(read)
		}
	}
}

// A hub may ask again for what comes already: it was told of the task and dropped it, or two of its
// readers came at one moment.
func TestAHubThatAsksAgainForATaskGetsItAgain(t *testing.T) {
	a := newNode(t, "a", 0, hub.Options{}, nil)
	a.hubs.HubUp("b", 1)
	one, other := coretest.Pipe[[]byte, []byte](1000)
	b := a.add(peer.Options{Name: "b"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Run(ctx, one)
		b.Close()
	}()
	defer func() { cancel(); <-ended }()
	bob := a.Connect(hub.Identity{Principal: core.Principal{ID: "bob"}, Dialect: "test"})
	if err := bob.Join(core.Card{ID: "bob"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	asked := ask(t, a.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}, Dialect: "test"}), core.ToAgent("bob"))
	assigned(t, bob)
	frames := []string{`h{"version":1}`, "f" + string(asked.ID()), "f" + string(asked.ID())}
	for i, f := range frames {
		if err := other.Send(t.Context(), []byte(f)); err != nil {
			t.Fatal(err)
		}
		for i > 0 {
			limited, cancel := context.WithTimeout(t.Context(), patience)
			frame, err := other.Receive(limited)
			cancel()
			if err != nil {
				t.Fatalf("asked %d times: %v, want the events of the task", i, err)
			}
			if frame[0] == 'e' {
				break
			}
		}
	}
}

// Any id may name a hub that has opened the task. That one's error says that it is to be asked again only if it may
// answer then.
func TestATaskThatItsMakerCannotBeAskedForIsUnknown(t *testing.T) {
	for said, want := range map[core.Code]core.Code{
		core.CodeUnreachable: core.CodeUnreachable, core.CodeTimeout: core.CodeUnreachable, core.CodeOverloaded: core.CodeUnreachable,
		core.CodeUnsupported: core.CodeUnknownTask, core.CodeInternal: core.CodeUnknownTask,
	} {
		t.Run(string(said), func(t *testing.T) {
			a := newSharing(t, "a", coretest.NewSharedMemory(journal.Retention{}).Open("a"))
			a.hubs.HubUp("b", 1)
			one, other := coretest.Pipe[[]byte, []byte](1000)
			b := a.add(peer.Options{Name: "b"})
			defer b.Close()
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer func() { cancel(); running.Wait() }()
			running.Go(func() { b.Run(ctx, one) })
			running.Go(func() { answerAll(ctx, t, other, said) })
			const id = core.TaskID("0197f6a0-0000-7000-8000-040000000000") // of this hub, and opened at b
			if l, _ := task.LineOf(id); l.Owner() != 0 || l.Maker() != 1 {
				t.Fatalf("got an id of hub %d, opened at %d", l.Owner(), l.Maker())
			}
			if _, err := a.Task(t.Context(), operator, id); core.AsFault(err).Code != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// answerAll answers every inquiry with a fault until ctx ends.
func answerAll(ctx context.Context, t *testing.T, conn link.Conn[[]byte, []byte], with core.Code) {
	fault, err := json.Marshal(map[string]any{"fault": core.NewFault(with, "no")})
	if err != nil {
		t.Error(err)
	}
	err = conn.Send(ctx, []byte(`h{"version":1}`))
	for err == nil {
		var frame []byte
		if frame, err = conn.Receive(ctx); err == nil && frame[0] == 'q' {
			_, size := binary.Uvarint(frame[1:])
			err = conn.Send(ctx, append(append([]byte{'a'}, frame[1:1+size]...), fault...))
		}
	}
}

// counter counts the events that a hub gets of another one, and loses them while it is told to.
type counter struct {
	link.Conn[[]byte, []byte]
	events *atomic.Int64
	loses  *atomic.Bool
}

func (c counter) Send(ctx context.Context, frame []byte) error {
	if frame[0] == 'e' {
		for line := range bytes.Lines(frame) {
			var e core.Event
			if e.UnmarshalJSON(bytes.TrimSpace(line)) == nil {
				c.events.Add(int64(e.End() - e.Seq + 1))
			}
		}
		if c.loses.Load() {
			return nil
		}
	}
	return c.Conn.Send(ctx, frame)
}

func TestOnlyWhatDidNotComeCrossesAgainOverTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all cutter
		var crossed atomic.Int64
		var loses atomic.Bool
		w := newWorld(t)
		w.dialled = func(from, to string, conn link.Conn[[]byte, []byte]) link.Conn[[]byte, []byte] {
			conn = all.dialled(from, to, conn)
			if from == "b" && to == "a" {
				return counter{conn, &crossed, &loses}
			}
			return conn
		}
		for i, name := range []string{"a", "b", "c"} {
			w.start(name, i)
		}
		w.until("a has a quorum", w.hubs["a"].part.Cluster().HasQuorum)
		bob, ann := w.join("b", core.Card{ID: "bob"}), w.person("a")
		asked := ask(t, ann, core.ToAgent("bob"))
		held := assigned(t, bob)
		say := func(n int) {
			t.Helper()
			for i := range n {
				if err := bob.Report(held.ID(), core.Text{Text: fmt.Sprint(i, " ")}, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		say(100)
		time.Sleep(time.Second)
		all.cut()
		synctest.Wait()
		say(20) // before there is another connection
		time.Sleep(time.Second)
		loses.Store(true)
		say(5)
		time.Sleep(time.Second) // they are stored, and lost on their way
		all.cut()
		synctest.Wait()
		loses.Store(false)
		say(20)
		time.Sleep(time.Second)
		if err := bob.Report(held.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, ann, asked.ID(), core.KindDone)
		want := held.Cursor().Seq - 1 // the first event is that of the requester's hub
		if got := uint64(crossed.Load()) - 5; got != want {
			t.Errorf("got %d events over three connections besides 5 that were lost, want each of %d once", got, want)
		}
		next := uint64(1)
		for _, e := range asked.Events() {
			if e.Seq != next {
				t.Errorf("the remote task lacks the events %d to %d", next, e.Seq-1)
			}
			next = e.End() + 1
		}
	})
}
