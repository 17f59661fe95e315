package hub

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Identity is who stands behind a connection.
type Identity struct {
	Principal core.Principal
	// Dialect is what it speaks.
	Dialect string
	// Deadline is how long its requests may take unless they say; zero takes the
	// hub's default.
	Deadline time.Duration
	// Keep lets all that it asks, its calls of tools included, run on when the
	// session ends.
	Keep bool
	// Checked says that all JSON which the dialect hands to the hub has been through
	// package strictjson, or was written by the dialect: it is not read again.
	Checked bool
}

// JoinOptions is how an agent takes what the vocabulary has and its dialect lacks.
type JoinOptions struct {
	// NoticeTasks says that notices come to it as ordinary tasks whose answer is
	// dropped. Without it they come beside its tasks. An agent whose card lacks
	// core.FeatureNotices gets none either way.
	NoticeTasks bool
	// Concurrent is how many tasks at once it gets when its card says no number and
	// an operator set none; zero is one.
	Concurrent int
	// MostTime is how long a task may take with the agent: one that takes longer fails
	// as if its deadline had come. Zero is until the deadline.
	MostTime time.Duration
	// OnlyByID says that nothing is known of what the session can do. It becomes an
	// agent the first time that it is given something under its id or alias, and is
	// listed from then on; no address by capability or domain finds it, nor does *.
	// It keeps the id from nobody else who joins, but for as long as it has work, and
	// from other principals where one has authenticated.
	// Joining once more without OnlyByID makes it an agent like any other.
	OnlyByID bool
	// Probe asks the peer for a sign of life, when another connection wants its id:
	// see [Session.Take]. It returns nil once there was one; ctx bounds it, and is not
	// cancelled. An agent without a Probe counts as alive.
	Probe func(ctx context.Context) error
}

// Session is the presence of one connection at the hub: it may ask, answer, or
// both. All methods but Next, NextOr and Take return without waiting for another peer, a
// disk or a tool, and all but the first two may be called concurrently.
type Session struct {
	hub      *Hub
	identity Identity
	inbox    inbox
	views    views
	waits    waits
	// trunk is the session that this one is a branch of, or nil.
	trunk *Session

	// Guarded by Hub.mu.
	id     core.AgentID // "" until it is an agent
	opts   JoinOptions
	offer  *roster.Entry // how it is found by its id alone; nil if it is not
	queue  []*job
	closed bool
	// vacated is closed once the session is no agent any more.
	vacated chan struct{}
	// follows are the threads that it follows.
	follows table[core.ThreadID, struct{}]
	said    int         // how many tasks at once the agent takes by itself; 0 if it did not say
	expiry  *time.Timer // ends the session; nil for one without end

	mu     sync.Mutex
	card   core.Card
	work   table[core.TaskID, *holding]
	opened table[*Task, bool] // whether it runs on without the session
	// branches are those that have not been closed.
	branches table[*Session, struct{}]
	last     cause     // of the task that it ended last
	until    time.Time // for how long that counts
}

// cause is a task that a session acts because of, and what stands above it.
type cause struct {
	task  core.TaskID
	chain policy.Chain
	over  bool // the task has ended, and is remembered
}

// table is a map that is made with its first entry: most sessions need one or two
// of theirs.
type table[K comparable, V any] map[K]V

func (t *table[K, V]) put(k K, v V) {
	if *t == nil {
		*t = table[K, V]{}
	}
	(*t)[k] = v
}

func newSession(h *Hub, p Identity) *Session {
	return &Session{hub: h, identity: p, inbox: newInbox()}
}

// Identity returns who stands behind the session.
func (s *Session) Identity() Identity { return s.identity }

// Join makes the session the agent of the card, at once or, with [JoinOptions.OnlyByID],
// when it is addressed. It returns an invalid Fault for an id that cannot be one, a
// conflict Fault when the id is taken or the session is an agent already, and an
// unreachable one when the hub is stopping.
func (s *Session) Join(card core.Card, opts JoinOptions) error {
	return s.doing(core.Join{Card: card}, func() error { return s.join(card, opts) })
}

func (s *Session) join(card core.Card, opts JoinOptions) error {
	if err := core.CheckAgentID(card.ID); err != nil {
		return err
	}
	card = clean(card)
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case s.closed:
		return core.NewFault(core.CodeUnreachable, "the connection has ended")
	case h.draining != "":
		return core.NewFault(core.CodeUnreachable, "the hub is stopping (%s): come again once it is back", h.draining)
	case s.id != "" && !s.opts.OnlyByID:
		return core.NewFault(core.CodeConflict, "this connection is agent %s already", s.id)
	case s.offer != nil && (s.offer.ID != card.ID || opts.OnlyByID):
		return core.NewFault(core.CodeConflict, "this connection is known as %s already", s.offer.ID)
	}
	if h.claimed(s, card.ID) {
		return core.NewFault(core.CodeConflict, "the id %s belongs to somebody else, who is connected: choose another id, or wait until he has left", card.ID)
	}
	if opts.OnlyByID {
		s.opts = opts
		h.putOnCall(s, card)
		return nil
	}
	if s.id != "" {
		s.opts = opts
		h.recard(s, card)
		return nil
	}
	if by := h.agents[card.ID]; by != nil && by.opts.OnlyByID && by.workless() {
		h.unseat(by, core.NewFault(core.CodeConflict, "another agent has its id now"))
		by.id = ""
	}
	if err := h.sit(s, card, opts); err != nil {
		return err
	}
	h.dispatch(s)
	return nil
}

// Update replaces the card of the agent that the session is; its id stays. It
// returns a conflict Fault when the session is no agent or the id differs.
func (s *Session) Update(card core.Card) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed || s.id == "" || s.id != card.ID {
		return core.NewFault(core.CodeConflict, "this connection is agent %q, not %q", s.id, card.ID)
	}
	h.recard(s, clean(card))
	return nil
}

// sit makes the session an agent. Callers hold mu.
func (h *Hub) sit(s *Session, card core.Card, opts JoinOptions) error {
	before := s.opts
	s.id, s.opts = card.ID, opts
	card = h.underTerms(s, card)
	if err := h.roster.Add(card, opts.OnlyByID); err != nil {
		s.id, s.opts = "", before
		return err
	}
	s.vacated = make(chan struct{})
	s.mu.Lock()
	s.card = card
	s.mu.Unlock()
	h.agents[card.ID] = s
	h.aliases.add(card.ID)
	h.topics.Identify(s.subscriber(), s.subscriberID())
	if h.observer != nil {
		h.observer.Joined(card)
	}
	h.log.Info("agent joined", "agent", card.ID, "dialect", card.Dialect, "name", card.Name)
	return nil
}

// recard replaces the card of an agent. Callers hold mu.
func (h *Hub) recard(s *Session, card core.Card) {
	card = h.underTerms(s, card)
	h.roster.SetCard(card, s.opts.OnlyByID)
	s.mu.Lock()
	s.card = card
	s.mu.Unlock()
	if h.observer != nil {
		h.observer.Joined(card)
	}
	h.dispatch(s)
}

// unseat takes the place of an agent away. Callers hold mu.
func (h *Hub) unseat(s *Session, reason *core.Fault) {
	h.roster.Remove(s.id)
	delete(h.agents, s.id)
	close(s.vacated)
	h.forget(s.id)
	if h.observer != nil {
		h.observer.Left(s.id)
	}
	log := h.log
	if hidden := detail(reason); hidden != "" {
		log = log.With("detail", hidden)
	}
	log.Info("agent left", "agent", s.id, "reason", reason.Message)
}

func clean(c core.Card) core.Card {
	if c.Name == "" {
		c.Name = string(c.ID)
	}
	return c
}

// SetLoad notes what the agent says of its own load: overloaded and draining
// agents get nothing new until they say idle or busy.
func (s *Session) SetLoad(state core.LoadState) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	h.roster.Change(s.id, func(e *roster.Entry) { e.Said, e.Load.LastSeen = state, time.Now() })
	h.dispatch(s)
}

// worker is a session as its tasks know it.
type worker Session

func (s *Session) worker() *worker { return (*worker)(s) }

// Ready implements [task.Inbox].
func (w *worker) Ready(r *task.Reader) { w.inbox.push(r) }

// Features implements [task.Worker].
func (w *worker) Features() core.Features {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.card.Features
}

// agentID returns who the session is as an agent, or "".
func (s *Session) agentID() core.AgentID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.card.ID
}

// Close ends the session for the reason: what it works on fails as unreachable or
// goes to another agent, what it asked is cancelled unless it was to be kept. Next
// returns the reason. Whoever waits for the agent is told its message, the log its
// hidden cause. A second Close does nothing.
func (s *Session) Close(reason *core.Fault) {
	for _, l := range s.close(reason) {
		l.job.End(core.Failed{Fault: l.why})
	}
}

// orphan is a task that lost its agent and has no other, and why it would fail.
type orphan struct {
	job *job
	why *core.Fault
}

// close ends the session but for the orphans, which another agent may have: they are
// for the caller to end, or to give away.
func (s *Session) close(reason *core.Fault) (left []orphan) {
	h := s.hub
	if reason == nil {
		reason = core.NewFault(core.CodeUnreachable, "the connection ended")
	}
	h.mu.Lock()
	if s.closed {
		h.mu.Unlock()
		return nil
	}
	s.closed = true
	id := s.id // another session may take it from now on, once this one has no work
	if s.expiry != nil {
		s.expiry.Stop()
	}
	delete(h.sessions, s)
	delete(h.everyone, s)
	for thread := range s.follows {
		h.unfollow(s, thread)
	}
	if id != "" { // it keeps its place until its tasks are nobody's, and gets no more
		h.roster.Change(id, func(e *roster.Entry) { e.Said = core.LoadDraining })
	}
	h.topics.Detach(s.subscriber())
	h.takeOffCall(s)
	queue := s.queue
	s.queue = nil
	h.queued(s)
	h.mu.Unlock()
	s.leavePacks(reason)
	h.questions.Leave(s.questionPeer())

	s.mu.Lock()
	work, asked, branches := maps.Clone(s.work), s.opened, s.branches
	s.opened, s.branches = nil, nil
	s.mu.Unlock()
	for b := range branches {
		b.Close(reason)
	}
	if s.trunk != nil {
		s.trunk.mu.Lock()
		delete(s.trunk.branches, s)
		s.trunk.mu.Unlock()
	}

	gone := core.NewFault(core.CodeUnreachable, "agent %s left: %s", id, reason.Message)
	for _, w := range work {
		if again, _ := h.attemptFailed(w.job, s, attempt{sess: s}, core.Failed{Fault: gone}, nil); again && h.route(w.job) != nil { // it may have ended by now
			left = append(left, orphan{w.job, gone})
		}
	}
	h.mu.Lock()
	if s.id != "" {
		h.unseat(s, reason)
	}
	h.mu.Unlock()
	for _, t := range queue {
		if t.To().Reach() == core.ReachAgent {
			t.End(core.Failed{Fault: gone})
		} else if err := h.route(t); err != nil {
			left = append(left, orphan{t, core.AsFault(err)})
		}
	}
	for t, keep := range asked {
		t.Detach(s.worker(), task.Requester, task.Waiter)
		if !keep {
			_ = t.Cancel(s.identity.Principal.ID, "the requester left") // it may have ended by now
		}
	}
	s.views.close()
	s.waits.close()
	s.inbox.end(reason)
	return left
}

// detail tells what a fault hides, for the log.
func detail(f *core.Fault) string {
	var b strings.Builder
	for err := f.Unwrap(); err != nil; err = errors.Unwrap(err) {
		if said := err.Error(); !strings.Contains(b.String(), said) {
			if b.Len() > 0 {
				b.WriteString(": ")
			}
			b.WriteString(said)
		}
	}
	return b.String()
}

// causes returns what the session acts because of: the tasks that it works on, or
// worked on a moment ago. An agent may narrow them to one of its own.
func (s *Session) causes(narrow core.TaskID) ([]cause, error) {
	s = s.root()
	s.mu.Lock()
	defer s.mu.Unlock()
	if narrow != "" {
		w := s.work[narrow]
		if w == nil {
			return nil, core.NewFault(core.CodeNotAuthorized, "you do not work on task %s: name one of your own as the cause, or none", narrow)
		}
		return []cause{{task: narrow, chain: w.job.Chain()}}, nil
	}
	var all []cause
	for id, w := range s.work {
		all = append(all, cause{task: id, chain: w.job.Chain()})
	}
	if len(all) == 0 && s.last.task != "" && time.Now().Before(s.until) {
		all = append(all, s.last)
	}
	slices.SortFunc(all, func(a, b cause) int {
		return cmp.Or(cmp.Compare(b.chain.Hops, a.chain.Hops), cmp.Compare(a.task, b.task))
	})
	return all, nil
}
