package acp

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// DefaultKeepResults is the default of [PeersOptions].
const DefaultKeepResults = 10 * time.Minute

// KeepIDs is how long an envelope id is remembered, so that no envelope is acted on twice: as in the released code
// (ACP wire facts, section 7).
const KeepIDs = 300 * time.Second

// PeersOptions are the options of [Peers]. Zero means the default.
type PeersOptions struct {
	// KeepResults is how long the result of a delegate waits for a peer that is away.
	KeepResults time.Duration
}

// How many results are kept for a peer that is away, and for all of them together.
const (
	maxPending      = 1024
	maxPendingTotal = 16 * 1024
)

// Peers is the state that the ACP sessions of one hub share: the connected peers, the
// pending results of those that are away, and the ids of envelopes that were seen. It is
// safe for concurrent use.
type Peers struct {
	keep    time.Duration
	since   time.Time
	numbers atomic.Uint64
	seen    *seenIDs
	keys    *hub.Keys // of envelopes that open tasks

	mu           sync.Mutex
	live         map[peerID][]*session
	pending      map[peerID][]pendingResult
	pendingCount int
}

// peerID identifies a peer across its connections: the same id of another principal is
// another peer.
type peerID struct {
	principal string
	id        core.AgentID
}

// pendingResult identifies a delegate that runs, or whose result has not reached its peer.
type pendingResult struct {
	task    core.TaskID
	id      string    // of the delegate
	reports bool      // its peer wants a result
	until   time.Time // it is not kept longer than this
}

// wanted returns those results whose time is not over.
func wanted(due []pendingResult) []pendingResult {
	now := time.Now()
	return slices.DeleteFunc(due, func(o pendingResult) bool { return now.After(o.until) })
}

// NewPeers makes the Peers of a hub. It is called once, before a peer comes.
func NewPeers(h *hub.Hub, opts PeersOptions) *Peers {
	keep := cmp.Or(max(0, opts.KeepResults), DefaultKeepResults)
	p := &Peers{
		keep: keep, since: time.Now(), seen: newSeenIDs(), keys: h.NewKeys(Dialect, hub.KeysOptions{All: maxSeenIDs, Age: KeepIDs}),
		live: map[peerID][]*session{}, pending: map[peerID][]pendingResult{},
	}
	p.answer(h)
	return p
}

// arrive adds a session and returns the pending results of its peer.
func (p *Peers) add(s *session) []pendingResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.pending[s.peer]
	for _, o := range p.live[s.peer] {
		if o.out.away() {
			due = append(due, o.out.reclaim(func(core.TaskID) bool { return true })...)
		}
	}
	p.live[s.peer] = append(p.live[s.peer], s)
	p.pendingCount -= len(p.pending[s.peer])
	delete(p.pending, s.peer)
	return wanted(due)
}

// listening returns the latest session on which a peer listens, or nil.
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

// remove removes a session.
func (p *Peers) remove(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := slices.DeleteFunc(p.live[s.peer], func(o *session) bool { return o == s })
	if p.live[s.peer] = left; len(left) == 0 {
		delete(p.live, s.peer)
	}
}

// keepPending keeps pending results of a peer. If there are too many, those that the peer
// does not want are dropped first, then those that would be kept the shortest; lost counts
// the latter. If the peer has another connection, it keeps nothing and returns that.
func (p *Peers) keepPending(w peerID, due []pendingResult) (here *session, lost int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if here := p.live[w]; len(here) > 0 {
		return here[len(here)-1], 0
	}
	if p.pendingCount+len(due) > maxPendingTotal {
		p.sweep()
	}
	before := len(p.pending[w])
	all := slices.Concat(p.pending[w], due)
	over := min(max(len(all)-maxPending, p.pendingCount+len(due)-maxPendingTotal, 0), len(all))
	if over > 0 {
		slices.SortStableFunc(all, pendingResult.compare)
	}
	for _, o := range all[:over] {
		if o.reports {
			lost++
		}
	}
	all = all[over:]
	p.pendingCount += len(all) - before
	p.pending[w] = all
	return nil, lost
}

// compare orders pending results by how much they are worth keeping.
func (o pendingResult) compare(other pendingResult) int {
	switch {
	case o.reports == other.reports:
		return o.until.Compare(other.until)
	case o.reports:
		return 1
	}
	return -1
}

// sweep drops the results whose time is over. Callers hold mu.
func (p *Peers) sweep() {
	now := time.Now()
	for w, all := range p.pending {
		left := slices.DeleteFunc(all, func(o pendingResult) bool { return now.After(o.until) })
		p.pendingCount -= len(all) - len(left)
		if p.pending[w] = left; len(left) == 0 {
			delete(p.pending, w)
		}
	}
}
