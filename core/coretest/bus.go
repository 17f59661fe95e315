package coretest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

// Weather is what a [Network] does to messages. What happens to a message follows from the seed,
// its sender, receiver and subject, and when it was sent: a schedule replays whatever the order in
// which goroutines run, and whether they send one message or two at a time.
type Weather struct {
	// Delay is how long a message takes at least and at most. One sender's messages on one
	// subject stay in order, as a [cluster.Bus] promises.
	Least, Most time.Duration
	// Lost and Twice are how many of a thousand messages are lost, and come twice.
	Lost, Twice int
}

// calm is the weather of a new Network.
var calm = Weather{Least: 50 * time.Microsecond, Most: 200 * time.Microsecond}

// Network is a bus in memory between hubs that can be cut off, paused and killed. It works under
// testing/synctest. It needs no end: once nobody sends, nothing runs. All methods may be called
// concurrently; handlers are called one at a time in the whole network.
type Network struct {
	seed  uint64
	began time.Time

	mu      sync.Mutex
	weather Weather
	hubs    map[string]*node
	counts  map[lane]uint64
	last    map[lane]time.Time
	cut     map[[2]string]bool
	queue   []delivery
	timer   *time.Timer
	running bool // the queue is being delivered
	bytes   int
}

// node is a hub of a Network.
type node struct {
	name   string
	paused bool
	killed bool
	// held is what waits until the hub is no longer paused.
	held []delivery
	subs map[string][]*subscription
}

type subscription struct {
	handle func([]byte, func([]byte))
}

// lane is what one hub sends another on one subject.
type lane struct{ from, to, subject string }

// delivery is something that happens at a time.
type delivery struct {
	lane
	at     time.Time
	number uint64 // in its lane
	do     func()
}

// NewNetwork returns a network without hubs, in which messages take up to 0.2 ms.
func NewNetwork(seed uint64) *Network {
	return &Network{
		seed: seed, began: time.Now(), weather: calm, hubs: map[string]*node{}, counts: map[lane]uint64{}, last: map[lane]time.Time{}, cut: map[[2]string]bool{},
	}
}

// SetWeather changes what happens to messages from now on.
func (n *Network) SetWeather(w Weather) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.weather = w
}

// Calm makes the weather that of a new Network again.
func (n *Network) Calm() { n.SetWeather(calm) }

// Cut cuts the connection between two hubs: requests between them get no answer.
func (n *Network) Cut(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{a, b}], n.cut[[2]string{b, a}] = true, true
}

// CutOneWay cuts what a sends to b.
func (n *Network) CutOneWay(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{a, b}] = true
}

// Isolate cuts some hubs off from all others, but not from each other.
func (n *Network) Isolate(some ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for a := range n.hubs {
		for b := range n.hubs {
			if slices.Contains(some, a) != slices.Contains(some, b) {
				n.cut[[2]string{a, b}] = true
			}
		}
	}
}

// Heal mends all cuts.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
}

// Reaches reports whether a hub reaches a majority of all hubs that are neither killed nor
// paused, or is reached by: what a store that all hubs run needs to work for it.
func (n *Network) Reaches(hub string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	reached := 0
	for name, other := range n.hubs {
		if other.alive() && !other.paused && !n.cut[[2]string{hub, name}] && !n.cut[[2]string{name, hub}] {
			reached++
		}
	}
	h := n.hubs[hub]
	return h != nil && h.alive() && !h.paused && reached > len(n.hubs)/2
}

// alive reports whether the hub listens to anything.
func (h *node) alive() bool { return len(h.subs) > 0 }

// Pause stops a hub, as SIGSTOP does: what it sends and what is sent to it waits for
// [Network.Resume]. Its goroutines run on.
func (n *Network) Pause(hub string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.node(hub).paused = true
}

// Resume lets a hub go on after [Network.Pause].
func (n *Network) Resume(hub string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.node(hub)
	h.paused = false
	for i, d := range h.held { // each at an instant of its own
		d.at = time.Now().Add(time.Duration(i) * time.Microsecond)
		if l := d.lane; d.at.After(n.last[l]) {
			n.last[l] = d.at
		}
		n.schedule(d)
	}
	h.held = nil
}

// Kill ends all subscriptions of a hub at once: requests to it find nobody from now on, and what
// it still sends is lost, until it subscribes to something again.
func (n *Network) Kill(hub string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.node(hub)
	h.subs, h.held, h.killed = map[string][]*subscription{}, nil, true
}

// Bytes returns how many bytes were published so far, each message counted once for each hub
// that gets it.
func (n *Network) Bytes() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bytes
}

// Bus returns the bus of a hub.
func (n *Network) Bus(hub string) cluster.Bus {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.node(hub)
	return &end{n, hub}
}

func (n *Network) node(name string) *node {
	h := n.hubs[name]
	if h == nil {
		h = &node{name: name, subs: map[string][]*subscription{}}
		n.hubs[name] = h
	}
	return h
}

// end is the bus of one hub.
type end struct {
	net *Network
	hub string
}

// Publish implements [cluster.Bus].
func (e *end) Publish(subject string, data []byte) error {
	n := e.net
	n.mu.Lock()
	defer n.mu.Unlock()
	data = bytes.Clone(data)
	names := make([]string, 0, len(n.hubs))
	for name := range n.hubs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if len(n.hubs[name].subs[subject]) > 0 {
			n.bytes += len(data)
			n.send(lane{e.hub, name, subject}, func() { n.deliver(name, subject, data, nil) })
		}
	}
	return nil
}

// Request implements [cluster.Bus].
func (e *end) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	n := e.net
	type answer struct {
		data []byte
		err  error
	}
	answers := make(chan answer, 1)
	back := func(from string, a answer) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.send(lane{from, e.hub, subject + " answer"}, func() {
			select {
			case answers <- a:
			default: // the first counts
			}
		})
	}
	n.mu.Lock()
	data = bytes.Clone(data)
	to := n.serves(subject)
	if to == "" {
		to = e.hub // where it is known that nobody listens
	}
	n.send(lane{e.hub, to, subject}, func() {
		if !n.deliver(to, subject, data, func(data []byte) { back(to, answer{data: bytes.Clone(data)}) }) {
			back(to, answer{err: fmt.Errorf("%s: %w", subject, cluster.ErrNobody)})
		}
	})
	n.mu.Unlock()
	select {
	case a := <-answers:
		return a.data, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serves returns the first hub that listens to a subject, by name. Callers hold mu.
func (n *Network) serves(subject string) (hub string) {
	for name, h := range n.hubs {
		if len(h.subs[subject]) > 0 && (hub == "" || name < hub) {
			hub = name
		}
	}
	return hub
}

// Subscribe implements [cluster.Bus].
func (e *end) Subscribe(subject string, handle func([]byte, func([]byte))) (stop func(), err error) {
	n := e.net
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &subscription{handle}
	h := n.node(e.hub)
	h.killed = false
	h.subs[subject] = append(h.subs[subject], s)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if h.subs[subject] = slices.DeleteFunc(h.subs[subject], func(o *subscription) bool { return o == s }); len(h.subs[subject]) == 0 {
			delete(h.subs, subject)
		}
	}, nil
}

// deliver calls the handlers of a subject, and reports whether there are any.
func (n *Network) deliver(to, subject string, data []byte, reply func([]byte)) bool {
	n.mu.Lock()
	subs := slices.Clone(n.hubs[to].subs[subject])
	n.mu.Unlock()
	for _, s := range subs {
		s.handle(data, reply)
	}
	return len(subs) > 0
}

// send sends something along a lane, as the weather allows. Callers hold mu.
func (n *Network) send(l lane, do func()) {
	n.counts[l]++
	number := n.counts[l]
	if n.cut[[2]string{l.from, l.to}] || n.node(l.from).killed || l.from != l.to && n.chance(l, "lost") < n.weather.Lost {
		return
	}
	delay := n.weather.Least
	if span := n.weather.Most - n.weather.Least; span > 0 {
		delay += time.Duration(n.draw(l, "delay") % uint64(span))
	}
	d := delivery{lane: l, at: time.Now().Add(delay), number: number, do: do}
	if d.at.Before(n.last[l]) {
		d.at = n.last[l]
	}
	n.last[l] = d.at
	n.schedule(d)
	if l.from != l.to && n.chance(l, "twice") < n.weather.Twice {
		d.at = d.at.Add(n.weather.Most)
		n.schedule(d)
	}
}

// chance draws from 0 to 999.
func (n *Network) chance(l lane, what string) int { return int(n.draw(l, what) % 1000) }

func (n *Network) draw(l lane, what string) uint64 {
	x := n.seed ^ uint64(time.Since(n.began))
	for _, part := range [...]string{l.from, l.to, l.subject, what} {
		for i := range len(part) {
			x = (x ^ uint64(part[i])) * 1099511628211
		}
		x = mix(x)
	}
	return x
}

// mix spreads every bit of x over all.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// schedule puts something into the queue. Callers hold mu.
func (n *Network) schedule(d delivery) {
	i, _ := slices.BinarySearchFunc(n.queue, d, func(a, b delivery) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.subject, b.subject), cmp.Compare(a.number, b.number))
	})
	n.queue = slices.Insert(n.queue, i, d)
	if i == 0 && !n.running {
		n.arm()
	}
}

// arm makes the network deliver what is first in the queue when its time has come. Callers hold
// mu.
func (n *Network) arm() {
	if wait := time.Until(n.queue[0].at); n.timer == nil {
		n.timer = time.AfterFunc(wait, n.run)
	} else {
		n.timer.Reset(wait)
	}
}

// run delivers what is due.
func (n *Network) run() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running {
		return
	}
	growStack(len(n.queue) & 1)
	n.running = true
	for len(n.queue) > 0 && !n.queue[0].at.After(time.Now()) {
		d := n.queue[0]
		if n.queue = n.queue[1:]; n.held(d) {
			continue
		}
		n.mu.Unlock()
		d.do()
		n.mu.Lock()
	}
	if n.running = false; len(n.queue) > 0 {
		n.arm()
	}
}

// growStack makes the stack of a new goroutine as large as handlers need: growing it step by step,
// with all of a handler's frames on it, took an eighth of the time of a schedule.
//
//go:noinline
func growStack(i int) byte {
	var room [10 << 10]byte
	return room[i]
}

// held keeps what a paused hub sends or gets. Callers hold mu.
func (n *Network) held(d delivery) bool {
	for _, name := range []string{d.from, d.to} {
		if h := n.hubs[name]; h != nil && h.paused {
			h.held = append(h.held, d)
			return true
		}
	}
	return false
}
