package peer_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a hub of a cluster in a test.
type node struct {
	*hub.Hub
	name  string
	peers *peer.Peers
}

// connected starts hubs of these names, each connected to all others.
func connected(t testing.TB, names ...string) map[string]*node {
	t.Helper()
	all, _ := connectedWith(t, func(string, *hub.Options) {}, names...)
	return all
}

// patience is how long a test waits for what should happen at once.
const patience = time.Minute

// connectedUntil is connected with a function that ends the connections.
func connectedUntil(t testing.TB, names ...string) (_ map[string]*node, cut func()) {
	t.Helper()
	return connectedWith(t, func(string, *hub.Options) {}, names...)
}

// connectedWith is connectedUntil for hubs with options.
func connectedWith(t testing.TB, options func(hub string, o *hub.Options), names ...string) (_ map[string]*node, cut func()) {
	t.Helper()
	all := map[string]*node{}
	for i, name := range names {
		n := &node{name: name, peers: &peer.Peers{}}
		opts := hub.Options{Peers: n.peers, Index: i}
		options(name, &opts)
		n.Hub = coretest.NewHub(t, opts)
		all[name] = n
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	cut = func() {
		cancel()
		serving.Wait()
	}
	t.Cleanup(cut)
	for i, a := range names {
		for k, b := range names[i+1:] {
			one, other := coretest.Pipe[[]byte, []byte](1000)
			log := slog.New(slog.DiscardHandler)
			there := all[a].peers.Add(all[a].Hub, peer.Options{Name: b, Log: log})
			back := all[b].peers.Add(all[b].Hub, peer.Options{Name: a, Log: log})
			all[a].HubUp(b, i+1+k)
			all[b].HubUp(a, i)
			serving.Go(func() { there.Run(ctx, one); there.Close() })
			serving.Go(func() { back.Run(ctx, other); back.Close() })
		}
	}
	for _, a := range names {
		for _, b := range names {
			meet(t, all[a], b)
		}
	}
	return all, cut
}

// meet waits until a hub can ask another one.
func meet(t testing.TB, n *node, other string) {
	t.Helper()
	for n.name != other {
		_, err := n.peers.Ask(t.Context(), other, hub.Inquiry{What: "nothing"})
		if core.AsFault(err).Code == core.CodeUnsupported {
			return
		}
		runtime.Gosched()
	}
}

// join makes a session of the node an agent that every other node of the cluster knows.
func (n *node) join(t testing.TB, all map[string]*node, card core.Card) *hub.Session {
	t.Helper()
	p := core.Principal{ID: string(card.ID), Dialect: "test"}
	s := n.Connect(hub.Identity{Principal: p, Dialect: "test"})
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o != n {
			o.AgentUp(hub.RemoteAgent{Hub: n.name, Entry: roster.Entry{Card: card, Since: time.Now()}, Principal: p})
		}
	}
	return s
}

// person connects somebody who asks.
func (n *node) person(id string) *hub.Session {
	return n.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
}

// until reads a session up to an event of the kind, and returns the events in words.
func until(t testing.TB, s *hub.Session, id core.TaskID, kind core.Kind) string {
	t.Helper()
	var words []string
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		b, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("after %q: %v, want %s", words, err, kind)
		}
		if b.Task == nil || id != "" && b.Task.ID() != id {
			continue
		}
		for _, e := range b.Events {
			w := fmt.Sprintf("%d %s", e.Seq, e.Body.Kind())
			if text, ok := e.Body.(core.Text); ok {
				w += " " + text.Text
			}
			words = append(words, w)
			if e.Body.Kind() == kind {
				return strings.Join(words, ", ")
			}
		}
	}
}

// assigned waits until the agent has a task, and returns that.
func assigned(t testing.TB, s *hub.Session) *task.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		b, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if b.Task != nil && b.Role == task.Agent {
			return b.Task
		}
	}
}

func ask(t testing.TB, s *hub.Session, to core.Address) *task.Task {
	t.Helper()
	one, err := s.Open(core.Request{To: to, Content: "why?"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return one
}
