package hub

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/recorder"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// Remote is all that the engine knows of others with which it works as one: their agents are in its roster, each with
// the name of its hub, and tasks for these are run there. It is called with the lock of the engine held, and does not
// wait, unless it says otherwise. An engine that is alone has none.
type Remote interface {
	// Attach gives it the engine, before anything else.
	Attach(Port)
	// Ready returns why nothing new may be taken now, nil if it may.
	Ready() error

	// Join makes the id of an agent that is about to join that of a connection everywhere. It waits, without the lock, and
	// returns a conflict Fault if another connection keeps the id.
	Join(ctx context.Context, e roster.Entry, number uint64, by core.Principal) error
	// Agent says that an agent of a connection has joined or changed; with nil, that it has left or will not join.
	Agent(id core.AgentID, number uint64, by core.Principal, e *roster.Entry)

	// Open passes a task that was opened here to where it is run: see [Session.Adopt].
	Open(to string, o Opening) error
	// Do has a command executed where its task is run, and waits for what is said there, without the lock. A cancel, and
	// any command once ctx has ended, is only passed on. from is where it came from, "" for a client of this engine.
	Do(ctx context.Context, c core.Call, t *task.Task, from string) error
	// Find returns a task that is not in memory, wherever it is. It waits, without the lock. It returns the Faults of
	// [Hub.Task], and an unreachable one while nothing can be said.
	Find(ctx context.Context, id core.TaskID) (*task.Task, error)
	// Place has a task that no agent here works on run elsewhere: see [task.Task.Leave]. What becomes of it is said by
	// [Port.Placed] or [Port.Unplaced].
	Place(t *task.Task, p Placement) error

	// Knows reports whether all is known here of a thread that others know, and Gather makes it so, as far as these
	// answer: it waits, without the lock, and reports whether all have.
	Knows(id core.ThreadID) bool
	Gather(ctx context.Context, id core.ThreadID) bool
}

// Opening is a task that was opened at one hub and that another one is to run.
type Opening struct {
	// Opened is its first event.
	Opened core.Event
	// From is the requester, with the rights that its credential gives.
	From core.Principal
	// Keep lets the task continue when the hub that opened it is gone. Private delivers a notice
	// to its addressee alone.
	Keep, Private bool
}

// Placement says where a task goes, and what of it is not in its events.
type Placement struct {
	To   string
	From core.Principal
	// Keep lets the task continue when the hub that opened it is gone. Opener is the name of that hub, "" for this one.
	Keep   bool
	Opener string
	// Tried are the agents that have failed.
	Tried []core.AgentID
}

// MostTransfers bounds how often a task goes to another hub: they may believe of each other that an agent is there.
const MostTransfers = 8

// PartPrincipal asks other hubs for what this one shows its readers by their rights.
var PartPrincipal = core.Principal{ID: "hub", Operator: true, Component: true}

// OpenedTask is a task that was opened.
type OpenedTask struct {
	Task   core.TaskID   `json:"task"`
	Thread core.ThreadID `json:"thread,omitempty"` // "" for a notice; the task itself if it is alone there
}

// OpenedNews tells others of a task that this engine runs.
const OpenedNews rpc.News[OpenedTask] = "task.opened"

// AdoptedMethod asks for whether a task that was sent before has come.
const AdoptedMethod rpc.Method[core.TaskID, bool] = "task.adopted"

// Port is an engine as its [Remote] has it. The Locker is the lock of the engine; callers of its methods hold it unless
// they say otherwise.
type Port struct {
	sync.Locker
	Tasks    *task.Store
	Roster   *roster.Roster
	Threads  *thread.Book
	Index    *thread.Index
	Recorder *recorder.Recorder
	Limits   Limits
	// Redact is that of [Options].
	Redact func() *redact.Redactor
	// Expected are tasks that were opened elsewhere and that somebody here is to be shown, with who has told of them:
	// see Show.
	Expected map[core.TaskID]string

	h *Hub
}

func (h *Hub) port() Port {
	return Port{
		Locker: &h.mu, Tasks: h.tasks, Roster: h.roster, Threads: h.threads, Index: h.index, Recorder: h.recorder,
		Limits: h.limits, Redact: h.redact, Expected: h.expected, h: h,
	}
}

// Host returns what tasks need, for a [task.Store] of more of them.
func (p Port) Host() task.Host { return host{p.h} }

// Count is [Hub.Count]. It needs no lock.
func (p Port) Count(name string) { p.h.Count(name) }

// Go runs f until the engine stops, which waits for it: then its context has ended. It is called without the lock.
func (p Port) Go(f func(context.Context)) {
	p.Lock()
	stopped := p.h.ctx.Err() != nil
	if !stopped {
		p.h.background.Go(func() { f(p.h.ctx) })
	}
	p.Unlock()
	if stopped {
		f(p.h.ctx)
	}
}

// Here finds a task in memory or in the journal of this engine. It waits, without the lock, and returns the errors of
// [task.Store.Find].
func (p Port) Here(ctx context.Context, id core.TaskID) (*task.Task, error) {
	return p.h.findHere(ctx, id)
}

// CanRecord returns why nothing new may be taken. It is called without the lock.
func (p Port) CanRecord() error { return p.h.canRecord() }

// About returns the task that a command is about, if that is here; nil for a command that is about none. It is called
// without the lock.
func (p Port) About(ctx context.Context, c core.Command) (*task.Task, error) {
	t, _, err := p.h.object(ctx, c, false)
	return t, err
}

// TakesNothing reports whether the engine takes nothing new.
func (p Port) TakesNothing() bool { return p.h.end.reason != "" }

// Coming says how many tasks are on their way here: the engine is not idle before they have come.
func (p Port) Coming(n int) {
	p.h.coming = n
	p.h.noteIdle()
}

// Cut tells the [CutObserver] of the ends among records that were stored. It is called without the lock.
func (p Port) Cut(stored []journal.Record) { p.h.tellCut(stored) }

// ThreadBytes is how many bytes of turns are kept of a thread.
func (p Port) ThreadBytes() int { return p.h.threadBytes() }

// PeerUp and PeerGone say that another engine has come, or has gone. What PeerGone returns is called without the lock.
func (p Port) PeerUp(name string) {
	h := p.h
	h.tellNewest(name)
	h.questions.HubUp(name)
	h.tellSpent(name)
	h.tellSettings(name)
	h.packsUp(name)
	h.topics.HubUp(name)
}

// PeerGone is described at PeerUp.
func (p Port) PeerGone(name string) (after func()) {
	h := p.h
	h.untellSpent(name)
	h.packsGone(name)
	h.topics.HubGone(name)
	notices := h.noticesGone(name)
	return func() {
		h.questions.HubGone(name) // tasks may say how a question ended
		for _, notice := range notices {
			h.endNotice(notice, false)
		}
	}
}

// SessionOf returns the latest session that stands for another engine; nil if there is none.
func (p Port) SessionOf(name string) (latest *Session) {
	for s := range p.h.sessions {
		if s.identity.Hub == name && !s.closed && (latest == nil || s.number > latest.number) {
			latest = s
		}
	}
	return latest
}

// NewSession returns a session of the engine itself, which nothing closes.
func (p Port) NewSession(i Identity) *Session { return newSession(p.h, i) }

// IsAsked reports whether a task that is run elsewhere was opened here.
func (p Port) IsAsked(id core.TaskID) bool { return p.h.asked[id] != nil }

// Began notes a task of another engine in its thread, and reports whether somebody here is to be shown it.
func (p Port) Began(in core.ThreadID, id core.TaskID) bool {
	p.h.begins(in, id, thread.Unknown)
	return p.h.followers.wake(in) || len(p.h.watchers) > 0 || p.h.broadcast != nil
}

// Show shows a task that is run elsewhere to those who watch it.
func (p Port) Show(t *task.Task) {
	h := p.h
	for w := range h.watchers {
		w.viewOnce(t, nil)
	}
	if h.broadcast != nil {
		h.broadcast.opened(t)
	}
	if t.IsTurn() {
		h.followers.opened(t, nil)
	}
}

// Misses has those who read all tasks look for some of which this engine was not told.
func (p Port) Misses() {
	for s := range p.h.sessions {
		if f := s.feed.Load(); f != nil {
			f.misses.Store(true)
			s.inbox.rouse()
		}
	}
	for s := range p.h.watchers {
		p.h.watchRunning(s)
	}
}

// RemoteEnded lets go of a task that was run elsewhere and has its end. It is called without the lock.
func (p Port) RemoteEnded(t *task.Task) {
	h := p.h
	h.mu.Lock()
	opener := h.asked[t.ID()]
	delete(h.asked, t.ID())
	h.returned(t)
	h.mu.Unlock()
	if opener != nil {
		opener.mu.Lock()
		delete(opener.opened, t)
		opener.mu.Unlock()
	}
	h.tasks.Retain(t)
}

// AgentSeen adds an agent of another engine, or replaces what is known of it. It is called without the lock.
func (p Port) AgentSeen(e roster.Entry) {
	h := p.h
	h.mu.Lock()
	h.roster.Put(e)
	waiting := len(h.orphans[e.ID]) > 0
	h.mu.Unlock()
	if waiting {
		h.seek(e.ID, nil)
	}
}

// GiveUp closes the connection of an agent that has come to another engine for a principal, if it has to give its id up
// there: always if it must. It reports whether the agent has left; a connection with a higher
// number is another one. It waits, without the lock, for the older connection as [Session.Take] does; said is false if ctx ends before.
func (p Port) GiveUp(ctx context.Context, id core.AgentID, number uint64, by core.Principal, must bool) (left, said bool) {
	h := p.h
	h.mu.Lock()
	s := sessionOf(h.roster.Member(id))
	if s == nil || s.number > number {
		h.mu.Unlock()
		return true, true
	}
	gone := s.left
	h.mu.Unlock()
	if !must {
		if keeps, err := h.yields(ctx, s, by); err != nil || keeps {
			return false, true
		}
	}
	h.leaveBehind(s, id)
	select {
	case <-gone:
		return true, true
	case <-ctx.Done():
		return false, false
	}
}

// Placed says that a task is run elsewhere now: see [Remote.Place].
func (p Port) Placed(t *task.Task) {
	h := p.h
	j := h.jobs[t.ID()]
	if j == nil {
		return
	}
	j.opener.mu.Lock()
	if j.opener.identity.Hub != "" {
		delete(j.opener.opened, t) // who runs it has it for that hub
	} else {
		h.asked[t.ID()] = j.opener
	}
	j.opener.mu.Unlock()
	delete(h.jobs, t.ID())
	h.notPlacing(t.ID())
	h.noteIdle()
}

// Unplaced says that one does not take a task: it goes elsewhere, or ends. It is called without the lock.
func (p Port) Unplaced(t *task.Task, by string) {
	h := p.h
	h.mu.Lock()
	j, none := h.jobs[t.ID()], error(nil)
	if j != nil {
		h.notPlacing(t.ID())
		h.stays(j, by)
		none = h.place(j, j.why)
	}
	h.mu.Unlock()
	if none != nil {
		j.End(core.Failed{Fault: j.why})
	}
}

// Resumption says of a task that this engine runs from now on what is not in its events.
type Resumption struct {
	From  core.Principal
	Tried []core.AgentID
	// Opener stands for its requester, unless a session here has opened it. Keep lets the task continue without it.
	Opener *Session
	Keep   bool
	// Stored is the number up to which its events are stored.
	Stored uint64
}

// Resume makes a task that was run elsewhere one of this engine: see [task.Store.Arrive]. Continue gives it to an agent.
func (p Port) Resume(t *task.Task, from Resumption) {
	h := p.h
	j := &job{Task: t, asker: &from.From}
	j.tryAll(from.Tried)
	opener := h.asked[t.ID()]
	delete(h.asked, t.ID())
	if j.opener = opener; opener == nil {
		j.opener = from.Opener
	}
	h.jobs[t.ID()] = j
	h.recorder.Continue(t, from.Stored)
	if opener == nil {
		h.retain(j.opener, j, from.Keep)
	}
}

// Continue gives a task to an agent: of this engine if it was chosen for that, else of any. It ends for the reason if
// there is none. It is called without the lock.
func (p Port) Continue(t *task.Task, why *core.Fault, chosen bool) {
	h := p.h
	h.mu.Lock()
	j := h.jobs[t.ID()]
	h.mu.Unlock()
	if j != nil && (!chosen || h.route(j) != nil) {
		h.passOn(j, why)
	}
}

// HasAgentFor reports whether some agent may have a task.
func (p Port) HasAgentFor(t *task.Task, from core.Principal, tried []core.AgentID, opener *Session) bool {
	j := &job{Task: t, opener: opener, asker: &from}
	j.tryAll(tried)
	c := p.h.choose(j, true)
	return c.now != nil || c.later != nil || c.hub != ""
}

// Own makes a task that was opened here and run elsewhere one of this engine, which has its end: see
// [task.Task.TakeBack]. Finish, without the lock, does what follows from that.
func (p Port) Own(t *task.Task, opener *Session) {
	h := p.h
	j := &job{Task: t, opener: h.asked[t.ID()]}
	if j.opener == nil {
		j.opener = opener
	}
	h.recorder.Record(t)
	delete(h.asked, t.ID())
	h.jobs[t.ID()] = j
	h.tellOpened(t)
}

// Finish is described at Own.
func (p Port) Finish(t *task.Task) {
	p.Lock()
	j := p.h.jobs[t.ID()]
	p.Unlock()
	if j != nil {
		p.h.ended(j)
	}
}
