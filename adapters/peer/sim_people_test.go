package peer_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// simTask is a task that a hub has accepted.
type simTask struct {
	name     string
	id       core.TaskID
	number   int
	by       core.Principal
	at       *life // where it was opened
	deadline time.Time
}

// person asks, reads and decides, at one hub after the other.
type person struct {
	name      string
	principal core.Principal
	slow      bool
	at        *life
	sess      *hub.Session
	back      time.Time
	views     []*view
}

// view is what somebody has read of a task.
type view struct {
	task *simTask
	who  string
	// items are the events by sequence number, from 1, without those of which a gap told that they
	// are gone.
	items []item
	ended bool
	// reads is the session that reads it, looks the one that looks for it.
	reads, looks *hub.Session
}

// item is an event in a form that all who tell of it must tell alike; "" for one that was not told.
type item struct {
	text  string
	epoch uint32
	ends  bool
}

// itemsOf returns the items of an event: text may be merged on its way.
func itemsOf(out []item, e core.Event) []item {
	if !e.Mergeable() {
		b, err := e.AppendJSON(nil)
		if err != nil {
			panic(err)
		}
		return append(out, item{string(b), e.Epoch, e.Body.Kind().Ends()})
	}
	for _, p := range core.Unmerge([]core.Event{e}) {
		out = append(out, item{"text " + p.Body.(core.Text).Text, p.Epoch, false})
	}
	return out
}

// cursor returns where to go on.
func (v *view) cursor() core.Cursor {
	n := len(v.items)
	if n == 0 {
		return core.Cursor{}
	}
	return core.Cursor{Epoch: v.items[n-1].epoch, Seq: uint64(n)}
}

// take takes a batch.
func (s *sim) take(v *view, b hub.Batch) {
	if g := b.Gap; g != nil {
		s.note(v.who, " ", v.task.name, " gap ", strconv.FormatUint(g.From, 10), "-", strconv.FormatUint(g.To, 10))
		s.count.Gaps++
		switch n := uint64(len(v.items)); {
		case g.From == n+1 && g.To >= g.From: // it never read those
			for range g.To - n {
				v.items = append(v.items, item{})
			}
		case g.From >= 1 && g.From <= n && g.To >= g.From: // they were never stored
			v.items = v.items[:g.From-1]
		default:
			s.breaks("numbers: %s is at %d of %s and got a gap from %d to %d", v.who, n, v.task.name, g.From, g.To)
		}
	}
	for _, e := range b.Events {
		s.note(v.who, " ", v.task.name, " ", strconv.FormatUint(e.Seq, 10), " ", e.Body.Kind().String())
		if n := uint64(len(v.items)); e.Seq != n+1 {
			s.breaks("numbers: %s is at %d of %s and got %d", v.who, n, v.task.name, e.Seq)
			return
		}
		if v.ended {
			s.breaks("end: %s got %s after the end of %s", v.who, e.Body.Kind(), v.task.name)
		}
		v.items = itemsOf(v.items, e)
		v.ended = e.Body.Kind().Ends()
	}
}

// view returns what the person has read of a task.
func (p *person) view(t *simTask) *view {
	for _, v := range p.views {
		if v.task == t {
			return v
		}
	}
	v := &view{task: t, who: p.name}
	p.views = append(p.views, v)
	return v
}

// cast makes the people and the agents.
func (s *sim) cast() {
	for i, name := range []string{"ann", "ben", "eve"} {
		s.people = append(s.people, &person{
			name: name, principal: core.Principal{ID: name, Operator: name == "eve"}, slow: s.chance(200),
			back: s.began.Add(time.Duration(i) * time.Millisecond),
		})
	}
	for i, id := range []core.AgentID{"bob", "cid", "dan"} {
		card := core.Card{ID: id, MaxConcurrent: 1 + s.rnd.IntN(3)}
		if i < 2 || s.chance(500) {
			card.Capabilities = []string{"think"}
		}
		for _, f := range []core.Features{core.FeatureCancellation, core.FeatureInjection, core.FeatureApprovals} {
			if s.chance(600) {
				card.Features |= f
			}
		}
		s.agents = append(s.agents, &simAgent{card: card, principal: core.Principal{ID: string(id), Authenticated: true}, back: s.began.Add(time.Duration(i) * time.Millisecond)})
	}
}

// anywhere returns a hub that answers; nil if none does.
func (s *sim) anywhere() *simHub {
	for i, from := 0, s.rnd.IntN(len(s.hubs)); i < len(s.hubs); i++ {
		if h := s.hubs[(from+i)%len(s.hubs)]; s.usable(h) {
			return h
		}
	}
	return nil
}

// arrive lets a person come to a hub, and go on there.
func (s *sim) arrive(p *person) {
	h := s.anywhere()
	if h == nil {
		return
	}
	s.note(p.name, " comes to ", h.name)
	p.at = h.now
	p.sess = h.now.Connect(hub.Identity{Principal: p.principal, Dialect: "test", Keep: s.chance(800)})
}

// depart ends the session of a person.
func (s *sim) depart(p *person, back time.Duration) {
	s.note(p.name, " leaves ", p.at.at.name)
	p.sess.Close(nil)
	p.sess, p.back = nil, time.Now().Add(back)
	s.moment()
}

// leave notes that a life of a hub has ended for those who are connected to it.
func (s *sim) leave(l *life) {
	for _, p := range s.people {
		if p.sess != nil && p.at == l {
			p.sess, p.back = nil, time.Now().Add(s.upTo(time.Second))
		}
	}
	for _, a := range s.agents {
		if a.sess != nil && a.at == l {
			a.lose(time.Now().Add(s.upTo(time.Second)))
		}
	}
}

// found is a task that somebody has looked for.
type found struct {
	p    *person
	v    *view
	sess *hub.Session
	task *task.Task
	err  error
}

// resume looks for the tasks that a person does not read yet, at the hub where it is.
func (s *sim) resume(p *person) {
	for _, v := range p.views {
		if v.ended || v.reads == p.sess || v.looks == p.sess {
			continue
		}
		v.looks = p.sess
		sess, at := p.sess, p.at
		s.running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			t, err := at.Task(ctx, p.principal, v.task.id)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.found = append(s.found, found{p, v, sess, t, err})
		})
		s.moment()
	}
}

// takeFound makes those who have found a task its readers.
func (s *sim) takeFound() {
	s.mu.Lock()
	all := s.found
	s.found = nil
	s.mu.Unlock()
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.v.task.number, b.v.task.number), cmp.Compare(a.p.name, b.p.name))
	})
	for _, f := range all {
		if f.v.looks = nil; f.sess != f.p.sess || f.v.reads == f.sess {
			continue
		}
		if f.err != nil {
			s.note(f.p.name, " does not find ", f.v.task.name, ": ", string(core.AsFault(f.err).Code))
			continue
		}
		from := f.v.cursor()
		s.note(f.p.name, " reads ", f.v.task.name, " from ", from.String())
		if err := f.sess.Watch(f.task, from, nil); err != nil {
			if core.AsFault(err).Code == core.CodeInvalid {
				s.breaks("cursor: %s at %s, task %s: %v", f.p.name, f.p.at.at.name, f.v.task.name, s.plain(err))
			}
			continue
		}
		f.v.reads = f.sess
		s.moment()
	}
}

// plain writes an error without the ids of tasks, which differ from run to run.
func (s *sim) plain(err error) string {
	text := err.Error()
	for _, t := range s.tasks {
		text = strings.ReplaceAll(text, string(t.id), t.name)
	}
	return text
}

// ended is a context that has ended: who waits with it takes what there is.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// poll reads what there is of tasks in a session, in the order of the tasks: no hub promises any
// order between two of them. It returns false if the session has ended.
func (s *sim) poll(sess *hub.Session, deliver func(*simTask, hub.Batch)) bool {
	var all []hub.Batch
	for {
		b, err := sess.Next(ended)
		if b.Task != nil && s.byID[b.Task.ID()] == nil {
			s.breaks("unknown: somebody got events of a task that nobody opened")
		} else if b.Task != nil {
			all = append(all, b)
		}
		if err == nil {
			continue
		}
		slices.SortStableFunc(all, func(a, b hub.Batch) int { return s.byID[a.Task.ID()].number - s.byID[b.Task.ID()].number })
		for _, b := range all {
			deliver(s.byID[b.Task.ID()], b)
		}
		return err == context.Canceled
	}
}

// read lets a person read what there is.
func (s *sim) read(p *person) {
	if !s.poll(p.sess, func(t *simTask, b hub.Batch) { s.take(p.view(t), b) }) {
		s.note(p.name, " was sent away from ", p.at.at.name)
		p.sess, p.back = nil, time.Now().Add(s.upTo(time.Second))
	}
}

// ask opens a task.
func (s *sim) ask(sess *hub.Session, who core.Principal, at *life, req core.Request) *simTask {
	req.Deadline = time.Now().Add(s.within(time.Second, 6*time.Second))
	req.Content = "why?"
	t, err := sess.Open(req, hub.OpenOptions{})
	if t == nil || t.ID() == "" {
		s.note(who.ID, " asks ", req.To.String(), ": ", string(core.AsFault(err).Code))
		return nil
	}
	one := &simTask{name: fmt.Sprintf("T%d", len(s.tasks)+1), id: t.ID(), number: len(s.tasks), by: who, at: at, deadline: req.Deadline}
	s.tasks, s.byID[one.id] = append(s.tasks, one), one
	s.note(who.ID, " asks ", req.To.String(), " at ", at.at.name, ": ", one.name)
	if err != nil {
		return nil // it was refused, and that is recorded
	}
	return one
}

// to draws an address.
func (s *sim) to() core.Address {
	switch n := s.rnd.IntN(100); {
	case n < 50:
		return core.ToAgent(s.agents[s.rnd.IntN(len(s.agents))].card.ID)
	case n < 85:
		return core.ToCapability("think")
	default:
		return core.ToAny()
	}
}

// act lets a person do something.
func (s *sim) act(p *person) {
	h := p.at.at
	if h.now != p.at || h.paused {
		return
	}
	switch n := s.rnd.IntN(100); {
	case n < 45:
		if t := s.ask(p.sess, p.principal, p.at, core.Request{To: s.to()}); t != nil {
			v := p.view(t)
			v.reads = p.sess
		}
	case n < 60 && len(s.tasks) > 0:
		t := s.tasks[s.rnd.IntN(len(s.tasks))]
		if p.principal.Operator || t.by.ID == p.principal.ID {
			p.view(t)
		}
	case n < 75 && len(p.views) > 0:
		s.command(p, p.views[s.rnd.IntN(len(p.views))].task)
	case n < 85:
		s.depart(p, s.upTo(800*time.Millisecond))
	}
	s.moment()
}

// command cancels a task, adds to it, or decides what it waits for.
func (s *sim) command(p *person, t *simTask) {
	var err error
	var what string
	waiting, _ := p.at.Approvals(context.Background(), p.principal)
	for _, a := range waiting {
		if a.Task == t.id {
			err = p.sess.Decide(hub.NoWait, a.Task, core.ApprovalDecided{ID: a.ID, Approved: s.chance(700)})
			s.note(p.name, " decide ", t.name, " ", codeOf(err))
			return
		}
	}
	if what = "cancel"; s.chance(500) {
		err = p.sess.Cancel(t.id, "enough")
	} else {
		what = "inject"
		err = p.sess.Inject(hub.NoWait, t.id, core.Injected{Content: "hurry"})
	}
	s.note(p.name, " ", what, " ", t.name, " ", codeOf(err))
}

func codeOf(err error) string {
	if err == nil {
		return "ok"
	}
	return string(core.AsFault(err).Code)
}

// canonical returns what the journal has of a task; nothing if it has never had any.
func (s *sim) canonical(t *simTask) (all []item) {
	events := s.stored(t)
	for i, e := range events {
		if i > 0 && e.Seq != events[i-1].End()+1 || i == 0 && e.Seq != 1 {
			s.breaks("numbers: in the journal, %s has %d at place %d", t.name, e.Seq, i)
		}
		all = itemsOf(all, e)
	}
	return all
}

// stored returns the events of a task in the journal: those of the hub that first had it up to the
// record of a move, then those of the hub that the record names, and so on.
func (s *sim) stored(t *simTask) (all []core.Event) {
	of := s.hubs[task.OwnerOf(t.id)].name
	for moved := true; moved; {
		moved = false
		after := uint64(0)
		if len(all) > 0 {
			after = all[len(all)-1].End()
		}
		part, err := s.store.checker.ReadOf(context.Background(), of, t.id, after, 0)
		if err != nil && err != journal.ErrUnknown {
			s.breaks("journal: %s: %v", t.name, err)
		}
		for _, e := range part {
			all = append(all, e)
			if r, ok := e.Body.(core.Retrying); ok && r.Hub != "" && r.Hub != of {
				of, moved = r.Hub, true
				break
			}
		}
	}
	return all
}
