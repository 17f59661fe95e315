package hub

import (
	"golang.org/x/time/rate"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// A refused request is recorded, without its content, so that people see that it came. The journal and the lists
// of tasks have bounds, and one who is refused must not spend what others have stored: beyond its measure a
// principal is told why it is refused, and nothing else is kept.
const (
	refusalsAtOnce    = 100
	refusalsPerSecond = 1
	refusedPrincipals = 4096
)

// refusals are who was refused how much lately, by [core.Principal.Account]. Hub.mu guards them.
type refusals struct {
	by *lru.Cache[string, *rate.Limiter]
}

func newRefusals() refusals {
	return refusals{lru.New(lru.Options[string, *rate.Limiter]{Count: refusedPrincipals})}
}

// ForgottenObserver is an [Observer] that is told of refused tasks that are not recorded.
type ForgottenObserver interface{ Forgotten(core.TaskID) }

// take reports whether one more refusal of an account is to be recorded.
func (r *refusals) take(account string) bool {
	l, ok := r.by.Get(account)
	if !ok {
		l = rate.NewLimiter(refusalsPerSecond, refusalsAtOnce)
	}
	r.by.Put(account, l)
	return l.Allow()
}

// record has the journal get a task that was opened, unless it is not known yet whether somebody gets it.
func (h *Hub) record(j *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.others.noticed[j.ID()] == nil {
		h.recorder.Record(j.Task)
	}
}

// recordNotices has the journal get the notices of which other hubs have not said whether anybody gets them.
func (h *Hub) recordNotices() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.others.noticed {
		if t := h.tasks.Get(id); t != nil {
			h.recorder.Record(t)
		}
	}
	clear(h.others.noticed)
}

// recordRefused has the journal get a task that was refused. It reports false where its requester was refused
// too much: then the hub does not know the task any more.
func (h *Hub) recordRefused(j *job) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusals.take(j.From().Account()) {
		h.recorder.Record(j.Task)
		return true
	}
	h.index.Remove(j.Thread(), j.ID())
	h.tasks.Forget(j.Task)
	if o, ok := h.observer.(ForgottenObserver); ok {
		o.Forgotten(j.ID())
	}
	return false
}
