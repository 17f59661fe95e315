package coretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// NewHub returns a hub for a test. At the end of the test it closes the hub and checks the
// promises: see [Promises].
func NewHub(t testing.TB, opts hub.Options) *hub.Hub {
	t.Helper()
	p := Watch(&opts)
	h := hub.New(opts)
	p.Read(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := h.Close(ctx, "the test is over"); err != nil {
			t.Errorf("closing the hub: got %v, want no error", err)
		}
		for _, broken := range p.Broken() {
			t.Error(broken)
		}
	})
	return h
}

// Promises checks the promises of a hub. It is the hub's Observer, and with [Promises.Read]
// a reader of all its tasks as well. Tests that start a hub without [NewHub] call [Watch]
// before, and Broken once the hub is closed.
type Promises struct {
	limits  hub.Limits
	index   int         // of the hub in its cluster
	since   core.TaskID // all tasks of this life are greater, whatever the clock does
	journal journal.Journal
	next    hub.Observer
	redact  func() *redact.Redactor // may be nil

	eager, idle *reading
	refused     bool
	clustered   bool
	alone       *hub.Hub // the hub that is read, unless it is one of a cluster

	mu     sync.Mutex
	broken []string
	agents map[core.AgentID]core.Card
	tasks  map[core.TaskID]*history
	// working has the tasks that each agent works on.
	working map[core.AgentID]map[core.TaskID]struct{}
}

type history struct {
	account
	opened   core.Opened
	began    time.Time
	recorded uint64
	ends     int
	ended    time.Time
	unread   bool // it had ended before anybody read
	agent    core.AgentID
	// forgotten says that it was refused and is not recorded.
	forgotten bool
	// moved says that another hub has a part of it.
	moved bool
	// asks are the questions that are not settled.
	asks []string
	// waited says that people were waited for, in it or in a task below, which moves a default deadline.
	waited bool
}

// Watch adds a checker of the promises to the options of a hub, before the Observer that is
// already set.
func Watch(opts *hub.Options) *Promises {
	if opts.Journal == nil {
		const century = 100 * 365 * 24 * time.Hour // fake time passes quickly
		opts.Journal = journal.NewMemory(journal.Retention{Age: century})
	}
	index := 0
	if opts.Node != nil {
		index = opts.Node.Index()
	}
	p := &Promises{
		clustered: opts.Remote != nil,
		limits:    opts.Limits.WithDefaults(), index: index, since: core.TaskID(core.NewID()), journal: opts.Journal, next: opts.Observer, redact: opts.Redact,
		agents: map[core.AgentID]core.Card{}, tasks: map[core.TaskID]*history{},
		working: map[core.AgentID]map[core.TaskID]struct{}{},
	}
	opts.Observer = p
	return p
}

func (p *Promises) breaks(promise string, task core.TaskID, format string, args ...any) {
	p.broken = append(p.broken, fmt.Sprintf("promise %s is broken: task %s: %s", promise, task, fmt.Sprintf(format, args...)))
}

// Joined implements hub.Observer.
func (p *Promises) Joined(c core.Card) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agents[c.ID] = c
	if p.next != nil {
		p.next.Joined(c)
	}
}

// Left implements hub.Observer.
func (p *Promises) Left(id core.AgentID, onlyByID bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.agents, id)
	for task := range p.working[id] {
		p.breaks("P8", task, "agent %s has left and still has it", id)
	}
	if p.next != nil {
		p.next.Left(id, onlyByID)
	}
}

// Appended implements hub.Observer.
func (p *Promises) Appended(id core.TaskID, e core.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tasks[id]
	if t == nil {
		t = &history{}
		p.tasks[id] = t
	}
	if t.ends > 0 {
		p.breaks("P1", id, "%s came after the end", e.Body.Kind())
	}
	if t.last == 0 && e.Seq > 1 {
		t.moved = true
	}
	if t.moved && e.Seq > t.last {
		t.last = e.Seq - 1
	}
	if hole := t.add(e); hole != "" {
		p.breaks("P2", id, "%s", hole)
	}
	switch b := e.Body.(type) {
	case core.Opened:
		t.opened, t.began = b, e.At
		if b.From.ID == "" {
			p.breaks("P7", id, "nobody is named as its sender")
		}
		p.caused(id, b)
	case core.Assigned:
		p.assigned(id, t, b)
	case core.ApprovalRequested:
		p.waits(id)
	case core.QuestionAsked:
		t.asks = append(t.asks, b.ID)
		p.waits(id)
	case core.QuestionAnswered:
		if i := slices.Index(t.asks, b.ID); i >= 0 {
			t.asks = slices.Delete(t.asks, i, i+1)
		} else if !t.moved {
			p.breaks("P1", id, "question %s was settled and is not open", b.ID)
		}
	case core.Retrying:
		delete(p.working[t.agent], id)
		t.agent = "" // no agent has it until it is assigned again
		t.moved = t.moved || b.Hub != ""
	case core.Injected:
		// The agent may have just left.
		if c, here := p.agents[t.agent]; here && !c.Features.Has(core.FeatureInjection) {
			p.breaks("P8", id, "agent %s got an injection and did not declare that it takes any", t.agent)
		}
	}
	if e.Body.Kind().Ends() {
		t.ends++
		if len(t.asks) > 0 {
			p.breaks("P1", id, "questions %v are open at its end", t.asks)
		}
		t.ended = e.At
		delete(p.working[t.agent], id)
		// Outside a synctest bubble the race detector makes everything slow.
		const slack = 30 * time.Second
		if late := e.At.Sub(p.deadline(t)); late > p.limits.CancelGrace+slack && !t.moved {
			p.breaks("P9", id, "it ended %s after its deadline", late)
		}
	}
	if p.next != nil {
		p.next.Appended(id, e)
	}
}

// waits notes that a task waits for people, and with it those above it.
func (p *Promises) waits(id core.TaskID) {
	for t := p.tasks[id]; t != nil; t = p.tasks[t.opened.Request.Cause] {
		t.waited = true
	}
}

// deadline returns when a task has to end at the latest.
func (p *Promises) deadline(t *history) time.Time {
	if t.opened.DefaultDeadline && t.waited {
		return t.began.Add(p.limits.MaxDeadline)
	}
	return t.opened.Request.Deadline
}

// caused checks the hops of a task against those of its cause: no chain starts again at
// zero. It has more hops than its cause demands if it came from another hub.
func (p *Promises) caused(id core.TaskID, b core.Opened) {
	want := 0
	if cause := b.Request.Cause; cause != "" {
		above := p.tasks[cause]
		if task.OwnerOf(cause) != p.index || cause < p.since {
			return // it began at another hub, or at this one in a former life
		}
		if above == nil {
			p.breaks("P10", id, "its cause %s never was", cause)
			return
		}
		want = above.opened.Hops + 1
	}
	if b.Hops < want {
		p.breaks("P10", id, "got %d hops below the cause %q, want %d or more", b.Hops, b.Request.Cause, want)
	}
}

func (p *Promises) assigned(id core.TaskID, t *history, b core.Assigned) {
	t.agent = b.Agent
	if t.opened.Hops > p.limits.Hops {
		p.breaks("P10", id, "got %d hops, want at most %d", t.opened.Hops, p.limits.Hops)
	}
	if t.opened.Request.Intent == core.IntentNotify {
		return // no agent works on it; its hops are bound
	}
	if slices.Contains(t.opened.Chain, b.Agent) {
		p.breaks("P10", id, "agent %s already works above it: %v", b.Agent, t.opened.Chain)
	}
	if p.working[b.Agent] == nil {
		p.working[b.Agent] = map[core.TaskID]struct{}{}
	}
	p.working[b.Agent][id] = struct{}{}
	if running, most := len(p.working[b.Agent]), max(1, p.agents[b.Agent].MaxConcurrent); running > most {
		p.breaks("P8", id, "agent %s runs %d tasks, it said %d", b.Agent, running, most)
	}
}

// Recorded implements hub.Observer.
func (p *Promises) Recorded(id core.TaskID, seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tasks[id]
	switch {
	case t == nil:
		p.breaks("P4", id, "it was recorded and never happened")
	case seq > t.last:
		p.breaks("P4", id, "recorded up to %d, it is at %d", seq, t.last)
	default:
		t.recorded = seq
	}
	if p.next != nil {
		p.next.Recorded(id, seq)
	}
}

// Forgotten implements hub.ForgottenObserver.
func (p *Promises) Forgotten(id core.TaskID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tasks[id]
	if t == nil || t.ends != 1 || t.last != 2 {
		p.breaks("P5", id, "it is not recorded, and was not only refused: %+v", t)
		return
	}
	t.forgotten = true
}

// Cut implements hub.CutObserver.
func (p *Promises) Cut(id core.TaskID, end core.Event) {
	if o, ok := p.next.(hub.CutObserver); ok {
		o.Cut(id, end)
	}
}

// JournalRefused says that the journal has refused the latest records: it must then have the
// beginning of each task.
func (p *Promises) JournalRefused() { p.refused = true }

// Broken returns the broken promises, one on each line. It is called once the hub is closed:
// every task must have ended, and the journal and all readers must have every event.
func (p *Promises) Broken() []string {
	p.idle.catchUp()
	p.eager.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alone != nil {
		for _, q := range p.alone.Questions(core.Principal{ID: "checker", Operator: true}) { // also of calls without a task
			p.breaks("P1", "", "question %s of agent %s is open though the hub is closed", q.ID, q.Agent)
		}
	}
	for id, t := range p.tasks {
		if t.moved {
			continue // the cluster has the whole of it
		}
		if t.ends != 1 {
			p.breaks("P1", id, "got %d ends, want 1", t.ends)
		}
		if t.forgotten {
			continue
		}
		if t.recorded != t.last && !p.refused {
			p.breaks("P5", id, "the journal was told up to %d, want %d", t.recorded, t.last)
			continue
		}
		p.compareJournal(id, t)
		p.compareReaders(id, t)
	}
	return p.broken
}

func (p *Promises) compareJournal(id core.TaskID, t *history) {
	events, err := p.journal.Read(context.Background(), id, 0, 0)
	var gap *journal.GapError
	switch {
	case errors.As(err, &gap):
		return // retention dropped a part, and the journal says so
	case errors.Is(err, journal.ErrUnknown) && p.refused:
		return
	case err != nil:
		p.breaks("P5", id, "reading the journal: %v", err)
		return
	}
	var kept account
	for _, e := range events {
		if hole := kept.add(e); hole != "" {
			p.breaks("P2", id, "in the journal: %s", hole)
		}
	}
	log := &t.account
	if p.refused {
		log = log.upTo(kept.last)
	}
	if p.redact != nil {
		log = log.redacted(p.redact())
	}
	for _, d := range kept.differs(log) {
		p.breaks(d.promise, id, "in the journal: %s", d.how)
	}
}
