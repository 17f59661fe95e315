package hub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// ending is how far a hub is on its way to be empty. Hub.mu guards it.
type ending struct {
	reason string // why it takes nothing new; "" while it does
	since  time.Time
	sealed bool // it takes nothing from other hubs either
	closed bool // Close was called
	// idle is closed once it takes nothing new and has no task, drained once its sessions have
	// ended too.
	idle, drained chan struct{}
}

// byOperator is why a hub is drained.
const byOperator = "an operator drains it"

// sealAfter is how long a hub that takes nothing new takes tasks from other hubs at least: those that they
// sent before they knew.
const sealAfter = 250 * time.Millisecond

// recordedCheck is the time between two looks whether the journal of a drained hub has everything.
const recordedCheck = 10 * time.Millisecond

// Drain makes the hub take nothing new. The other hubs of its cluster are told, and every session is
// told the reason; what runs and what waits goes on, with what its agents ask for it. Once nothing does, and the journal has
// everything, all sessions end: see [Hub.Drained]. The hub itself remains; only its restart undoes
// it. Drain returns at once, with a not_authorized Fault unless the principal is an operator.
func (h *Hub) Drain(p core.Principal) error {
	_, err := h.do(context.Background(), nil, core.Call{Principal: p, Command: core.Drain{}}, nil)
	return err
}

// Draining returns why the hub takes nothing new; "" if it does.
func (h *Hub) Draining() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end.reason
}

// Drained is closed once the hub has no task and no session, and takes no more of them.
func (h *Hub) Drained() <-chan struct{} { return h.end.drained }

// IsClosed reports whether Close has ended all sessions.
func (h *Hub) IsClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end.closed && h.closed != nil
}

func (h *Hub) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end.closed || !h.takeNothing(byOperator) {
		return
	}
	h.log.Warn("the hub is drained: it takes nothing new until it is started again", "tasks", len(h.jobs))
	h.background.Go(h.empty)
}

// empty hands on what waits at a hub that is drained, and ends its sessions once it has no task, and none of
// them waits for one of another hub.
func (h *Hub) empty() {
	h.HandOn(h.ctx)
	tick := time.NewTicker(recordedCheck)
	defer tick.Stop()
	idle := h.end.idle
	for {
		select {
		case <-idle:
			idle = nil
		case <-tick.C:
			if idle == nil && h.unrecorded() == 0 && !h.waitsForOthers() {
				h.endSessions(h.refusal("the hub was drained"))
				h.log.Info("the hub is empty")
				return
			}
		case <-h.ctx.Done():
			return
		}
	}
}

// awaitOthers waits until no session waits for a task of another hub, or ctx ends.
func (h *Hub) awaitOthers(ctx context.Context) {
	tick := time.NewTicker(recordedCheck)
	defer tick.Stop()
	for h.waitsForOthers() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// waitsForOthers reports whether a session here has opened a task of another hub that has not ended.
func (h *Hub) waitsForOthers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, opener := range h.asked {
		if !opener.closed {
			return true
		}
	}
	return false
}

// takeNothing makes the hub take nothing new, and reports whether it did before. Callers hold mu.
func (h *Hub) takeNothing(reason string) bool {
	if h.end.reason != "" {
		return false
	}
	h.end.reason, h.end.since = reason, time.Now()
	h.noteIdle()
	told := Batch{Draining: h.farewell()}
	for s := range h.sessions {
		s.inbox.push(told)
	}
	if h.onDrain != nil {
		h.onDrain()
	}
	if h.remote != nil {
		time.AfterFunc(sealAfter, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.noteIdle()
		})
	}
	return true
}

// stopping refuses what is new at a hub that takes nothing new. Callers hold mu.
func (h *Hub) stopping() *core.Fault {
	return h.refusal(fmt.Sprintf("the hub is stopping (%s)", h.end.reason))
}

// finishes reports whether a session opens a task at a drained hub because of what runs there, which
// needs the answer to end. Callers hold mu.
func (h *Hub) finishes(s *Session) bool {
	s = s.root()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !h.end.sealed && !h.end.closed && len(s.work) > 0
}

// refusal says why the hub refuses everything, and what to do.
func (h *Hub) refusal(why string) *core.Fault {
	return core.NewFault(core.CodeUnreachable, "%s: %s", why, cmp.Or(h.Elsewhere(), "try again once it is back")).Because(ErrStopping)
}

// farewell is what sessions are told when the hub takes nothing new. Callers hold mu.
func (h *Hub) farewell() string {
	if where := h.Elsewhere(); where != "" {
		return h.end.reason + ": " + where
	}
	return h.end.reason
}

// Elsewhere says which other hubs of the cluster take something new, in words for those whom this one
// refuses; "" if there are none.
func (h *Hub) Elsewhere() string {
	if h.openElsewhere == nil {
		return ""
	}
	return h.openElsewhere()
}

// noteIdle notes whether a hub that takes nothing new has no task. Callers hold mu.
func (h *Hub) noteIdle() {
	if len(h.jobs)+h.coming > 0 || h.end.reason == "" || h.end.sealed {
		return
	}
	if h.remote == nil || time.Since(h.end.since) >= sealAfter {
		h.end.sealed = true
		close(h.end.idle)
	}
}

// endSessions ends all sessions, and those that come.
func (h *Hub) endSessions(why *core.Fault) {
	h.mu.Lock()
	first := h.closed == nil
	h.closed = why
	sessions := maps.Clone(h.sessions)
	maps.DeleteFunc(sessions, func(s *Session, _ struct{}) bool { return !h.endsWith(s) })
	h.mu.Unlock()
	for s := range sessions {
		s.inbox.end(why)
	}
	if first {
		close(h.end.drained)
	}
}

// endsWith reports whether a session ends with the others: those of other hubs read what a drained
// hub has until it is closed. Callers hold mu.
func (h *Hub) endsWith(s *Session) bool { return s.identity.Hub == "" || h.end.closed }

// Close stops the hub gracefully: it accepts nothing new, tells every session the reason,
// hands on what waits and can run at another hub, lets running tasks finish until ctx ends, also those
// of other hubs for which its sessions wait, fails the rest as unreachable, waits for the journal and ends the sessions. It returns the error of the
// journal, if any. A second Close returns at once.
func (h *Hub) Close(ctx context.Context, reason string) error {
	reason = cmp.Or(reason, "shutdown")
	h.mu.Lock()
	if h.end.closed {
		h.mu.Unlock()
		return nil
	}
	h.end.closed = true
	h.takeNothing(reason)
	h.mu.Unlock()
	h.HandOn(ctx)

	select {
	case <-h.end.idle:
	case <-ctx.Done():
		h.mu.Lock()
		h.end.sealed = true
		h.mu.Unlock()
	}
	h.awaitOthers(ctx)
	gone := core.NewFault(core.CodeUnreachable, "the hub stopped: %s", reason).Because(ErrStopping)
	h.recordNotices()
	for _, t := range h.live() {
		t.End(core.Failed{Fault: gone})
	}
	h.packs.Stop(gone)
	h.questions.Stop(gone)
	h.stop()
	h.admitted.Wait()
	err := h.recorder.Stop(h.unrecorded)
	h.endSessions(gone)
	return err
}

// Forget says that another hub of the cluster is gone for good. It returns a not_authorized Fault
// unless the principal is an operator, an unsupported one for a hub alone, a conflict one for a hub
// that is heard, and a retryable one if that could not be stored.
func (h *Hub) Forget(ctx context.Context, p core.Principal, c core.Forget) error {
	_, err := h.do(ctx, nil, core.Call{Principal: p, Command: c}, func() error {
		if h.forgetHub == nil {
			return core.NewFault(core.CodeUnsupported, "this hub is alone: it has no cluster")
		}
		return h.forgetHub(ctx, c.Hub)
	})
	return err
}
