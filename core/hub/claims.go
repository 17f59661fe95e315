package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/dedup"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// A request with a key is claimed at all hubs before it is acted on, and all are told what became of
// it. So whichever hub dies, the others know the task, or that there may be one: then the journal
// tells, where the first event of the task has the key. Of two hubs that claim a key at once the one
// goes first of which [weight] says so; the other one waits for it. Only the hub that has made a claim
// knows whether the claim still counts, as long as it lives: what others have noted of it may be late.

// keyTime is how long a request waits for other hubs.
const keyTime = 5 * time.Second

// claim says that a hub acts on a request, or is about to.
type claim struct {
	by    string
	owner string      // the principal of the request
	after core.TaskID // the newest task of the hub then: its task for the request is a newer one
	gone  bool        // the hub has died since
}

// claimed asks hubs for a key, and claims it where nobody has it.
type claimed struct {
	Key   string      `json:"key"`
	Owner string      `json:"owner"`
	Hub   string      `json:"hub"`
	After core.TaskID `json:"after,omitempty"`
	// Over are hubs whose claims do not count any more, and Lost is a task that died with its hub
	// before it was stored.
	Over []string    `json:"over,omitempty"`
	Lost core.TaskID `json:"lost,omitempty"`
}

// claimAnswer is what a hub knows of a key. The zero claimAnswer says that it is claimed now.
type claimAnswer struct {
	Task  core.TaskID `json:"task,omitempty"`
	Other bool        `json:"other,omitempty"` // the key belongs to another request
	// By is the hub that has a claim, After and Gone are those of the claim.
	By    string      `json:"by,omitempty"`
	After core.TaskID `json:"after,omitempty"`
	Gone  bool        `json:"gone,omitempty"`
}

// claimInquiry claims a key at a hub.
func claimInquiry() inquiry[claimed, claimAnswer] {
	return inquiry[claimed, claimAnswer]{"keys.claim", func(_ context.Context, h *Hub, _ core.Principal, c claimed) (claimAnswer, error) {
		m, ok := parseMark(c.Key)
		if !ok {
			return claimAnswer{}, core.NewFault(core.CodeInvalid, "the key of a request has another form")
		}
		if k := h.keysOf(m.scope); k != nil {
			return k.answer(m, c), nil
		}
		return claimAnswer{}, nil
	}}
}

// finished is what became of a claim: the task of the request, or none.
type finished struct {
	Key   string      `json:"key"`
	Owner string      `json:"owner"`
	Task  core.TaskID `json:"task,omitempty"`
}

// keysFinished tells all hubs what became of a claim.
func keysFinished() news[finished] {
	return news[finished]{what: "keys.finished", told: func(h *Hub, from string, f finished) {
		m, ok := parseMark(f.Key)
		if k := h.keysOf(m.scope); ok && k != nil {
			k.hear(from, m, f)
		}
	}}
}

func (h *Hub) keysOf(scope string) *Keys {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[scope]
}

// answer claims a key for a hub, unless somebody has it.
func (k *Keys) answer(m mark, c claimed) claimAnswer {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch known, verdict := k.known.Find(c.Owner, m.key, m.content); verdict {
	case dedup.Settled:
		if known != c.Lost {
			return claimAnswer{Task: known}
		}
		k.known.Forget(c.Owner, m.key)
	case dedup.Conflict:
		return claimAnswer{Other: true}
	}
	has, ok := k.claims.Get(m.key)
	if ok && (has.by != c.Hub || has.gone) && !slices.Contains(c.Over, has.by) {
		return claimAnswer{By: has.by, After: has.after, Gone: has.gone}
	}
	k.claims.Put(m.key, &claim{by: c.Hub, owner: c.Owner, after: c.After})
	return claimAnswer{}
}

// hear notes what became of the claim of another hub.
func (k *Keys) hear(from string, m mark, f finished) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.Task != "" {
		k.keep(f.Owner, m, f.Task)
	} else if has, ok := k.claims.Get(m.key); ok && has.by == from {
		k.claims.Remove(m.key)
	}
}

// hubGone notes that the claims of a hub are those of a dead one.
func (k *Keys) hubGone(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, has := range k.claims.All() {
		has.gone = has.gone || has.by == name
	}
}

// finish notes what became of a claim of this hub, and tells the others.
func (k *Keys) finish(owner string, m mark, id core.TaskID) {
	h := k.hub
	f := finished{Key: m.String(), Owner: owner, Task: id}
	k.hear(h.others.name, m, f)
	if !h.Clustered() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	keysFinished().tellAll(h, f)
}

// claim claims a key at all hubs. It returns the task of the request if there is one, and waits for
// hubs that are acting on it or do not answer.
func (k *Keys) claim(ctx context.Context, owner string, m mark) (before core.TaskID, err error) {
	h := k.hub
	late := core.NewFault(core.CodeUnreachable, "another hub is acting on the same request, or does not answer: send it again in a moment")
	late.Retryable = true
	ctx, cancel := context.WithTimeoutCause(ctx, keyTime, late)
	defer cancel()
	c := claimed{Key: m.String(), Owner: owner, Hub: h.others.name, After: h.tasks.Newest()}
	const shortest, longest = 2 * time.Millisecond, 100 * time.Millisecond
	for pause := shortest; ; pause = min(2*pause, longest) {
		if err := h.canRecord(); err != nil {
			return "", err
		}
		s := sayings{hubs: []answerOf[claimAnswer]{{hub: h.others.name, out: k.answer(m, c)}}}
		answers, _ := claimInquiry().askEach(ctx, h, componentPrincipal, c)
		s.hubs = append(s.hubs, answers...)
		s.judge()
		switch {
		case s.task != "":
			lost, err := h.isLost(ctx, s.task)
			switch {
			case err != nil:
				s.unclear = true
			case lost:
				c.Lost = s.task
				continue
			default:
				return s.task, nil
			}
		case s.other:
			return "", otherContent()
		}
		c.Over = s.over
		if id := k.readOrphans(ctx, &c, &s); id != "" {
			return id, nil
		}
		if rival := h.firstOf(m.key, s.rivals); rival != "" {
			k.yield(m, rival)
		}
		switch {
		case len(s.rivals) > 0 || s.unclear:
		case len(c.Over) > 0:
			continue // they are told so
		default:
			return "", nil
		}
		if err := timer.Sleep(ctx, pause); err != nil {
			return "", core.AsFault(err)
		}
	}
}

// readOrphans reads what hubs that have died did about a request. It returns the task if one of them has opened
// it; those that have not, claim nothing any more.
func (k *Keys) readOrphans(ctx context.Context, c *claimed, s *sayings) core.TaskID {
	for _, o := range s.orphans {
		id, over, err := k.hub.orphan(ctx, o, c.Key, c.Owner)
		switch {
		case err != nil:
			k.hub.log.Warn("whether a hub that is gone has acted on a request could not be read yet", "hub", o.By, "error", err)
		case id != "":
			return id
		case over:
			c.Over = append(c.Over, o.By)
		}
		s.unclear = s.unclear || !over
	}
	return ""
}

// sayings are what all hubs say of a key, this one first, and what follows from that.
type sayings struct {
	hubs    []answerOf[claimAnswer]
	task    core.TaskID
	other   bool
	rivals  []string      // hubs that act on the request, or are about to
	over    []string      // hubs whose claims do not count any more, by what they say themselves
	orphans []claimAnswer // claims of hubs that have died
	unclear bool          // some hub has not said what it does
}

func (s *sayings) judge() {
	for _, a := range s.hubs {
		if a.err != nil { // a hub of an older version knows no keys
			s.unclear = s.unclear || core.AsFault(a.err).Code != core.CodeUnsupported
			continue
		}
		its := slices.IndexFunc(s.hubs, func(o answerOf[claimAnswer]) bool { return o.hub == a.out.By })
		switch {
		case a.out.Task != "":
			s.task = a.out.Task
		case a.out.Other:
			s.other = true
		case a.out.By == "":
		case a.out.Gone:
			s.orphans = append(s.orphans, a.out)
		case its < 0 || s.hubs[its].err != nil:
			s.unclear = true
		case s.hubs[its].out.By == a.out.By && !s.hubs[its].out.Gone:
			s.rivals = append(s.rivals, a.out.By)
		default:
			s.over = append(s.over, a.out.By)
		}
	}
}

// firstOf returns the rival that goes first; "" if this hub does. Those that drain count: all rivals
// have to name the same one, and may not know yet who drains.
func (h *Hub) firstOf(key digest, rivals []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first(string(key[:]), rivals, true)
}

// yield leaves a key to another hub, unless somebody else has it here.
func (k *Keys) yield(m mark, to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if has, ok := k.claims.Get(m.key); ok && has.by == k.hub.others.name {
		has.by = to
	}
}

// orphan returns the task that a hub which has died since its claim has opened for the request, or
// that it is over: there is none. Before the hub was taken over, nobody can tell.
func (h *Hub) orphan(ctx context.Context, o claimAnswer, key, owner string) (id core.TaskID, over bool, err error) {
	h.mu.Lock()
	ended := h.others.up[o.By] || h.others.gone[o.By] || o.By == h.others.name
	parts := []string{o.By}
	for name, taken := range h.others.gone {
		if taken && name != o.By {
			parts = append(parts, name) // which may have owned what that hub has opened
		}
	}
	h.mu.Unlock()
	if !ended || h.shared == nil {
		return "", ended, nil
	}
	slices.Sort(parts)
	for _, part := range parts {
		if id, err = h.openedWith(ctx, part, o.After, key, owner); id != "" || err != nil {
			return id, false, err
		}
	}
	return "", true, nil
}

// mayBeLost reports whether a task may have died with its hub before it was stored.
func (h *Hub) mayBeLost(id core.TaskID) bool { return h.Clustered() && h.tasks.Get(id) == nil }

// isLost reports whether a task that a hub has told of is not there any more. It waits for the owner
// or the journal, and returns an error as long as nobody can tell.
func (h *Hub) isLost(ctx context.Context, id core.TaskID) (bool, error) {
	_, err := h.find(ctx, id)
	if !errors.Is(err, unknownTask) {
		return false, err
	}
	l, _ := task.LineOf(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.Maker() != l.Owner() && h.others.up[h.others.byIndex[l.Maker()]] {
		return false, err // it may be on its way to its owner
	}
	return true, nil
}

// openedWith returns the task in the part of a hub in the journal that has a key and is newer than
// another one; "" if there is none.
func (h *Hub) openedWith(ctx context.Context, part string, after core.TaskID, key, owner string) (core.TaskID, error) {
	var newer []core.TaskID
	err := h.shared.HeadsOf(ctx, part, func(head journal.Head) bool {
		if head.Task > after {
			newer = append(newer, head.Task)
		}
		return true
	})
	if err != nil {
		return "", err
	}
	for _, id := range newer {
		events, err := h.shared.ReadOf(ctx, part, id, 0, 1)
		var gap *journal.GapError
		switch {
		case errors.Is(err, journal.ErrUnknown) || errors.As(err, &gap):
			continue
		case err != nil:
			return "", err
		}
		if b, ok := events[0].Body.(core.Opened); ok && b.Key == key && b.From.ID == owner {
			return id, nil
		}
	}
	return "", nil
}
