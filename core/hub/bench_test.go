package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/trace"
)

// BenchmarkTextEvent measures the hub's own cost of one text event: appending and reading
// it, without I/O.
func BenchmarkTextEvent(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		name := "alone"
		opts := hub.Options{Journal: discard{}, Limits: hub.Limits{TaskBytes: 1 << 40}}
		if recorded {
			name = "recorded"
			opts.Journal = journal.NewMemory(journal.Retention{Bytes: 64 << 20})
		}
		b.Run(name, func(b *testing.B) {
			h := hub.New(opts)
			agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "test"})
			if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
				b.Fatal(err)
			}
			asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
			chunk := strings.Repeat("x", 64)
			ctx := context.Background()
			b.ReportAllocs()
			const perTask = 5000
			var task *task.Task
			n := 0
			for b.Loop() {
				if n%perTask == 0 {
					if task != nil {
						finish(b, agent, asker, task)
					}
					var err error
					if task, err = asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{}); err != nil {
						b.Fatal(err)
					}
				}
				n++
				if err := agent.Report(task.ID(), core.Text{Text: chunk}, nil); err != nil {
					b.Fatal(err)
				}
				if _, err := asker.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
			finish(b, agent, asker, task)
			b.StopTimer()
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
			if err := h.Close(ctx, "done"); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkQuestion measures the hub's own cost of one question: opening a task in a thread,
// answering it with one piece of text and reading it to its end; with nothing counted, with the
// memory budget, and with quotas besides.
func BenchmarkQuestion(b *testing.B) {
	budget := func() *memory.Budget { return memory.New(1 << 30) }
	limits := quota.Limits{Connections: 100, Tasks: 1000, Bytes: 1 << 30, Rate: 1e9}
	b.Run("alone", func(b *testing.B) { benchmarkQuestion(b, hub.Options{}) })
	b.Run("budget", func(b *testing.B) { benchmarkQuestion(b, hub.Options{Memory: budget()}) })
	b.Run("quotas", func(b *testing.B) {
		benchmarkQuestion(b, hub.Options{Memory: budget(), Quotas: quota.NewBook(limits)})
	})
	b.Run("untraced", func(b *testing.B) { benchmarkQuestion(b, hub.Options{Tracer: traced(b, 0)}) })
	b.Run("traced", func(b *testing.B) { benchmarkQuestion(b, hub.Options{Tracer: traced(b, 1)}) })
}

// tracedTasks is a tracer that makes the spans of what ends, as an exporter does, and drops them.
type tracedTasks struct {
	trace.Sampler
	hub   *hub.Hub
	ended chan core.TaskID
}

func (t *tracedTasks) Ended(id core.TaskID) { t.ended <- id }

func (*tracedTasks) Missed(time.Time) bool { return false }

func (*tracedTasks) Recovered([]core.TaskID) {}

func traced(b *testing.B, ratio float64) *tracedTasks {
	t := &tracedTasks{Sampler: trace.NewSampler(ratio), ended: make(chan core.TaskID, 1024)}
	var made sync.WaitGroup
	made.Go(func() {
		for id := range t.ended {
			if events, err := t.hub.Ended(context.Background(), id); err == nil {
				trace.Reader{}.Spans(events)
			}
		}
	})
	b.Cleanup(func() {
		close(t.ended)
		made.Wait()
	})
	return t
}

func benchmarkQuestion(b *testing.B, opts hub.Options) {
	opts.Journal = discard{}
	h := hub.New(opts)
	if t, is := opts.Tracer.(*tracedTasks); is {
		t.hub = h
	}
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "test"})
	if err := agent.Join(core.Card{ID: "a", Features: core.FeatureSessions}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
	viewer := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
	req := core.Request{To: core.ToAgent("a"), Thread: "t", Content: strings.Repeat("x", 64)}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		task, err := asker.Open(req, hub.OpenOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := viewer.Watch(task, core.Cursor{}, nil); err != nil {
			b.Fatal(err)
		}
		if _, err := agent.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
		agent.Delivered(task.ID())
		if err := agent.Report(task.ID(), core.Text{Text: req.Content}, nil); err != nil {
			b.Fatal(err)
		}
		finish(b, agent, asker, task, viewer)
		if n++; n%1000 == 0 { // let the recorder catch up
			b.StopTimer()
			if err := task.Recorded(b.Context(), 4); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	b.StopTimer()
	if err := h.Close(b.Context(), "done"); err != nil {
		b.Fatal(err)
	}
}

// finish ends the task and reads the sessions up to its end.
func finish(b *testing.B, agent, asker *hub.Session, task *task.Task, viewers ...*hub.Session) {
	b.Helper()
	if err := agent.Report(task.ID(), core.Done{}, nil); err != nil {
		b.Fatal(err)
	}
	for _, s := range append(viewers, agent, asker) {
		for {
			batch, err := s.Next(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			if n := len(batch.Events); n > 0 && batch.Events[n-1].Body.Kind().Ends() {
				break
			}
		}
	}
}

// discard is a journal that keeps nothing, so that the benchmark measures only the hub.
type discard struct{ journal.Journal }

func (discard) Append(context.Context, ...journal.Record) error { return nil }

// BenchmarkManyAgents measures requests by every kind of address, and a heartbeat while a
// task waits, with few and with very many agents.
func BenchmarkManyAgents(b *testing.B) {
	for _, agents := range []int{10, 1000, 20_000} {
		h := hub.New(hub.Options{Journal: discard{}, Limits: hub.Limits{UnrecordedBytes: 1 << 40}})
		sessions := map[core.AgentID]*hub.Session{}
		for n := range agents {
			s := h.Connect(hub.Identity{Principal: core.Principal{ID: "agents"}, Dialect: "test"})
			id := core.AgentID(fmt.Sprintf("agent-%d", n))
			if err := s.Join(core.Card{ID: id, Capabilities: []string{"sums"}, Domains: []string{"family"}}, hub.JoinOptions{}); err != nil {
				b.Fatal(err)
			}
			sessions[id] = s
		}
		asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
		for _, to := range []core.Address{core.ToAgent("agent-7"), core.ToAny(), core.ToCapability("sums"), core.ToDomain("family.calendar")} {
			b.Run(fmt.Sprintf("%d/%s", agents, to), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					task, err := asker.Open(core.Request{To: to, Content: "?"}, hub.OpenOptions{Unwatched: true})
					if err != nil {
						b.Fatal(err)
					}
					if err := sessions[task.Agent()].Report(task.ID(), core.Done{}, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("%d/unknown", agents), func(b *testing.B) {
			for b.Loop() {
				if _, err := asker.Open(core.Request{To: core.ToAgent("agemt-7"), Content: "?"}, hub.OpenOptions{Unwatched: true}); err == nil {
					b.Fatal("got the heartbeat accepted, want it refused")
				}
			}
		})
		for range 2 { // the second waits
			if _, err := asker.Open(core.Request{To: core.ToAgent("agent-7"), Content: "?"}, hub.OpenOptions{Unwatched: true}); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("%d/heartbeat", agents), func(b *testing.B) {
			for b.Loop() {
				sessions["agent-8"].SetLoad(core.LoadIdle)
			}
		})
		if err := h.Close(stopped, "done"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkViewers measures the cost of each of many viewers of a task.
func BenchmarkViewers(b *testing.B) {
	for _, viewers := range []int{50, 5000} {
		b.Run(fmt.Sprint(viewers), func(b *testing.B) {
			h := hub.New(hub.Options{Journal: discard{}})
			agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "test"})
			if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
				b.Fatal(err)
			}
			task, err := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"}).Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
			if err != nil {
				b.Fatal(err)
			}
			all := make([]*hub.Session, viewers)
			for i := range all {
				all[i] = h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
			}
			for b.Loop() {
				for _, s := range all {
					if err := s.Watch(task, core.Cursor{}, nil); err != nil {
						b.Fatal(err)
					}
				}
				for _, s := range all {
					s.Unwatch(task)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*viewers), "ns/viewer")
			if err := h.Close(stopped, "done"); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// stopped waits for no task.
var stopped = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// BenchmarkManyAgentsUnderRules asks by * among 10,000 agents, of which the principal may ask
// one, or may see none.
func BenchmarkManyAgentsUnderRules(b *testing.B) {
	const agents = 10_000
	for _, n := range []int{10, 10_000} {
		rules := make([]policy.Rule, 0, n)
		for i := range n - 1 {
			rules = append(rules, policy.Rule{Who: []string{"*"}, May: policy.Rights(), To: []string{fmt.Sprintf("*-of-%d-*", i)}, Line: i + 1})
		}
		rules = append(rules, policy.Rule{Who: []string{"r"}, May: policy.Rights(), To: []string{"agent-7"}, Line: n})
		table, err := policy.Compile(rules)
		if err != nil {
			b.Fatal(err)
		}
		h := hub.New(hub.Options{Journal: discard{}, Limits: hub.Limits{UnrecordedBytes: 1 << 40}, Authorizer: table})
		var seven *hub.Session
		for i := range agents {
			s := h.Connect(hub.Identity{Principal: core.Principal{ID: "agents"}, Dialect: "test"})
			id := core.AgentID(fmt.Sprintf("agent-%d", i))
			if err := s.Join(core.Card{ID: id, Capabilities: []string{"sums"}}, hub.JoinOptions{}); err != nil {
				b.Fatal(err)
			}
			if i == 7 {
				seven = s
			}
		}
		asker, stranger := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"}), h.Connect(hub.Identity{Principal: core.Principal{ID: "x"}, Dialect: "test"})
		b.Run(fmt.Sprintf("%d rules/one", n), func(b *testing.B) {
			for b.Loop() {
				task, err := asker.Open(core.Request{To: core.ToAny(), Content: "?"}, hub.OpenOptions{Unwatched: true})
				if err != nil {
					b.Fatal(err)
				}
				if err := seven.Report(task.ID(), core.Done{}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d rules/none", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := stranger.Open(core.Request{To: core.ToAny(), Content: "?"}, hub.OpenOptions{Unwatched: true}); err == nil {
					b.Fatal("got a task, want none")
				}
			}
		})
		if err := h.Close(stopped, "done"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTaskList is a page of a hub with 10,000 tasks, nearly all of them only in the journal.
func BenchmarkTaskList(b *testing.B) {
	const tasks = 10_000
	h := hub.New(hub.Options{Limits: hub.Limits{FinishedTasks: 100}, Journal: journal.NewMemory(journal.Retention{Bytes: 1 << 30})})
	defer h.Close(b.Context(), "over")
	agent, ann, bob := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "bob"}})
	if err := agent.Join(core.Card{ID: "a", MaxConcurrent: 8}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	var last *task.Task
	for i := range tasks {
		asker := ann
		if i%1000 == 0 {
			asker = bob
		}
		var err error
		if last, err = asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Keep: true, Unwatched: true}); err != nil {
			b.Fatal(err)
		}
		if err := agent.Report(last.ID(), core.Done{Text: "so"}, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := last.Recorded(b.Context(), 3); err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]task.Filter{"50": {}, "500": {Limit: 500}, "10-of-10000": {From: "bob"}, "none": {State: "failed"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := h.Tasks(b.Context(), core.Principal{Operator: true}, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFeeds is a question with ten pieces of an answer, while readers of all tasks look on.
func BenchmarkFeeds(b *testing.B) {
	for _, feeds := range []int{0, 1, 10} {
		b.Run(fmt.Sprint(feeds), func(b *testing.B) {
			h := hub.New(hub.Options{Journal: journal.NewMemory(journal.Retention{Bytes: 64 << 20})})
			agent, asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}})
			if err := agent.Join(core.Card{ID: "a", MaxConcurrent: 8}, hub.JoinOptions{}); err != nil {
				b.Fatal(err)
			}
			var readers sync.WaitGroup
			for range feeds {
				s := h.Connect(hub.Identity{Principal: core.Principal{ID: "op", Operator: true}})
				f, err := s.Feed("")
				if err != nil {
					b.Fatal(err)
				}
				readers.Go(func() {
					var text []byte
					for {
						batch, err := f.Next(context.Background())
						if err != nil {
							return
						}
						for _, e := range batch.Events {
							text = f.Append(text[:0], batch.Task, e)
						}
					}
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				one, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Keep: true, Unwatched: true})
				if err != nil {
					b.Fatal(err)
				}
				for range 10 {
					_ = agent.Report(one.ID(), core.Text{Text: "a piece"}, nil)
				}
				_ = agent.Report(one.ID(), core.Done{}, nil)
			}
			_ = h.Close(context.Background(), "over")
			readers.Wait()
		})
	}
}
