package peer_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
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
		s.takeSent()
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
	case n < 15:
		s.send(p)
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
