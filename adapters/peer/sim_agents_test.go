package peer_test

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// simAgent is an agent, which comes to one hub after the other.
type simAgent struct {
	card      core.Card
	principal core.Principal
	at        *life
	sess      *hub.Session
	joining   *hub.Session // a session that is becoming the agent
	back      time.Time
	held      []*work
	views     []*view // of what it asks itself
}

// work is a task that the agent has.
type work struct {
	id        core.TaskID
	name      string
	cancelled bool
	approval  string // for which it waits; "" for none
	injected  []string
	said      int
}

// joined is the result of joining.
type joined struct {
	a    *simAgent
	at   *life
	sess *hub.Session
	err  error
}

// lose notes that the agent has lost its connection.
func (a *simAgent) lose(back time.Time) { a.sess, a.held, a.views, a.back = nil, nil, nil, back }

// come lets an agent come to a hub. What it has at another one stays there: that hub has to notice.
func (s *sim) come(a *simAgent) {
	h := s.anywhere()
	if h == nil || a.joining != nil {
		return
	}
	s.note(string(a.card.ID), " comes to ", h.name)
	at := h.now
	sess := at.Connect(hub.Identity{Principal: a.principal, Dialect: "test"})
	a.joining = sess
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		err := sess.Take(ctx, a.card, hub.JoinOptions{})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.joins = append(s.joins, joined{a, at, sess, err})
	})
	s.moment()
}

// takeJoined notes which agents have joined.
func (s *sim) takeJoined() {
	s.mu.Lock()
	all := s.joins
	s.joins = nil
	s.mu.Unlock()
	slices.SortStableFunc(all, func(a, b joined) int { return cmp.Compare(a.a.card.ID, b.a.card.ID) })
	for _, j := range all {
		a := j.a
		a.joining = nil
		how := " joins "
		if j.err != nil { // for which there may be two reasons in one instant
			how = " cannot join "
		}
		s.note(string(a.card.ID), how, j.at.at.name)
		if j.err != nil || j.at.at.now != j.at {
			j.sess.Close(nil)
			a.back = time.Now().Add(s.upTo(time.Second))
			s.moment()
			continue
		}
		if a.sess != nil {
			s.count.Moves++
		}
		a.lose(time.Time{})
		a.sess, a.at = j.sess, j.at
	}
}

// hear lets an agent take what there is for it.
func (s *sim) hear(a *simAgent) {
	here := s.poll(a.sess, func(t *simTask, b hub.Batch) {
		if b.Role != task.Agent {
			s.take(a.view(t), b)
			return
		}
		for _, e := range b.Events {
			s.note(string(a.card.ID), " has ", t.name, " ", strconv.FormatUint(e.Seq, 10), " ", e.Body.Kind().String())
			a.hear(t, e)
		}
	})
	if !here {
		s.note(string(a.card.ID), " was sent away from ", a.at.at.name)
		a.lose(time.Now().Add(s.upTo(time.Second)))
	}
}

func (a *simAgent) view(t *simTask) *view {
	for _, v := range a.views {
		if v.task == t {
			return v
		}
	}
	v := &view{task: t, who: string(a.card.ID)}
	a.views = append(a.views, v)
	return v
}

func (a *simAgent) hear(t *simTask, e core.Event) {
	i := slices.IndexFunc(a.held, func(w *work) bool { return w.id == t.id })
	switch b := e.Body.(type) {
	case core.Assigned:
		if i < 0 {
			a.held = append(a.held, &work{id: t.id, name: t.name})
		}
		return
	case core.CancelRequested:
		if i >= 0 {
			a.held[i].cancelled = true
		}
	case core.ApprovalDecided:
		if i >= 0 && a.held[i].approval == b.ID {
			a.held[i].approval = ""
		}
	case core.Injected:
		if i >= 0 {
			a.held[i].injected = append(a.held[i].injected, b.ID)
		}
	}
	if e.Body.Kind().Ends() && i >= 0 {
		a.held = slices.Delete(a.held, i, i+1)
	}
}

// work lets an agent do something for one of its tasks. At the end it finishes them.
func (s *sim) work(a *simAgent, finish bool) {
	if h := a.at.at; h.now != a.at || h.paused || len(a.held) == 0 {
		return
	}
	w := a.held[s.rnd.IntN(len(a.held))]
	var body core.Body
	switch n := s.rnd.IntN(100); {
	case w.cancelled && n < 70:
		body = core.Cancelled{}
	case len(w.injected) > 0:
		body = core.InjectionAnswered{ID: w.injected[0], Accepted: true}
		w.injected = w.injected[1:]
	case w.approval != "" && !finish:
		return
	case n < 20 || finish:
		body = core.Done{Text: "because"}
	case n < 26 || w.said == 0 && n < 45: // before it says anything, another agent may get the task
		f := core.NewFault(core.CodeInternal, "it broke")
		f.Retryable = s.chance(700)
		body = core.Failed{Fault: f}
	case n < 34 && a.card.Features.Has(core.FeatureApprovals):
		w.said++
		w.approval = w.name + "." + strconv.Itoa(w.said)
		body = core.ApprovalRequested{ID: w.approval, Name: "rm", Input: "-r"}
	case n < 42:
		to := s.agents[s.rnd.IntN(len(s.agents))].card.ID
		if t := s.ask(a.sess, a.principal, a.at, core.Request{To: core.ToAgent(to), Cause: w.id}); t != nil {
			v := a.view(t)
			v.reads = a.sess
		}
		return
	default:
		for range s.rnd.IntN(4) {
			w.said++
			_ = a.sess.Report(w.id, core.Text{Text: w.name + " " + strconv.Itoa(w.said) + ". "}, nil) // it may have ended
		}
		w.said++
		body = core.Text{Text: w.name + " " + strconv.Itoa(w.said) + ". "}
	}
	err := a.sess.Report(w.id, body, nil)
	s.note(string(a.card.ID), " says ", w.name, " ", body.Kind().String(), " ", codeOf(err))
	if k := body.Kind(); k.Ends() || err != nil {
		a.held = slices.DeleteFunc(a.held, func(o *work) bool { return o == w })
	}
}

// wander moves an agent, or lets it come back.
func (s *sim) wander(a *simAgent) {
	switch {
	case a.joining != nil:
	case a.sess == nil && time.Now().After(a.back):
		s.come(a)
	case a.sess != nil && s.chance(12): // the old connection is not closed
		s.come(a)
	case a.sess != nil && s.chance(6) && s.usable(a.at.at):
		s.note(string(a.card.ID), " leaves ", a.at.at.name)
		a.sess.Close(nil)
		a.lose(time.Now().Add(s.upTo(time.Second)))
		s.moment()
	}
}
