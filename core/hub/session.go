package hub

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Identity identifies a connection.
type Identity struct {
	Principal core.Principal
	// Dialect is the name of its dialect.
	Dialect string
	// Deadline is how long its requests may take by default; zero means the default of the
	// hub.
	Deadline time.Duration
	// FixedDeadline says that the specification of its dialect fixes that default: it holds as a
	// deadline of the requester does. See [core.Opened].
	FixedDeadline bool
	// Hub is the name of the hub that the session stands for, if that is another one of the cluster:
	// its commands have passed the door there.
	Hub string
	// Keep lets all that it asked continue when the session ends, including its calls of
	// tools.
	Keep bool
	// Checked says that package strictjson has checked all JSON that the dialect passes to
	// the hub, or that the dialect wrote it: the hub does not check it again.
	Checked bool
	// Coalesces says that text and thinking alone are no news to the session: it gets them with the next event of another
	// kind of the task. For those who keep what was said.
	Coalesces bool
	// Frames has the frames of the connection, which the session tells what they became; nil keeps
	// none. A session with Frames is told of one event at a time.
	Frames *frame.Ring
	// Trace is the trace context with which the connection was made: that of tasks for which the
	// requester brings none and that have no cause. One that is malformed counts for nothing.
	Trace core.Trace
}

// JoinOptions describe an agent beyond its card.
type JoinOptions struct {
	// NoticeTasks sends notices to the agent as ordinary tasks whose answer is dropped,
	// instead of beside its tasks. An agent whose card lacks core.FeatureNotices gets none
	// either way.
	NoticeTasks bool
	// Concurrent is how many concurrent tasks the agent gets when neither its card nor an
	// operator says; zero means one.
	Concurrent int
	// MaxTaskTime is how long a task may take with the agent before it fails as if its
	// deadline had come; zero means until the deadline.
	MaxTaskTime time.Duration
	// OnlyByID is for sessions of which only the id is known. Such a session becomes an
	// agent, and is listed, with the first task that is addressed to its id or alias;
	// addresses by capability, by domain and * never reach it. Others may still join with
	// its id, except while it has work, and except other principals where one is
	// authenticated. Joining again without OnlyByID makes it an agent like any other.
	OnlyByID bool
	// ApprovalTimeout is how long the agent waits for a decision on a tool call by the specification
	// of its dialect; zero means Limits.QuestionTimeout, which it never exceeds.
	ApprovalTimeout time.Duration
	// Heartbeats says that the agent's dialect has a heartbeat interval, which an operator
	// may set.
	Heartbeats bool
	// Starting says that the hub runs the agent itself and that it is not ready yet: its
	// tasks wait until [Session.SetChild] says that it is.
	Starting bool
	// Dir is the working directory of an agent that the hub runs itself; "" if it is unknown.
	Dir string
	// Probe asks the peer whether it is alive when another connection wants its id: see
	// [Session.Take]. It returns nil once the peer has answered; ctx has a deadline and is not
	// cancelled. An agent without a Probe counts as alive.
	Probe func(ctx context.Context) error
}

// Session is one connection at the hub: it may ask, answer, or both. Only Next, NextOr,
// Call and Take wait for anything. All methods but Next and NextOr may be called
// concurrently.
type Session struct {
	hub      *Hub
	identity Identity
	inbox    inbox
	views    views
	waits    waits
	told     *told                // nil unless its frames are kept
	feed     atomic.Pointer[Feed] // nil unless it is read by one
	// parent is nil unless the session is a child.
	parent *Session
	// thread is the one that a child calls tools for; "" if that is unknown.
	thread core.ThreadID
	// asksIn is a thread of its own, in which the tools that it calls ask if it works on no task; "" for none.
	asksIn core.ThreadID
	// floor is how many tasks stand above what a child asks, at least: see Below.
	floor int
	// trace is that of what it asks: see InTrace.
	trace core.Trace
	// packCalls is how many calls of packs wait for an answer, those of children included.
	packCalls atomic.Int32

	// number is that of the connection in this hub.
	number uint64

	// Guarded by Hub.mu.
	id      core.AgentID // "" unless it is an agent
	standby core.AgentID // the id with which it joined OnlyByID, or ""
	opts    JoinOptions
	queue   []*job
	busy    *busy // what it said last; nil if it never did
	closed  bool
	refused *core.Fault // why the hub closed it at once; else nil
	leave   func()      // gives back its connection; nil for a child
	// left is closed once the session is no longer an agent.
	left chan struct{}
	// declared is how many tasks at once the agent said it takes; 0 if it said nothing.
	declared int
	expiry   *time.Timer // closes the session; nil if its credential does not expire

	follows table[core.ThreadID, struct{}] // guarded by followers.mu
	registered

	card atomic.Pointer[core.Card] // as limited by its settings; noCard unless it is an agent

	mu     sync.Mutex
	work   table[core.TaskID, *holding]
	opened table[*task.Task, bool] // true if the task continues without the session
	// released says that the session is closed and has let go of what it has opened.
	released bool
	// children are those that are not closed.
	children table[*Session, struct{}]
	last     cause     // the task that it ended last
	until    time.Time // how long that counts as a cause
}

// table is a map that is made with its first entry: most sessions need only one or two of
// theirs.
type table[K comparable, V any] map[K]V

func (t *table[K, V]) put(k K, v V) {
	if *t == nil {
		*t = table[K, V]{}
	}
	(*t)[k] = v
}

// noCard is the card of a session that is no agent.
var noCard core.Card

func newSession(h *Hub, p Identity) *Session {
	p.Trace = p.Trace.Carried()
	s := &Session{hub: h, identity: p, inbox: newInbox(h.memory)}
	s.card.Store(&noCard)
	if p.Frames != nil {
		s.told = &told{delivery: p.Frames.Delivery()}
	}
	return s
}

// Identity returns the identity of the connection.
func (s *Session) Identity() Identity { return s.identity }

// SetLoad records the load that the agent reports: an agent that is overloaded or draining
// gets nothing new until it reports idle or busy.
func (s *Session) SetLoad(state core.LoadState) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	h.roster.Change(s.id, func(e *roster.Entry) { e.Reported, e.Load.LastSeen = state, time.Now() })
	h.dispatch(s)
}

// peer is a session as its tasks, the packs, the questions and the topics see it.
type peer Session

func (s *Session) peer() *peer { return (*peer)(s) }

// Ready implements [task.Inbox].
func (p *peer) Ready(r *task.Reader) bool { return p.inbox.ready(r) }

// Principal implements [task.Inbox].
func (p *peer) Principal() core.Principal {
	who := p.identity.Principal
	who.Dialect = cmp.Or(who.Dialect, p.identity.Dialect)
	return who
}

// Features implements [task.Worker].
func (p *peer) Features() core.Features { return p.card.Load().Features }

// AgentID returns the id of the agent that the session is, or "".
func (s *Session) AgentID() core.AgentID { return s.card.Load().ID }

// Close ends the session for the reason. Its tasks fail as unreachable or go to another
// agent; what it asked is cancelled unless it was to be kept. Next returns the reason;
// requesters see its message, the log also its hidden cause. A second Close does nothing.
func (s *Session) Close(reason *core.Fault) {
	for _, l := range s.close(reason) {
		l.job.End(core.Failed{Fault: l.why})
	}
}

// Rejected returns why the hub closed the session at once, such as for a quota; nil if it did not. A dialect whose
// connection begins with an answer gives it there; the others get it from Next.
func (s *Session) Rejected() *core.Fault {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.refused
}

// ended returns why a closed session does nothing. Callers hold Hub.mu.
func (s *Session) ended() *core.Fault {
	if s.refused != nil {
		return s.refused
	}
	return errEnded
}

var errEnded = core.NewFault(core.CodeUnreachable, "the connection has ended")

// orphan is a task that lost its agent and found no other, and why it would fail.
type orphan struct {
	job *job
	why *core.Fault
}

// close ends the session except for the orphans, which the caller ends or routes again.
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
	id := s.id // another session may get it once this one has no work
	if s.expiry != nil {
		s.expiry.Stop()
	}
	if s.leave != nil {
		s.leave()
	}
	delete(h.sessions, s)
	delete(h.watchers, s)
	if f := s.feed.Load(); f != nil {
		h.leave(f)
	}
	if id != "" { // it stays in the roster until it has no tasks, and gets no more
		h.roster.Change(id, func(e *roster.Entry) { e.Reported = core.LoadDraining })
	}
	h.topics.Detach(s.peer())
	if s.standby != "" {
		h.roster.RemoveStandby(s.standby, s.member())
	}
	queue := s.queue
	s.queue = nil
	h.queueChanged(s)
	h.mu.Unlock()
	s.leavePacks(reason)
	h.questions.Leave(s.peer())
	h.followers.leave(s)
	s.unregisterAll()

	s.mu.Lock()
	work, opened, children := maps.Clone(s.work), s.opened, s.children
	s.opened, s.children, s.released = nil, nil, true
	s.mu.Unlock()
	for b := range children {
		b.Close(reason)
	}
	if s.parent != nil {
		s.parent.mu.Lock()
		delete(s.parent.children, s)
		s.parent.mu.Unlock()
	}

	var gone *core.Fault
	if len(work)+len(queue) > 0 {
		gone = core.NewFault(core.CodeUnreachable, "agent %s left: %s", id, reason.Message)
		left = h.failWork(s, work, gone)
	}
	h.mu.Lock()
	if s.id != "" {
		h.removeAgent(s, reason)
	}
	h.mu.Unlock()
	left = append(left, h.failQueue(queue, gone)...)
	for _, t := range slices.SortedFunc(maps.Keys(opened), func(a, b *task.Task) int { return cmp.Compare(a.ID(), b.ID()) }) {
		t.Detach(s.peer(), task.Requester, task.Waiter)
		if !opened[t] {
			h.cancelLeft(t, s.identity.Principal)
		}
	}
	s.views.close()
	s.waits.close()
	s.inbox.end(reason)
	s.inbox.release()
	return left
}

// cancelLeft cancels a task whose requester has left. It may have ended, or its owner may be gone.
func (h *Hub) cancelLeft(t *task.Task, p core.Principal) {
	const why = "the requester left"
	if t.Cancel(p.ID, why) == nil && t.IsRemote() {
		_ = h.remote.Do(NoWait, core.Call{Principal: p, Command: core.Cancel{Task: t.ID(), Reason: why}}, t, "")
	}
}

// failWork fails the tasks that an agent works on, or gives them to another agent, the oldest
// first. It returns those that found none.
func (h *Hub) failWork(s *Session, work table[core.TaskID, *holding], why *core.Fault) (left []orphan) {
	for _, id := range slices.Sorted(maps.Keys(work)) {
		w := work[id]
		if again, _ := h.attemptFailed(w.job, s, attempt{sess: s}, core.Failed{Fault: why}, nil); again && h.reroute(w.job, why) != nil { // it may have ended
			left = append(left, orphan{w.job, why})
		}
	}
	return left
}

// failQueue fails the tasks that waited for an agent, or gives them to another agent. It
// returns those that found none.
func (h *Hub) failQueue(queue []*job, why *core.Fault) (left []orphan) {
	for _, j := range queue {
		if j.To().Reach() == core.ReachAgent {
			j.End(core.Failed{Fault: why})
		} else if err := h.reroute(j, why); err != nil {
			left = append(left, orphan{j, core.AsFault(err)})
		}
	}
	return left
}

// detail returns the hidden causes of a fault, for the log.
func detail(f *core.Fault) string {
	var b strings.Builder
	for err := f.Unwrap(); err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); !strings.Contains(b.String(), text) {
			if b.Len() > 0 {
				b.WriteString(": ")
			}
			b.WriteString(text)
		}
	}
	return b.String()
}

// Child returns a second session of the same connection, with its own Next. What the child
// asks counts as asked by s: it has the causes and the loop guard of s (promise P10). A
// child is no agent. The caller closes it; it ends with s at the latest.
func (s *Session) Child() *Session {
	return s.child(s.thread, s.identity.Frames)
}

func (s *Session) child(thread core.ThreadID, frames *frame.Ring) *Session {
	h, parent := s.hub, s.root()
	identity := s.identity
	identity.Frames = frames
	b := newSession(h, identity)
	b.parent, b.thread = parent, thread
	b.card.Store(parent.card.Load())
	h.connect(b)
	h.mu.Lock()
	gone := parent.closed
	if !gone && !b.closed {
		parent.mu.Lock()
		parent.children.put(b, struct{}{})
		parent.mu.Unlock()
	}
	h.mu.Unlock()
	if gone {
		b.Close(errEnded)
	}
	return b
}

// ChildFor is [Session.Child] for a part of the agent that works on a thread alone: the calls of
// the child belong to the tasks of that thread; "" for a thread that is unknown. It is over a
// connection of its own, whose frames are kept in frames; nil keeps none.
func (s *Session) ChildFor(thread core.ThreadID, frames *frame.Ring) *Session {
	return s.child(thread, frames)
}

// root returns the session for which s acts: its parent, or itself.
func (s *Session) root() *Session {
	if s.parent != nil {
		return s.parent
	}
	return s
}
