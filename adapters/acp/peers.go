package acp

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// The defaults of [PeersOptions].
const (
	DefaultKeepResults = 10 * time.Minute
	DefaultKeepIDs     = 300 * time.Second // as in the released code (ACP wire facts, section 7)
)

// PeersOptions say how long things are kept for peers; zero takes the default.
type PeersOptions struct {
	// KeepResults is how long the result of a delegate waits for a peer that is away.
	KeepResults time.Duration
	// KeepIDs is for how long an id of an envelope is not acted on twice.
	KeepIDs time.Duration
}

// The bounds of what is kept for peers that are away: results, for one and in all.
const (
	maxOwed      = 1024
	maxOwedTotal = 16 * 1024
)

// Peers is the state that the ACP sessions of one hub share: which peers are connected,
// what is owed to those that are away, and which envelopes were seen. It is safe for
// concurrent use.
type Peers struct {
	keep    time.Duration
	since   time.Time
	numbers atomic.Uint64
	seen    *seenIDs

	mu    sync.Mutex
	live  map[peerID][]*session
	owed  map[peerID][]owing
	owing int
}

// peerID identifies a peer across its connections: the same id of another principal is
// another peer.
type peerID struct {
	principal string
	id        core.AgentID
}

// owing is a delegate that runs, or whose result has not reached its peer.
type owing struct {
	task    core.TaskID
	id      string // of the delegate
	reports bool   // a result is to follow
	// until is when it is no longer kept, at the latest.
	until time.Time
}

// NewPeers makes the Peers of a hub.
func NewPeers(opts PeersOptions) *Peers {
	keep := cmp.Or(max(0, opts.KeepResults), DefaultKeepResults)
	ids := cmp.Or(max(0, opts.KeepIDs), DefaultKeepIDs)
	return &Peers{
		keep: keep, since: time.Now(), seen: newSeenIDs(ids),
		live: map[peerID][]*session{}, owed: map[peerID][]owing{},
	}
}

// arrive adds a session and returns what is owed to its peer.
func (p *Peers) arrive(s *session) []owing {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.owed[s.peer]
	for _, o := range p.live[s.peer] {
		if o.out.away() {
			due = append(due, o.out.reclaim()...)
		}
	}
	p.live[s.peer] = append(p.live[s.peer], s)
	p.owing -= len(p.owed[s.peer])
	delete(p.owed, s.peer)
	now := time.Now()
	return slices.DeleteFunc(due, func(o owing) bool { return now.After(o.until) })
}

// listening returns the latest session of a peer that it listens to, or nil.
func (p *Peers) listening(w peerID) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range slices.Backward(p.live[w]) {
		if !s.out.away() {
			return s
		}
	}
	return nil
}

// connections returns the sessions of a peer.
func (p *Peers) connections(w peerID) []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.live[w])
}

// depart removes a session.
func (p *Peers) depart(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := slices.DeleteFunc(p.live[s.peer], func(o *session) bool { return o == s })
	if p.live[s.peer] = left; len(left) == 0 {
		delete(p.live, s.peer)
	}
}

// leave keeps what is owed to a peer. When it is too much, first what reports nothing
// goes and then what would be kept the shortest; lost is how many results that are. If
// the peer is here by another connection, it keeps nothing and returns that.
func (p *Peers) leave(w peerID, due []owing) (here *session, lost int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if here := p.live[w]; len(here) > 0 {
		return here[len(here)-1], 0
	}
	if p.owing+len(due) > maxOwedTotal {
		p.sweep()
	}
	before := len(p.owed[w])
	all := slices.Concat(p.owed[w], due)
	over := min(max(len(all)-maxOwed, p.owing+len(due)-maxOwedTotal, 0), len(all))
	if over > 0 {
		slices.SortStableFunc(all, owing.compare)
	}
	for _, o := range all[:over] {
		if o.reports {
			lost++
		}
	}
	all = all[over:]
	p.owing += len(all) - before
	p.owed[w] = all
	return nil, lost
}

// compare says which of two is kept rather.
func (o owing) compare(other owing) int {
	switch {
	case o.reports == other.reports:
		return o.until.Compare(other.until)
	case o.reports:
		return 1
	}
	return -1
}

// sweep drops what is no longer kept. Callers hold mu.
func (p *Peers) sweep() {
	now := time.Now()
	for w, all := range p.owed {
		left := slices.DeleteFunc(all, func(o owing) bool { return now.After(o.until) })
		p.owing -= len(all) - len(left)
		if p.owed[w] = left; len(left) == 0 {
			delete(p.owed, w)
		}
	}
}
