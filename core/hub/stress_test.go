package hub_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// TestConcurrentPeersBreakNoPromise runs agents and askers in real time, each with its own
// goroutines. They answer, fail, stall, leave, return, cancel and ask one another at
// random. The promise checker watches all of it; the askers compare the events that they
// read with those of the hub.
func TestConcurrentPeersBreakNoPromise(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{Limits: hub.Limits{
		QueueLength: 4, CancelGrace: 5 * time.Millisecond, SlotGrace: 5 * time.Millisecond, QuestionTimeout: 5 * time.Millisecond,
		FinishedTasks: 40, HistoryBytes: 2000, CauseMemory: -1,
	}})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var agents, askers sync.WaitGroup
	for i := range 5 {
		agents.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				wildAgent(ctx, h, core.AgentID(fmt.Sprintf("a%d", i)), r)
			}
		})
	}
	for i := range 4 {
		askers.Go(func() {
			a := &asker{t: t, hub: h, r: rand.New(rand.NewPCG(seed, uint64(100+i))), name: fmt.Sprintf("r%d", i), tasks: map[core.TaskID]*reading{}}
			a.news.L = &a.mu
			for a.opened < 120 && !t.Failed() {
				a.live()
			}
			a.readOut()
		})
	}
	askers.Wait()
	stop()
	agents.Wait()
	if got := h.Agents(core.Principal{Operator: true}); len(got) != 0 {
		t.Errorf("after all left: got %d agents, want none", len(got))
	}
}

var stressWords = []core.Body{
	core.Accepted{}, core.Thinking{Text: "hm"}, core.Text{Text: "word "}, core.Text{Text: "another "}, core.Usage{Input: 1, Output: 1},
	core.ToolCall{ID: "t", Name: "ls"}, core.ToolState{ID: "t", State: core.ToolRunning}, core.ToolResult{ID: "t"},
	core.ApprovalRequested{ID: "t", Name: "ls"}, core.InjectionAnswered{ID: "i", Accepted: true}, core.File{Name: "f", Data: []byte("f")},
}

var stressEnds = []core.Body{
	core.Done{}, core.Done{Text: "whole"}, core.Cancelled{Reason: "no"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")},
	core.Failed{Fault: core.NewFault(core.CodeOverloaded, "not now")}, core.Failed{},
}

// wildAgent runs one connection of an agent: a pump and two goroutines that answer.
func wildAgent(ctx context.Context, h *hub.Hub, id core.AgentID, r *rand.Rand) {
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}, Dialect: "test"})
	defer s.Close(nil)
	card := core.Card{ID: id, MaxConcurrent: 1 + r.IntN(3), Capabilities: []string{"x"}[:r.IntN(2)]}
	for _, f := range []core.Features{core.FeatureCancellation, core.FeatureNotices, core.FeatureSessions} {
		if r.IntN(3) > 0 {
			card.Features |= f
		}
	}
	if s.Join(card, hub.JoinOptions{NoticeTasks: r.IntN(2) == 0}) != nil {
		return
	}
	work := make(chan *task.Task, 4096)
	var group sync.WaitGroup
	for range 2 {
		seed := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		group.Go(func() { wildWork(s, card, work, seed) })
	}
	for {
		b, err := s.Next(ctx)
		if err != nil {
			break
		}
		for _, e := range b.Events {
			if _, given := e.Body.(core.Assigned); given && b.Role == task.Agent {
				s.Delivered(b.Task.ID())
				work <- b.Task
			}
		}
	}
	close(work)
	group.Wait()
}

// wildWork answers tasks until there are no more. It leaves some unanswered, and disconnects
// at others.
func wildWork(s *hub.Session, card core.Card, work <-chan *task.Task, r *rand.Rand) {
	for task := range work {
		for range r.IntN(40) {
			if s.Report(task.ID(), stressWords[r.IntN(len(stressWords))], nil) != nil {
				break
			}
		}
		switch r.IntN(20) {
		case 0:
			s.Close(core.NewFault(core.CodeUnreachable, "enough"))
		case 1:
			continue // leave it without an end
		case 2:
			s.SetLoad(core.LoadState(1 + r.IntN(4)))
		case 3:
			card.MaxConcurrent = 1 + r.IntN(3)
			_ = s.Update(card)
		case 4, 5:
			_, _ = s.Open(core.Request{To: anyAddress(r), Content: "help", Deadline: time.Now().Add(30 * time.Millisecond)}, hub.OpenOptions{Keep: r.IntN(2) == 0})
		case 6:
			s.CallTool("c", "agent_ask", []byte(`{"to":"*","content":"help","timeout_seconds":0.02}`))
		}
		_ = s.Report(task.ID(), stressEnds[r.IntN(len(stressEnds))], nil)
		if r.IntN(10) == 0 {
			_ = s.Report(task.ID(), core.Done{}, nil) // a second end
		}
	}
}

func anyAddress(r *rand.Rand) core.Address {
	switch r.IntN(4) {
	case 0:
		return core.ToAny()
	case 1:
		return core.ToCapability("x")
	}
	return core.ToAgent(core.AgentID(fmt.Sprintf("a%d", r.IntN(6))))
}

// asker opens tasks over one connection after another and reads their events.
type asker struct {
	t      *testing.T
	hub    *hub.Hub
	r      *rand.Rand
	name   string
	opened int

	mu    sync.Mutex
	news  sync.Cond
	tasks map[core.TaskID]*reading
	ended int
}

// reading is the state of an asker that reads a task.
type reading struct {
	task  *task.Task
	at    core.Cursor
	text  strings.Builder
	ended bool
}

func (a *asker) principal() core.Principal { return core.Principal{ID: a.name} }

// live runs one connection: it asks, steers and disconnects immediately, after some of its
// tasks have ended or after all have.
func (a *asker) live() {
	s := a.hub.Connect(hub.Identity{Principal: a.principal(), Dialect: "test"})
	var pump sync.WaitGroup
	pump.Go(func() { a.pump(s) })
	asked, before := 0, a.ended
	for range 5 + a.r.IntN(20) {
		a.opened++
		asked += a.open(s)
		a.steer(s)
	}
	a.mu.Lock()
	for patience := a.r.IntN(3) * asked / 2; a.ended-before < patience; {
		a.news.Wait()
	}
	a.mu.Unlock()
	s.Close(nil)
	pump.Wait()
}

// open asks once and returns the number of opened tasks, 0 or 1.
func (a *asker) open(s *hub.Session) int {
	req := core.Request{
		To: anyAddress(a.r), Content: "go", Priority: core.Priority(a.r.IntN(4)), Thread: core.ThreadID(fmt.Sprint("t", a.r.IntN(3))),
		Deadline: time.Now().Add(time.Duration(5+a.r.IntN(60)) * time.Millisecond),
	}
	if a.r.IntN(8) == 0 {
		req.Intent, req.Notice = core.IntentNotify, &core.Notice{Topic: "news"}
	}
	a.mu.Lock() // the pump must know the task before its first event
	defer a.mu.Unlock()
	task, err := s.Open(req, hub.OpenOptions{Keep: a.r.IntN(3) > 0})
	if err != nil {
		return 0
	}
	a.tasks[task.ID()] = &reading{task: task}
	return 1
}

func (a *asker) steer(s *hub.Session) {
	a.mu.Lock()
	var id core.TaskID
	for id = range a.tasks {
		break
	}
	a.mu.Unlock()
	switch a.r.IntN(5) {
	case 0:
		_ = s.Cancel(id, "changed my mind")
	case 1:
		_ = s.Decide(hub.NoWait, id, core.ApprovalDecided{ID: "t", Approved: true, All: a.r.IntN(2) == 0})
	}
}

func (a *asker) pump(s *hub.Session) {
	for {
		b, err := s.Next(context.Background())
		if err != nil {
			return
		}
		a.take(b)
	}
}

// take checks that a batch continues the earlier ones.
func (a *asker) take(b hub.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b.Gap != nil {
		a.t.Errorf("got the gap %+v, want everything", *b.Gap)
	}
	if b.Task == nil {
		return
	}
	read := a.tasks[b.Task.ID()]
	if read == nil {
		a.t.Errorf("got %v of task %s, which was refused", kinds(b.Events), b.Task.ID())
		return
	}
	for _, e := range b.Events {
		if e.Seq != read.at.Seq+1 || read.ended {
			a.t.Errorf("task %s: got event %d after %d (ended: %v), want the next", b.Task.ID(), e.Seq, read.at.Seq, read.ended)
		}
		read.at = e.Cursor()
		if b, ok := e.Body.(core.Text); ok {
			read.text.WriteString(b.Text)
		}
		if e.Body.Kind().Ends() {
			read.ended = true
			a.ended++
			a.news.Signal()
		}
	}
}

// readOut reconnects, reads the rest of every task and compares the result with the task of
// the hub.
func (a *asker) readOut() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := a.hub.Connect(hub.Identity{Principal: a.principal(), Dialect: "test"})
	defer s.Close(nil)
	for id, read := range a.tasks {
		task, err := a.hub.Task(ctx, a.principal(), id)
		if err != nil {
			a.t.Errorf("task %s: got %v, want it found", id, err)
			continue
		}
		if !read.ended {
			if err := s.Watch(task, read.at, nil); err != nil {
				a.t.Errorf("task %s: got %v, want it watched from %s", id, err, read.at)
				continue
			}
		}
		for !read.ended {
			b, err := s.Next(ctx)
			if err != nil {
				a.t.Errorf("task %s: got %v at %s, want its end", id, err, read.at)
				return
			}
			a.take(b)
		}
		var want strings.Builder
		for _, e := range read.task.Events() {
			if b, ok := e.Body.(core.Text); ok {
				want.WriteString(b.Text)
			}
		}
		if got, want := read.text.String(), want.String(); got != want {
			a.t.Errorf("task %s: got %q, want %q", id, got, want)
		}
	}
}
