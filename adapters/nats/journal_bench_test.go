package nats_test

import (
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// question is what a journal sees of a task that is asked and answered at once.
func question() []journal.Record {
	at, task := time.Now(), core.TaskID(core.NewID())
	var records []journal.Record
	for i, body := range []core.Body{
		core.Opened{Task: task, From: core.Principal{ID: "pi-3", Dialect: "pi"}, Request: core.Request{
			Intent: core.IntentAsk, To: core.ToAgent("agent"), Thread: core.ThreadID(core.NewID()), Content: "What is the answer?", Deadline: at.Add(time.Minute),
		}},
		core.Assigned{Agent: "agent", Attempt: 1}, core.Accepted{}, core.Text{Text: "forty-two"}, core.Done{},
	} {
		records = append(records, journal.Record{Task: task, Event: core.Event{Seq: uint64(i + 1), Epoch: 1, At: at, Body: body}})
	}
	return records
}

// ask appends so many questions, a dozen at a time, and returns their tasks.
func ask(b *testing.B, j *nats.Journal, questions int) (tasks []core.TaskID) {
	b.Helper()
	for len(tasks) < questions {
		var records []journal.Record
		for range min(12, questions-len(tasks)) {
			q := question()
			tasks, records = append(tasks, q[0].Task), append(records, q...)
		}
		if err := j.Append(b.Context(), records...); err != nil {
			b.Fatal(err)
		}
	}
	return tasks
}

func openBench(b *testing.B) *nats.Journal {
	b.Helper()
	j, err := nats.Open(b.Context(), nats.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() })
	return j
}

// BenchmarkQuestions is what the tasks of a busy hub cost the journal.
func BenchmarkQuestions(b *testing.B) {
	j := openBench(b)
	b.ReportAllocs()
	b.ResetTimer()
	ask(b, j, b.N)
}

// BenchmarkAppendOne is how long one record takes, alone and in a cluster of three hubs whose
// servers run in this process.
func BenchmarkAppendOne(b *testing.B) {
	b.Run("alone", func(b *testing.B) { appendOne(b, openBench(b)) })
	b.Run("cluster", func(b *testing.B) {
		a := formed(b, nil)["a"]
		ledElsewhere(b, a, "a")
		b.ResetTimer()
		appendOne(b, a)
	})
}

func appendOne(b *testing.B, j *nats.Journal) {
	b.Helper()
	var took []time.Duration
	event := core.Event{Epoch: 1, At: time.Now(), Body: core.Text{Text: strings.Repeat("x", 200)}}
	for b.Loop() {
		event.Seq++
		begin := time.Now()
		if err := j.Append(b.Context(), journal.Record{Task: "t", Event: event}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkReadAmongMany finds a task among 200,000.
func BenchmarkReadAmongMany(b *testing.B) {
	j := openBench(b)
	tasks := ask(b, j, 200_000)
	for name, from := range map[string]int{"early": 1000, "middle": 100_000, "late": 199_000} {
		b.Run(name, func(b *testing.B) {
			n := from
			for b.Loop() {
				n = (n + 7) % len(tasks)
				if events, err := j.Read(b.Context(), tasks[n], 0, 0); err != nil || len(events) != 5 {
					b.Fatalf("got %d events and %v, want 5", len(events), err)
				}
			}
		})
	}
	b.Run("unknown", func(b *testing.B) {
		for b.Loop() {
			if _, err := j.Read(b.Context(), tasks[100_000][:30]+"ffffff", 0, 0); err == nil {
				b.Fatal("got no error, want one")
			}
		}
	})
}

// BenchmarkReadOneOfThoseThatRun finds tasks that a hub has worked on at the same time: between two
// events of each are those of 300 others.
func BenchmarkReadOneOfThoseThatRun(b *testing.B) {
	j := openBench(b)
	var tasks [300][]journal.Record
	for i := range tasks {
		tasks[i] = question()
	}
	for event := range tasks[0] {
		for _, t := range tasks {
			if err := j.Append(b.Context(), t[event]); err != nil {
				b.Fatal(err)
			}
		}
	}
	n := 0
	for b.Loop() {
		n = (n + 7) % len(tasks)
		if events, err := j.Read(b.Context(), tasks[n][0].Task, 0, 0); err != nil || len(events) != 5 {
			b.Fatalf("got %d events and %v, want 5", len(events), err)
		}
	}
}

// longAnswers appends answers of so many parts of 4 KB that are written at the same time.
func longAnswers(tb testing.TB, j *nats.Journal, answers, parts int) [][]journal.Record {
	tb.Helper()
	tasks := make([][]journal.Record, answers)
	for i := range tasks {
		q := question()[:3]
		add := func(body core.Body) {
			q = append(q, journal.Record{Task: q[0].Task, Event: core.Event{Seq: q[len(q)-1].Event.End() + 1, Epoch: 1, At: q[0].Event.At, Body: body}})
		}
		for range parts {
			add(core.Text{Text: strings.Repeat("and so on ", 400)})
		}
		add(core.Done{})
		tasks[i] = q
	}
	for event := range tasks[0] {
		for _, t := range tasks {
			if err := j.Append(tb.Context(), t[event]); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return tasks
}

// readAtOnce reads tasks at the same time.
func readAtOnce(tb testing.TB, j *nats.Journal, tasks [][]journal.Record) {
	tb.Helper()
	var all sync.WaitGroup
	for _, t := range tasks {
		all.Go(func() {
			if events, err := j.Read(tb.Context(), t[0].Task, 0, 0); err != nil || len(events) != len(t) {
				tb.Errorf("got %d events and %v, want %d", len(events), err, len(t))
			}
		})
	}
	all.Wait()
}

// BenchmarkReadsAtOnce reads 64 long answers at the same time, which were written at the same time: who
// reads one passes over parts of all. MiB is how much the heap has at the most, with what is not collected yet.
func BenchmarkReadsAtOnce(b *testing.B) {
	j := openBench(b)
	tasks := longAnswers(b, j, 64, 32)
	most := make(chan uint64)
	done := make(chan struct{})
	go func() {
		var at uint64
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			select {
			case <-time.After(time.Millisecond):
				metrics.Read(heap)
				at = max(at, heap[0].Value.Uint64())
			case <-done:
				most <- at
				return
			}
		}
	}()
	for b.Loop() {
		readAtOnce(b, j, tasks)
	}
	close(done)
	b.ReportMetric(float64(<-most)/(1<<20), "MiB")
}

// BenchmarkHeads is how long a start looks through 100,000 tasks.
func BenchmarkHeads(b *testing.B) {
	j := openBench(b)
	ask(b, j, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		wantHeads(b, j, 100_000)
	}
}

// BenchmarkStart is how long it takes to open a store of 100,000 tasks, and to look
// through it.
func BenchmarkStart(b *testing.B) {
	o := nats.Options{Dir: b.TempDir()}
	start := func() *nats.Journal {
		j, err := nats.Open(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		return j
	}
	j := start()
	ask(b, j, 100_000)
	stop := func() {
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
	stop()
	b.ReportAllocs()
	for b.Loop() {
		j = start()
		wantHeads(b, j, 100_000)
		b.StopTimer()
		stop()
		b.StartTimer()
	}
}

// BenchmarkTakeOver is how long the heir of a hub takes to know its open tasks, in a journal of 100 MB.
// The whole journal is read where the owner was not written again.
func BenchmarkTakeOver(b *testing.B) {
	for name, ownerBytes := range map[string]int64{"whole": 1 << 40, "open": 16 << 20} {
		b.Run(name, func(b *testing.B) {
			at := external(b).ClientURL()
			open := func(hub string) *nats.Journal {
				j, err := nats.Open(b.Context(), nats.Options{URL: at, Name: hub, Cluster: &nats.Cluster{Name: "bench"}})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = j.Close() })
				return j
			}
			heir, of := open("b"), open("a")
			of.SetOwnerBytes(ownerBytes)
			wantHeads(b, of, 0)
			const bytes, answer = 100 << 20, 4 << 10
			for written := 0; written < bytes; {
				var records []journal.Record
				for range 12 {
					q := question()
					q[3].Event.Body = core.Text{Text: strings.Repeat("x", answer)}
					records, written = append(records, q...), written+answer
				}
				if err := of.Append(b.Context(), records...); err != nil {
					b.Fatal(err)
				}
			}
			if err := of.Append(b.Context(), question()[:3]...); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				e, err := heir.TakeOver(b.Context(), of.Life())
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				if err := e.Heads(b.Context(), func(journal.Head) bool { n++; return true }); err != nil || n != 1 {
					b.Fatalf("got %d open tasks and %v, want 1", n, err)
				}
			}
		})
	}
}

// wantHeads reads the heads of a journal of so many tasks, all of which have an end.
func wantHeads(b *testing.B, j *nats.Journal, tasks int) {
	b.Helper()
	n := 0
	if err := j.Heads(b.Context(), func(journal.Head) bool { n++; return true }); err != nil || n < min(tasks, journal.LatestHeads) || n > tasks {
		b.Fatalf("got %d heads of %d tasks and %v, want at least %d", n, tasks, err, min(tasks, journal.LatestHeads))
	}
}
