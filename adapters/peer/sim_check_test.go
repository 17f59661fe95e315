package peer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// lifeLog is what a life of a hub has said of the tasks that it owned.
type lifeLog struct {
	life  journal.Life
	mu    sync.Mutex
	tasks map[core.TaskID]*lifeTask
}

type lifeTask struct {
	events   []core.Event
	recorded uint64
}

func newLifeLog(l journal.Life) *lifeLog {
	return &lifeLog{life: l, tasks: map[core.TaskID]*lifeTask{}}
}

// Joined implements hub.Observer.
func (l *lifeLog) Joined(core.Card) {}

// Left implements hub.Observer.
func (l *lifeLog) Left(core.AgentID, bool) {}

// Appended implements hub.Observer.
func (l *lifeLog) Appended(id core.TaskID, e core.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks[id] == nil {
		l.tasks[id] = &lifeTask{}
	}
	l.tasks[id].events = append(l.tasks[id].events, e)
}

// Recorded implements hub.Observer.
func (l *lifeLog) Recorded(id core.TaskID, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks[id] == nil {
		l.tasks[id] = &lifeTask{}
	}
	l.tasks[id].recorded = seq
}

// play lets everybody do something, until the time is over.
func (s *sim) play() {
	s.plan()
	for end := time.Now().Add(playTime); time.Now().Before(end); {
		time.Sleep(s.within(time.Millisecond, 120*time.Millisecond))
		s.moment()
		s.settle()
		s.disturb(false)
		s.unique()
		for _, a := range s.agents {
			if a.sess != nil && s.usable(a.at.at) && s.chance(800) {
				s.hear(a)
			}
			if a.sess != nil && s.chance(600) {
				s.work(a, false)
				s.moment()
			}
			s.wander(a)
		}
		for _, p := range s.people {
			s.turn(p, false)
		}
	}
}

// turn is what a person does now and then.
func (s *sim) turn(p *person, last bool) {
	switch {
	case p.sess == nil && time.Now().After(p.back):
		if s.arrive(p); p.sess != nil {
			s.moment()
		}
	case p.sess == nil || !s.usable(p.at.at):
	default:
		if last || !p.slow || s.chance(80) {
			s.read(p)
		}
		if p.sess != nil && s.chance(500) {
			s.resume(p)
		}
		if p.sess != nil && !last && s.chance(250) {
			s.act(p)
		}
	}
}

// mend ends all that goes wrong, and lets the hubs and those who use them finish.
func (s *sim) mend() {
	s.note("mend")
	s.disturb(true)
	s.due = nil
	s.store.weather(0, 0, 0)
	if !s.await(30*time.Second, "all hubs are a cluster again", s.healthy) {
		return
	}
	s.await(5*time.Second, "no request with a key waits", func() bool { return s.sending.Load() == 0 })
	const longest = 6 * time.Second // of a deadline
	s.sick = time.Now()
	over := s.await(longest+simLimits.CancelGrace+3*time.Second, "every task has ended", func() bool {
		s.unique()
		for _, a := range s.agents {
			if a.sess != nil {
				s.hear(a)
			}
			for a.sess != nil && len(a.held) > 0 {
				s.work(a, true)
			}
			if a.sess == nil && a.joining == nil && time.Now().After(a.back) {
				s.come(a)
			}
		}
		for _, p := range s.people {
			s.turn(p, true)
		}
		return !slices.ContainsFunc(s.tasks, s.runs)
	})
	for _, t := range s.tasks {
		if !over && s.runs(t) {
			s.breaks("end: %s of %s has none", t.name, s.hubs[task.OwnerOf(t.id)].name)
		}
	}
	s.await(20*time.Second, "everybody has read everything", func() bool {
		for _, p := range s.people {
			s.turn(p, true)
		}
		return s.unread() == "" && s.steady()
	})
	if who := s.unread(); who != "" {
		s.breaks("readers: %s", who)
	}
}

// healthy reports whether all hubs are a cluster.
func (s *sim) healthy() bool {
	for _, h := range s.hubs {
		if !s.quorum(h) || len(h.now.part.Cluster().Missing()) > 0 {
			return false
		}
	}
	return true
}

// steady reports whether all hubs have been a cluster for long enough: before, one of them may still
// take over another that was silent.
func (s *sim) steady() bool {
	const enough = 4 * time.Second
	if !s.healthy() {
		s.sick = time.Now()
	}
	return time.Since(s.sick) > enough
}

// runs reports whether a task has no end: in the journal or, if that has never had it, where it was
// opened.
func (s *sim) runs(t *simTask) bool {
	if all := s.stored(t); len(all) > 0 {
		return !all[len(all)-1].Body.Kind().Ends()
	}
	if t.at.at.now != t.at {
		return false // the hub that accepted it is gone, and nobody has it
	}
	one, err := t.at.Task(ended, core.Principal{ID: "eve", Operator: true}, t.id)
	return err != nil || one.State() != task.Ended
}

// unread returns who has not read the end of a task that can be read; "" if everybody has.
func (s *sim) unread() string {
	for _, p := range s.people {
		for _, v := range p.views {
			if !v.ended && len(s.stored(v.task)) > 0 {
				return fmt.Sprintf("%s has not read the end of %s", p.name, v.task.name)
			}
		}
	}
	return ""
}

// unique checks that each agent is at one hub of those that have a quorum.
func (s *sim) unique() {
	for _, a := range s.agents {
		var at []string
		for _, h := range s.hubs {
			if !s.quorum(h) {
				continue
			}
			if e, ok := h.now.Agent(core.Principal{ID: "eve", Operator: true}, a.card.ID); ok && e.Hub == "" {
				at = append(at, h.name)
			}
		}
		if len(at) > 1 {
			s.breaks("agents: %s is at %s", a.card.ID, strings.Join(at, " and "))
		}
	}
}

// check checks what is left, once everything has ended.
func (s *sim) check() {
	s.checkKeys()
	for _, t := range s.tasks {
		want := s.canonical(t)
		s.countEnd(want)
		if len(want) > 0 {
			ends := 0
			for _, it := range want {
				if it.ends {
					ends++
				}
			}
			if ends != 1 || !want[len(want)-1].ends {
				s.breaks("end: the journal has %d ends of %s", ends, t.name)
			}
		} else {
			// Where it had a copy, because the task was to come back to it, it cannot store another course.
			if l := t.at; l.at.now == l && !l.is(&l.deposed) && !s.isCopy(l.at.name, t) {
				s.breaks("lost: %s has accepted %s, and lives, and the journal has nothing of it", l.log.life, t.name)
			}
			want = s.unstored(t)
		}
		for _, p := range s.people {
			for _, v := range p.views {
				if v.task == t {
					s.compare(v, want)
				}
			}
		}
		s.checkRecorded(t, want)
		s.checkHubs(t, want)
	}
}

// unstored returns what those say of a task of which nothing was stored who have read its end.
func (s *sim) unstored(t *simTask) []item {
	for _, p := range s.people {
		for _, v := range p.views {
			if v.task == t && v.ended {
				return v.items
			}
		}
	}
	return nil
}

func (s *sim) countEnd(all []item) {
	for _, it := range all {
		if strings.Contains(it.text, `"kind":"retrying"`) {
			s.count.Retried++
			if strings.Contains(it.text, `"hub":`) {
				s.count.HandedOn++
			}
		}
	}
	switch n := len(all); {
	case n == 0:
		s.count.Lost++
	case strings.Contains(all[n-1].text, `"kind":"done"`):
		s.count.Done++
	case strings.Contains(all[n-1].text, `"kind":"failed"`):
		s.count.Failed++
	default:
		s.count.Cancelled++
	}
	s.count.Tasks++
}

// compare compares what somebody has read with what the journal has. Only a request is read before it is
// stored: if its hub dies, it may be gone, which a reader that has not come back does not know yet.
func (s *sim) compare(v *view, want []item) {
	for i, got := range v.items {
		switch {
		case i < len(want) && got.text == want[i].text:
		case i == 0 && len(want) == 2 && got.bare == want[0].text && !v.late: // it was read before it was refused
		case got.ends:
			s.breaks("end: %s has read the end %s of %s, the journal has %s", v.who, got.text, v.task.name, lastOf(want))
		case i < len(want):
			s.breaks("content: %s has read %q at %d of %s, the journal has %q", v.who, got.text, i+1, v.task.name, want[i].text)
		case i > 0 || v.ended:
			s.breaks("content: %s has read %q at %d of %s, which the journal does not have", v.who, got.text, i+1, v.task.name)
		}
	}
}

func lastOf(all []item) string {
	if len(all) == 0 {
		return "nothing"
	}
	return all[len(all)-1].text
}

// checkRecorded checks that the journal has what a life has called recorded.
func (s *sim) checkRecorded(t *simTask, want []item) {
	for _, l := range s.lives {
		l.mu.Lock()
		of := l.tasks[t.id]
		l.mu.Unlock()
		if of == nil {
			continue
		}
		for _, e := range of.events {
			for i, it := range itemsOf(nil, e) {
				seq := e.Seq + uint64(i)
				if seq <= of.recorded && (seq > uint64(len(want)) || want[seq-1].text != it.text && want[seq-1].text != it.bare) {
					s.breaks("recorded: %s has called %q of %s recorded, which the journal does not have", l.life, it.text, t.name)
					return
				}
			}
		}
	}
}

// checkHubs checks that a task reads the same at every hub.
func (s *sim) checkHubs(t *simTask, want []item) {
	for _, h := range s.hubs {
		if h.now == nil || len(want) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		one, err := h.now.Task(ctx, core.Principal{ID: "eve", Operator: true}, t.id)
		cancel()
		if err != nil {
			if len(s.stored(t)) > 0 {
				s.breaks("hubs: %s at %s: %v", t.name, h.name, s.plain(err))
			}
			continue
		}
		sess := h.now.Connect(hub.Identity{Principal: core.Principal{ID: "eve", Operator: true}, Dialect: "test"})
		v := &view{task: t, who: "a reader at " + h.name, late: true}
		if err := sess.Watch(one, core.Cursor{}, nil); err != nil {
			s.breaks("hubs: %s at %s: %v", t.name, h.name, s.plain(err))
		}
		for range 50 {
			s.poll(sess, func(_ *simTask, b hub.Batch) { s.take(v, b) })
			if v.ended {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !v.ended {
			s.breaks("hubs: %s has no end at %s", t.name, h.name)
		}
		s.compare(v, want)
		sess.Close(nil)
	}
}

// checkLives checks what each life has promised, once it is over.
func (s *sim) checkLives() {
	s.store.Reading = nil // nobody else reads any more
	for _, b := range s.store.broken {
		s.breaks("%s", b)
	}
	for _, h := range s.hubs {
		if l := h.last; l != nil && l.is(&l.ready) && !l.is(&l.rough) && !l.is(&l.deposed) {
			for _, b := range l.promises.Broken() {
				s.breaks("hub %s: %s", h.name, b)
			}
		}
	}
}
