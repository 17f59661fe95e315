package rpc

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Request is what one engine asks another, in its stable JSON form.
type Request struct {
	// What is the name of the method.
	What string `json:"what"`
	// By is who asks, with the rights that the credential gives, and has passed the door there.
	By core.Principal `json:"-"`
	// In is what belongs to it.
	In json.RawMessage `json:"in,omitempty"`
}

// Told is what an engine tells another, in its stable JSON form.
type Told struct {
	// What is the name of the news.
	What string `json:"what"`
	// Value is what belongs to it.
	Value json.RawMessage `json:"value"`
}

// Conn is a connection to a service of another engine.
type Conn = link.Conn[[]byte, []byte]

// Peers are the other engines. All methods may be called concurrently, and those that do not wait with locks held.
type Peers interface {
	// Names returns which are connected and answer, and which of the others may have something that is not known
	// here. Gone are those whose place another one has taken.
	Names() (up, missing, gone []string)
	// Up returns which are connected, in order, also those that do not answer at the moment.
	Up() []string
	// At returns the name of the one with an index, "" for none or this one, and whether it is connected.
	At(index int) (name string, up bool)
	// State returns the state of one.
	State(name string) State
	// Ask asks one, and waits for the answer or until ctx ends. It returns the Fault of the method, or an unreachable
	// one.
	Ask(ctx context.Context, to string, r Request) (json.RawMessage, error)
	// Tell tells one, which hears it once and in the order of what it is told, or is reported as gone. It does not
	// wait. After an error it does not hear it; with again it is told that it has missed something: see [News.Hear].
	Tell(to string, t Told, again bool) error
	// Dial connects a principal to a service. It does not wait.
	Dial(to, service string, by core.Principal) (Conn, error)
}

// State is what is known of another engine.
type State struct {
	Index    int
	Up       bool // it is connected
	Draining bool // it takes nothing new
	Unheard  bool // it was not heard lately, and has not gone
	Silent   bool // nor for a while: it is asked for nothing
	// GoneSince is when another one took its place; zero if none has.
	GoneSince time.Time
}

// Node is one of several engines. It is safe for concurrent use.
type Node struct {
	peers Peers // nil alone
	name  string
	index int
	log   *slog.Logger

	mu       sync.Mutex
	methods  map[string]func(ctx context.Context, by core.Principal, in json.RawMessage) (json.RawMessage, error)
	news     map[string]listener
	services map[string]func(ctx context.Context, by core.Principal, conn Conn)
}

// NewNode returns the node of an engine with a name and an index; nil Peers are those of one that is alone.
func NewNode(peers Peers, name string, index int, log *slog.Logger) *Node {
	return &Node{
		peers: peers, name: name, index: index, log: log, news: map[string]listener{},
		methods:  map[string]func(context.Context, core.Principal, json.RawMessage) (json.RawMessage, error){},
		services: map[string]func(context.Context, core.Principal, Conn){},
	}
}

// Name returns that of this engine; "" if it is alone.
func (n *Node) Name() string { return n.name }

// Index returns that of this engine.
func (n *Node) Index() int { return n.index }

// HasPeers reports whether there may be other engines.
func (n *Node) HasPeers() bool { return n.peers != nil }

// Names is that of [Peers]; none alone.
func (n *Node) Names() (up, missing, gone []string) {
	if n.peers == nil {
		return nil, nil, nil
	}
	return n.peers.Names()
}

// At is that of [Peers].
func (n *Node) At(index int) (name string, up bool) {
	if n.peers == nil {
		return "", false
	}
	return n.peers.At(index)
}

// State is that of [Peers]; zero alone.
func (n *Node) State(name string) State {
	if n.peers == nil {
		return State{}
	}
	return n.peers.State(name)
}

// Up is that of [Peers]; none alone.
func (n *Node) Up() []string {
	if n.peers == nil {
		return nil
	}
	return n.peers.Up()
}

// errAlone returns why nothing of the name can be reached.
func errAlone(to string) error {
	return core.NewFault(core.CodeUnreachable, "this hub is alone: there is no hub %s", to)
}

// Answer answers what another engine asks. It returns an unsupported Fault for a method that this version does not
// have.
func (n *Node) Answer(ctx context.Context, r Request) (json.RawMessage, error) {
	n.mu.Lock()
	answer := n.methods[r.What]
	n.mu.Unlock()
	if answer == nil {
		return nil, core.NewFault(core.CodeUnsupported, "this hub does not know the inquiry %q: it is of another version", r.What)
	}
	return answer(ctx, r.By, r.In)
}

// Serve has connections of others to a service served, for principals that were authenticated there. serve returns
// when the connection is over; ctx ends with that between the engines.
func (n *Node) Serve(service string, serve func(ctx context.Context, by core.Principal, conn Conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.services[service] = serve
}

// Accept serves a connection from another engine, and returns when it is over. One to a service that this version
// does not have is closed.
func (n *Node) Accept(ctx context.Context, service string, by core.Principal, conn Conn) {
	n.mu.Lock()
	serve := n.services[service]
	n.mu.Unlock()
	if serve == nil {
		_ = conn.Close(*link.Because(link.Protocol, "this hub does not have the service %q: it is of another version", service))
		return
	}
	serve(ctx, by, conn)
	_ = conn.Close(link.Reason{Cause: link.Normal})
}

// Dial connects a principal, which was authenticated here, to the service at another engine that has its state. The
// connection ends when that is gone. It does not wait, and returns an unreachable Fault.
func (n *Node) Dial(to, service string, by core.Principal) (Conn, error) {
	if n.peers == nil {
		return nil, errAlone(to)
	}
	return n.peers.Dial(to, service, by)
}

// RPC implements [Host].
func (n *Node) RPC() *Node { return n }

// Host is what has a Node.
type Host interface{ RPC() *Node }

// HomeOf returns which of this engine and others is to have what a key names, as long as nobody has it: the same at
// all of them that see the same others. It returns "" for this one. Of those that take nothing new none is home; self
// says whether this one takes something.
func (n *Node) HomeOf(key string, others []string, self bool) (home string) {
	var best uint64
	if self {
		best = weight(key, n.index)
	}
	for _, name := range others {
		if s := n.peers.State(name); s.Up && !s.Draining && weight(key, s.Index) > best {
			home, best = name, weight(key, s.Index)
		}
	}
	return home
}

// weight orders the engines for a key, so that only those keys move whose engine comes or goes.
func weight(key string, index int) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt([]byte(key+"\x00"), int64(index), 10)) // it never fails
	w := sum.Sum64()
	w ^= w >> 33 // the last bytes alone change too little
	w *= 0xff51afd7ed558ccd
	return w ^ w>>33
}
