package hub

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// A hub that takes no more news at the moment, for too much is on its way to it, misses some. It is
// told of which kind, by a word that has room and comes before the next news of the kind, and asks for
// what it has missed.

// missedPause is how long after that word the next one of the kind is.
const missedPause = time.Second

// untold is what other hubs could not be told.
type untold struct {
	mu sync.Mutex
	// told are the hubs that were told not long ago that they have missed news of a kind; true for one
	// that has missed more since. It gets nothing of the kind until it is told that.
	told map[untoldNews]bool
}

type untoldNews struct{ hub, what string }

var errOwed = core.NewFault(core.CodeOverloaded, "it has to be told first that it has missed some")

// before returns an error for news that must not be told yet.
func (u *untold) before(hub, what string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told[untoldNews{hub, what}] {
		return errOwed
	}
	return nil
}

// newsOfMissed says of which kind some news are missing.
func newsOfMissed() news[string] { return news[string]{what: "missed", told: (*Hub).hearMissed} }

// untold notes that a hub could not be told something.
func (h *Hub) untold(hub, what string, err error) {
	h.Count("peer.untold")
	h.log.Warn("another hub could not be told", "hub", hub, "news", what, "error", err)
	if core.AsFault(err).Code != core.CodeUnreachable { // else it is gone, or was told that
		h.others.untold.tell(h, untoldNews{hub, what})
	}
}

// tell tells a hub that it has missed something, now or after the pause.
func (u *untold) tell(h *Hub, m untoldNews) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, pauses := u.told[m]; pauses {
		u.told[m] = true
		return
	}
	if u.told == nil {
		u.told = map[untoldNews]bool{}
	}
	err := newsOfMissed().tell(h, m.hub, m.what)
	u.told[m] = err != nil && core.AsFault(err).Code != core.CodeUnreachable
	time.AfterFunc(missedPause, func() {
		u.mu.Lock()
		more := u.told[m]
		delete(u.told, m)
		u.mu.Unlock()
		if more {
			u.tell(h, m)
		}
	})
}

// hearMissed asks another hub for news of a kind of which this one has missed some.
func (h *Hub) hearMissed(from, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.others.up[from] {
		return // it tells all when it comes
	}
	h.Count("peer.missed")
	for _, known := range allNews() {
		if known.name() == what {
			known.miss(h, from)
		}
	}
}

// missOpened has those who read all tasks look for some of which this hub was not told, and forgets that it
// knows whole conversations: it asks for each again. Callers hold mu.
func (h *Hub) missOpened(string) {
	h.talk.joins++
	for s := range h.sessions {
		if f := s.feed.Load(); f != nil {
			f.misses.Store(true)
			s.inbox.rouse()
		}
	}
	for s := range h.watchers {
		h.watchRunning(s)
	}
}
