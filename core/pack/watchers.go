package pack

import (
	"time"

	"github.com/dragoman-hub/dragoman/core/timer"
)

// The pauses between two times that watchers are told, where packs change again and again.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = time.Second
)

// watchers are the peers that are told when the list of tools has changed.
type watchers struct {
	watching map[Peer]struct{}
	telling  timer.Pace
	due      bool // they are told soon
}

func newWatchers() watchers {
	return watchers{watching: map[Peer]struct{}{}, telling: timer.Pace{First: firstPause, Most: longestPause}}
}

// Watch tells the peer when the tools of packs have changed, until it leaves. Of changes in a row it is
// told at most a few times a second.
func (r *Registry) Watch(p Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watching[p] = struct{}{}
}

// changed tells the peers that watch, at once or soon. Callers hold mu.
func (r *Registry) changed() {
	if r.due {
		return
	}
	pause := r.telling.Next()
	if pause == 0 {
		r.tellWatchers()
		return
	}
	r.due = true
	time.AfterFunc(pause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.due = false
		r.tellWatchers()
	})
}

// tellWatchers tells the peers that watch. Callers hold mu.
func (r *Registry) tellWatchers() {
	for p := range r.watching {
		p.ToolsChanged()
	}
}
