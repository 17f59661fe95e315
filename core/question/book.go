package question

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Options make a Book.
type Options struct {
	// Limit is how many questions may be open at once, and how many settled ones are
	// remembered.
	Limit int
	// MayAnswer reports whether the principal may answer what the agent asks in the work of the
	// owner; of an unknown owner if that is zero. It must not call the Book.
	MayAnswer func(p core.Principal, agent core.AgentID, owner core.Principal) bool
	// Schema compiles the schema of a form, to check what answers it; nil checks nothing. Where it fails, who
	// asks has to check.
	Schema func(source []byte) (check func([]byte) error, err error)
	// Settled is told how a question that was asked here ended, before its asker is, and of which of its tasks
	// have not ended; nil for none. It is called without the lock of the Book.
	Settled func(q Question, tasks []core.TaskID, o Outcome, fault *core.Fault)
	// Tell tells the Book of another hub, once and in order, or that hub is reported as gone. It must
	// not wait and must not call the Book. nil for a hub alone.
	Tell func(hub string, w Word)
}

// Book holds the open questions and the views that they are shown to. It is safe for
// concurrent use.
type Book struct {
	opts Options

	mu      sync.Mutex
	open    map[string]*pending
	own     int                 // how many of those were asked here
	hubs    map[string]struct{} // the others of the cluster that are up
	byTask  map[core.TaskID][]*pending
	views   map[Peer]map[any]View
	settled *lru.Cache[string, struct{}] // the latest settled ones
	readers *lru.Cache[string, reader]   // those who read the list
	ended   []ended                      // those of which unlock tells
	stopped *core.Fault
}

// ended is a question that was asked here and is settled.
type ended struct {
	*pending
	tasks   []core.TaskID
	outcome Outcome
	fault   *core.Fault
}

// NewBook makes a Book. Stop ends it.
func NewBook(opts Options) *Book {
	return &Book{
		opts: opts, open: map[string]*pending{}, hubs: map[string]struct{}{}, byTask: map[core.TaskID][]*pending{}, views: map[Peer]map[any]View{},
		settled: lru.New(lru.Options[string, struct{}]{Count: opts.Limit}), readers: newReaders(),
	}
}

// Request is a question, its asker and its tasks.
type Request struct {
	// Question is what is asked. Put sets its Tasks.
	Question Question
	// Asker is told of the outcome, with Ref.
	Asker Peer
	Ref   string
	// Tasks are those that it is asked for; none if the asker has none.
	Tasks []Task
	// Call is the thread and the principal of the call for which a question is asked that has no
	// tasks; zero for none. That principal may always answer it.
	Call Source
}

// Task is a task that a question is asked for.
type Task struct {
	ID core.TaskID
	// Sources are the threads of the task and of its causes, and Above is the first of these that
	// this hub does not have, if any.
	Sources []Source
	Above   core.TaskID
	// Working reports whether the asker still works on the task. It is called without
	// the lock of the Book.
	Working func() bool
}

// Source is a thread, and the principal that asked in it.
type Source struct {
	Thread core.ThreadID  `json:"thread,omitempty"`
	From   core.Principal `json:"from"`
}

// pending is an open question. Book.mu guards it.
type pending struct {
	Question
	home    string // the hub where it was asked; "" for this one
	asker   Peer   // of one that was asked here
	ref     string
	sources []Source
	above   []core.TaskID            // causes of which another hub may know the threads
	bound   map[core.TaskID]struct{} // the tasks that have not ended
	// toAgentViews is set when no view showed its threads: it is shown to all views of
	// conversations with the agent.
	toAgentViews bool
	shown        map[place]struct{}
	timer        *time.Timer // of one that was asked here
	// awaits are the hubs that have not said whom they have for it, and audience is what the others
	// said.
	awaits   map[string]struct{}
	audience audience
}

// Put opens a question and tells the asker of the outcome later. It returns an unsupported
// Fault where no view can show the question and nobody who may answer it reads the list, an
// overloaded Fault at the limit, a cancelled Fault where all of its tasks have ended, and the reason
// of Stop. In a cluster the asker gets the first of these once all hubs have said so. The caller
// checks afterwards that the asker has not left: see the package documentation.
func (b *Book) Put(r Request) error {
	q := &pending{Question: r.Question, asker: r.Asker, ref: r.Ref, bound: map[core.TaskID]struct{}{}, shown: map[place]struct{}{}}
	q.Tasks = []core.TaskID{}
	if r.Call.Thread != "" {
		q.sources = []Source{r.Call}
	}
	b.bind(q, r.Tasks)
	for _, t := range r.Tasks {
		if t.Working() {
			q.Tasks = append(q.Tasks, t.ID)
			q.sources = append(q.sources, t.Sources...)
			if t.Above != "" {
				q.above = append(q.above, t.Above)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range q.bound {
		if !slices.Contains(q.Tasks, id) {
			b.unbind(q, id)
		}
	}
	if err := b.admit(q, len(r.Tasks) > 0); err != nil {
		b.unbindAll(q)
		return err
	}
	b.open[q.ID] = q
	b.own++
	b.ask(q)
	id := q.ID // not the question: the runtime keeps timers for a while that were stopped
	q.timer = time.AfterFunc(time.Until(q.Until), func() { b.timeout(id) })
	return nil
}

// admit shows a question to its views. Callers hold mu.
func (b *Book) admit(q *pending, forTasks bool) error {
	switch {
	case b.stopped != nil:
		return b.stopped
	case forTasks && len(q.bound) == 0:
		return core.NewFault(core.CodeCancelled, "the task has ended")
	case b.own >= b.opts.Limit:
		return core.NewFault(core.CodeOverloaded, "%d questions wait for people: ask again later", b.own)
	}
	if b.show(q); len(q.shown) > 0 || len(b.hubs) > 0 { // the other hubs say whom they have
		return nil
	}
	if b.showWider(q); len(q.shown) > 0 || b.isAttended(q) {
		return nil
	}
	return unattended(q.Agent)
}

func unattended(agent core.AgentID) *core.Fault {
	return core.NewFault(core.CodeUnsupported, "failed to send question: no connected clients for agent %s", agent)
}

// show shows a question to the views that it is for. Callers hold mu.
func (b *Book) show(q *pending) {
	for p, views := range b.views {
		for tag, v := range views {
			if q.isFor(v, b.opts.MayAnswer) {
				q.show(place{p, tag})
			}
		}
	}
}

func (b *Book) bind(q *pending, tasks []Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range tasks {
		q.bound[t.ID] = struct{}{}
		b.byTask[t.ID] = append(b.byTask[t.ID], q)
	}
}

// unbind separates a question from a task. Callers hold mu.
func (b *Book) unbind(q *pending, id core.TaskID) {
	delete(q.bound, id)
	left := slices.DeleteFunc(b.byTask[id], func(o *pending) bool { return o == q })
	if b.byTask[id] = left; len(left) == 0 {
		delete(b.byTask, id)
	}
}

// unbindAll separates a question from all its tasks. Callers hold mu.
func (b *Book) unbindAll(q *pending) {
	for id := range q.bound {
		b.unbind(q, id)
	}
}

// TaskEnded settles the questions that were asked for the task and for no other running
// one. It is called when a task has ended or was taken from its agent.
func (b *Book) TaskEnded(id core.TaskID) {
	b.mu.Lock()
	defer b.unlock()
	bound := b.byTask[id]
	delete(b.byTask, id)
	for _, q := range bound {
		if delete(q.bound, id); len(q.bound) == 0 {
			b.settle(q, Outcome{Reason: core.QuestionTaskEnded}, nil)
		}
	}
}

// Leave removes the views of a peer, and settles the questions that it asked.
func (b *Book) Leave(p Peer) {
	b.mu.Lock()
	defer b.unlock()
	for tag := range b.views[p] {
		b.unwatch(place{p, tag})
	}
	for _, q := range b.selected(func(q *pending) bool { return q.home == "" && q.asker == p }) {
		b.settle(q, Outcome{Reason: core.QuestionLeft}, nil)
	}
}

// Stop settles every question, tells the askers the reason, and refuses new questions with
// it.
func (b *Book) Stop(reason *core.Fault) {
	b.mu.Lock()
	defer b.unlock()
	b.stopped = reason
	for _, q := range b.selected(nil) {
		b.settle(q, Outcome{Reason: core.QuestionLeft}, reason)
	}
}

func (b *Book) timeout(id string) {
	b.mu.Lock()
	defer b.unlock()
	if q := b.open[id]; q != nil {
		b.settle(q, Outcome{Reason: core.QuestionTimedOut}, nil)
	}
}

// settle settles a question, if it is open: it tells every view that shows the question, and unlock the asker.
// Callers hold mu.
func (b *Book) settle(q *pending, o Outcome, fault *core.Fault) {
	if b.open[q.ID] != q {
		return
	}
	delete(b.open, q.ID)
	b.settled.Put(q.ID, struct{}{})
	for at := range q.shown {
		at.peer.Show(Update{Question: q.Question, Tag: at.tag, Outcome: &o})
	}
	if q.home != "" {
		return
	}
	b.own--
	b.ended = append(b.ended, ended{q, slices.Sorted(maps.Keys(q.bound)), o, fault})
	b.unbindAll(q)
	q.timer.Stop()
	b.tell(Word{Settled: &Settled{q.ID, o, o.By}})
}

// unlock unlocks the Book, and then tells how questions ended while it was locked: who is told may hold a task
// whose end waits for the Book.
func (b *Book) unlock() {
	ended := b.ended
	b.ended = nil
	b.mu.Unlock()
	for _, q := range ended {
		if b.opts.Settled != nil {
			b.opts.Settled(q.Question, q.tasks, q.outcome, q.fault)
		}
		q.asker.Settled(q.ref, q.outcome, q.fault)
	}
}

// selected returns the open questions that match, or all, the longest waiting first.
// Callers hold mu.
func (b *Book) selected(match func(*pending) bool) []*pending {
	var all []*pending
	for _, q := range b.open {
		if match == nil || match(q) {
			all = append(all, q)
		}
	}
	slices.SortFunc(all, func(q, o *pending) int { return cmp.Or(q.Since.Compare(o.Since), cmp.Compare(q.ID, o.ID)) })
	return all
}

// mayAnswer reports whether a principal may read and answer a question: it may read a task
// that the question was asked for, made the call for which it was, was shown it, or is an operator. Callers hold mu.
func (b *Book) mayAnswer(p core.Principal, q *pending) bool {
	if q.isOfCall() && q.sources[0].From.ID == p.ID {
		return true
	}
	for _, src := range q.sources {
		if b.opts.MayAnswer(p, q.Agent, src.From) {
			return true
		}
	}
	for at := range q.shown {
		if b.views[at.peer][at.tag].For.ID == p.ID {
			return true
		}
	}
	return b.opts.MayAnswer(p, q.Agent, core.Principal{}) // it may answer everything
}

// List returns the open questions that the principal may answer, the longest waiting first; of a thread those
// that were asked for its tasks, or for what these have caused.
func (b *Book) List(p core.Principal, thread core.ThreadID) []Question {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []Question{}
	for _, q := range b.selected(func(q *pending) bool { return (thread == "" || q.isIn(thread)) && b.mayAnswer(p, q) }) {
		all = append(all, q.Question)
	}
	return all
}

// Answer answers a question as the principal. The first answer counts. It returns a
// conflict Fault for a question that is settled, an unknown_task Fault for one that was
// never asked, a not_authorized Fault for one that the principal may not read, and an
// invalid or too_large Fault for an answer that does not fit, which leaves the question open. One of another
// hub is answered there: see [Book.Home].
func (b *Book) Answer(by core.Principal, r core.Reply) (Outcome, error) {
	b.mu.Lock()
	defer b.unlock()
	q, o, err := b.check(by, r, false)
	if err == nil {
		b.settle(q, o, nil)
	}
	return o, err
}

// isInWorkOf reports whether it is asked in a task of the principal.
func (q *pending) isInWorkOf(p core.Principal) bool {
	return slices.ContainsFunc(q.sources, func(s Source) bool { return s.From.ID == p.ID })
}

// check returns the question that an answer is for, and how the answer ends it. judged says that the
// principal may answer it. Callers hold mu.
func (b *Book) check(by core.Principal, r core.Reply, judged bool) (q *pending, o Outcome, err error) {
	id := r.Question
	q = b.open[id]
	_, settled := b.settled.Get(id)
	switch {
	case settled:
		return nil, o, core.NewFault(core.CodeConflict, "question %s has been settled", id)
	case q == nil, !judged && !b.mayAnswer(by, q) && !q.isInWorkOf(by):
		return nil, o, core.NewFault(core.CodeUnknownTask, "no question %q waits for an answer of yours", id) // and who may not know of it learns nothing
	case !judged && !b.mayAnswer(by, q):
		return nil, o, core.NewFault(core.CodeNotAuthorized, "question %s is put to somebody else", id)
	}
	if o, err = q.outcome(r, by); err == nil && o.Content != nil {
		err = b.fits(q, o.Content)
	}
	return q, o, err
}

// fits returns an invalid Fault for a content that does not fit the schema of a question's form.
func (b *Book) fits(q *pending, content json.RawMessage) error {
	if b.opts.Schema == nil {
		return nil
	}
	check, err := b.opts.Schema(q.Form.Schema)
	if err != nil {
		return nil //nolint:nilerr // who asks has to check
	}
	if err := check(content); err != nil {
		return core.NewFault(core.CodeInvalid, "content: %s", err)
	}
	return nil
}
