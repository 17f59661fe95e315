package pirpc_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// nursery is a hub with pi as an agent whose processes the test plays.
type nursery struct {
	*testing.T
	kids    chan *kid // as they are started
	refuse  error     // of the next starts
	prepare func(*kid)
	agent   *pirpc.Agent
	hub     *hub.Hub
	session *hub.Session
	user    *hub.Session
	profile agent.Profile
	ran     chan error
	stop    context.CancelFunc
	counts  counts

	mu     sync.Mutex
	events map[core.TaskID][]core.Event
}

type counts struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[name]++
}

func (c *counts) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[name]
}

// dial starts a kid.
func (n *nursery) dial(_ context.Context, env []string, args ...string) (link.Conn[[]byte, []byte], error) {
	if n.refuse != nil {
		return nil, n.refuse
	}
	ours, theirs := coretest.Pipe[[]byte, []byte](64)
	k := &kid{T: n.T, env: env, args: args, conn: theirs, commands: make(chan command, 64), state: idle}
	if n.prepare != nil {
		n.prepare(k)
	}
	go k.serve()
	n.kids <- k
	return ours, nil
}

// play runs a test with a hub and pi. The supervisor is left out: Run runs once.
func play(t *testing.T, opts pirpc.Options, test func(*nursery)) {
	t.Helper()
	playWith(t, opts, nil, test)
}

func playWith(t *testing.T, opts pirpc.Options, prepare func(*kid), test func(*nursery)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &nursery{T: t, kids: make(chan *kid, 100), ran: make(chan error, 1), prepare: prepare, events: map[core.TaskID][]core.Event{}}
		opts.Dial, opts.Count = n.dial, n.counts.add
		n.agent = pirpc.New(opts)
		h := coretest.NewHub(t, hub.Options{})
		n.hub = h
		n.session = h.Connect(hub.Identity{Principal: core.Principal{ID: "pi"}, Dialect: pirpc.Name})
		n.user = h.Connect(hub.Identity{Principal: core.Principal{ID: "user", Operator: true}, Dialect: "test"})
		n.user.WatchQuestions(question.View{Agent: "pi", For: n.user.Identity().Principal})
		go n.watch()
		n.start()
		test(n)
		n.end()
		n.session.Close(nil)
		n.user.Close(nil)
	})
}

// start runs the agent, and joins the hub when it is ready.
func (n *nursery) start() {
	ctx, stop := context.WithCancel(n.Context())
	ready := make(chan struct{})
	n.stop = stop
	go func() {
		n.ran <- n.agent.Run(ctx, func(p agent.Profile) {
			n.profile = p
			close(ready)
		})
	}()
	select {
	case <-ready:
	case err := <-n.ran:
		n.ran <- err
		return
	}
	if err := n.session.Join(core.Card{ID: "pi", Features: n.profile.Features, MaxConcurrent: 4}, hub.JoinOptions{}); err != nil {
		n.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = coretest.Serve(ctx, n.session, n.agent, func(error) {})
	}()
	n.stop = func() {
		stop()
		<-served
	}
}

// end stops the agent and returns what Run returned.
func (n *nursery) end() error {
	n.stop()
	err := <-n.ran
	n.ran <- err
	return err
}

// ask opens a task for pi.
func (n *nursery) ask(r core.Request) *task.Task {
	n.Helper()
	return n.askOf("pi", r)
}

// other joins an agent that answers one task with what it is given.
func (n *nursery) other() (answer func(text string)) {
	s := n.hub.Connect(hub.Identity{Principal: core.Principal{ID: "other"}, Dialect: "test"})
	if err := s.Join(core.Card{ID: "other", Features: core.FeatureStreaming}, hub.JoinOptions{}); err != nil {
		n.Fatal(err)
	}
	return func(text string) {
		for {
			b, err := s.Next(n.Context())
			if err != nil {
				n.Fatal(err)
			}
			if b.Task != nil {
				if err := s.Report(b.Task.ID(), core.Done{Text: text}, nil); err != nil {
					n.Fatal(err)
				}
				s.Close(nil)
				return
			}
		}
	}
}

// askOf opens a task for an agent.
func (n *nursery) askOf(id core.AgentID, r core.Request) *task.Task {
	n.Helper()
	r.To = core.ToAgent(id)
	t, err := n.user.Open(r, hub.OpenOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return t
}

// askAs opens a task for pi as somebody who has proved who they are.
func (n *nursery) askAs(who string, r core.Request) *task.Task {
	n.Helper()
	s := n.hub.Connect(hub.Identity{Principal: core.Principal{ID: who, Authenticated: true}, Dialect: "test"})
	before := n.stop
	n.stop = func() {
		s.Close(nil)
		before()
	}
	r.To = core.ToAgent("pi")
	t, err := s.Open(r, hub.OpenOptions{Unwatched: true})
	if err != nil {
		n.Fatal(err)
	}
	return t
}

// finishes ends a task with a message of one piece.
func (n *nursery) finishes(t *task.Task, k *kid, text string) {
	n.Helper()
	k.answers(text)
	k.settles()
	n.wants(t, core.KindDone, text)
}

// wants fails the test unless the task has ended with the kind and the text.
func (n *nursery) wants(t *task.Task, end core.Kind, text string) core.Answer {
	n.Helper()
	synctest.Wait()
	a := t.Answer()
	if a.End != end || a.Text != text {
		n.Errorf("the task ended as %s with %q (%v), want %s with %q", a.End, a.Text, a.Fault, end, text)
	}
	return a
}

// fails is wants for a task that failed, with a code and a part of the message.
func (n *nursery) fails(t *task.Task, code core.Code, message string) {
	n.Helper()
	synctest.Wait()
	f := t.Answer().Fault
	if t.Answer().End != core.KindFailed || !errors.Is(f, &core.Fault{Code: code}) || !strings.Contains(f.Message, message) {
		n.Errorf("the task ended as %s with %v, want failed with %s: ...%s...", t.Answer().End, f, code, message)
	}
}

// bodies returns the events of a task of one kind.
func bodies[B core.Body](n *nursery, t *task.Task) (all []B) {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events[t.ID()] {
		if b, is := e.Body.(B); is {
			all = append(all, b)
		}
	}
	return all
}

// story returns the kinds of the events of a task.
func (n *nursery) story(t *task.Task) string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	var kinds []string
	for _, e := range n.events[t.ID()] {
		kinds = append(kinds, e.Body.Kind().String())
	}
	return strings.Join(kinds, " ")
}

// watch collects the events of all tasks until the user leaves.
func (n *nursery) watch() {
	for {
		b, err := n.user.Next(context.Background())
		if err != nil {
			return
		}
		if b.Task != nil {
			n.mu.Lock()
			n.events[b.Task.ID()] = append(n.events[b.Task.ID()], b.Events...)
			n.mu.Unlock()
		}
	}
}
