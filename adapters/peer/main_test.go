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
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a hub of a cluster in a test.
type node struct {
	*hub.Hub
	hubs  *remote.Hubs
	name  string
	peers *peer.Peers
}

// newNode starts a hub that reaches others by what links returns.
func newNode(t testing.TB, name string, index int, opts hub.Options, links func(remote.Links) remote.Links) *node {
	n := &node{name: name, peers: &peer.Peers{}}
	var over remote.Links = n.peers
	if links != nil {
		over = links(over)
	}
	n.hubs = remote.New(remote.Options{Links: over, Name: name, Index: index})
	opts.Remote, opts.Node = n.hubs, n.hubs.RPC()
	n.Hub = coretest.NewHub(t, opts)
	return n
}

// newSharing starts a hub with a part of a journal that others can read.
func newSharing(t testing.TB, name string, life journal.Shared) *node {
	n := &node{name: name, peers: &peer.Peers{}}
	n.hubs = remote.New(remote.Options{Links: n.peers, Name: name, Shared: life})
	n.Hub = coretest.NewHub(t, hub.Options{Remote: n.hubs, Node: n.hubs.RPC(), Journal: n.hubs.Journal()})
	return n
}

// add makes a life of another hub known.
func (n *node) add(o peer.Options) *peer.Peer {
	o.Log = slog.New(slog.DiscardHandler)
	return n.peers.Add(n.Hub, n.hubs, o)
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
	return connectedOver(t, options, func(_ string, l remote.Links) remote.Links { return l }, names...)
}

// connectedOver is connectedWith for hubs that reach others by what links returns.
func connectedOver(t testing.TB, options func(hub string, o *hub.Options), links func(hub string, l remote.Links) remote.Links, names ...string) (_ map[string]*node, cut func()) {
	t.Helper()
	all := map[string]*node{}
	for i, name := range names {
		var opts hub.Options
		options(name, &opts)
		all[name] = newNode(t, name, i, opts, func(l remote.Links) remote.Links { return links(name, l) })
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
			there, back := all[a].add(peer.Options{Name: b}), all[b].add(peer.Options{Name: a})
			all[a].hubs.HubUp(b, i+1+k)
			all[b].hubs.HubUp(a, i)
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
		_, err := n.peers.Ask(t.Context(), other, rpc.Request{What: "nothing"})
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
			o.hubs.AgentUp(n.name, roster.Entry{Card: card, Since: time.Now()}, p)
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
