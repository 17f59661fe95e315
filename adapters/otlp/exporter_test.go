package otlp_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/otlp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector is a client of OTLP that keeps what is sent, or refuses it, or hangs.
type collector struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	batches int
	refuses error
	hangs   bool
}

func (c *collector) Start(context.Context) error { return nil }
func (c *collector) Stop(context.Context) error  { return nil }

func (c *collector) UploadTraces(ctx context.Context, all []*tracepb.ResourceSpans) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if c.refuses != nil {
		return c.refuses
	}
	c.batches++
	for _, r := range all {
		for _, s := range r.GetScopeSpans() {
			c.spans = append(c.spans, s.GetSpans()...)
		}
	}
	return nil
}

// bench has an exporter with a collector.
type bench struct {
	*otlp.Exporter
	to      collector
	dropped atomic.Int64
	traces  map[core.TaskID]core.Trace
}

func newBench(t *testing.T) *bench { return newBenchAt(t, nil) }

// newBenchAt returns a bench whose exporter keeps its position.
func newBenchAt(t *testing.T, positions core.RecordLog) *bench {
	b := &bench{traces: map[core.TaskID]core.Trace{}}
	e, err := otlp.New(t.Context(), otlp.Options{Positions: positions, Client: &b.to, Hub: "h", Version: "v", Ratio: 1, Log: slog.New(slog.DiscardHandler), Count: func(name string) {
		if name != "traces.dropped" {
			t.Errorf("counted %q, want traces.dropped", name)
		}
		b.dropped.Add(1)
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.Exporter = e
	return b
}

func (b *bench) find(_ context.Context, id core.TaskID) (iter.Seq[core.Event], error) {
	in, known := b.traces[id]
	if !known {
		return nil, errors.New("unknown")
	}
	at := time.Unix(1, 0)
	return slices.Values([]core.Event{
		{Seq: 1, Epoch: 1, At: at, Body: core.Opened{Task: id, From: core.Principal{ID: "ana"}, Request: core.Request{To: core.ToAgent("shout")}, Trace: in}},
		{Seq: 2, Epoch: 1, At: at.Add(time.Second), Body: core.Done{}},
	}), nil
}

func TestTheSpansOfATaskThatEndedReachTheCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.traces["t"], b.traces["unsampled"] = b.Open(policy.Opening{}), core.Trace{}
		b.Start(b.find)
		b.Ended("t")
		b.Ended("unsampled")
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		b.to.mu.Lock()
		n := len(b.to.spans)
		b.to.mu.Unlock()
		if n != 1 {
			t.Fatalf("got %d spans a second later, want 1", n)
		}
		s, own := b.to.spans[0], b.traces["t"]
		if is, _ := own.Span(); s.GetName() != "invoke_agent shout" || !slices.Equal(s.GetTraceId(), is.Trace[:]) || !slices.Equal(s.GetSpanId(), is.ID[:]) || s.GetKind() != tracepb.Span_SPAN_KIND_CLIENT ||
			s.GetStartTimeUnixNano() != 1e9 || s.GetEndTimeUnixNano() != 2e9 || len(s.GetParentSpanId()) != 0 {
			t.Errorf("got %v, want that of the task", s)
		}
		b.Stop(t.Context())
	})
}

func TestWhatIsLeftIsExportedAtTheEnd(t *testing.T) {
	b := newBench(t)
	b.traces["t"] = b.Open(policy.Opening{})
	const n = 1000
	for range n {
		b.Ended("t")
	}
	b.Start(b.find)
	b.Stop(t.Context())
	if len(b.to.spans) != n || b.to.batches != 2 || b.dropped.Load() != 0 {
		t.Errorf("got %d spans in %d batches and %d dropped, want %d in 2 and none", len(b.to.spans), b.to.batches, b.dropped.Load(), n)
	}
}

func TestWhatTheQueueHasNoRoomForIsCounted(t *testing.T) {
	b := newBench(t)
	b.traces["t"] = b.Open(policy.Opening{})
	for range 10_000 {
		b.Ended("t") // nothing reads yet
	}
	b.Start(b.find)
	b.Stop(t.Context())
	if got := int64(len(b.to.spans)) + b.dropped.Load(); got != 10_000 || b.dropped.Load() == 0 {
		t.Errorf("got %d spans and %d dropped, want 10000 together", len(b.to.spans), b.dropped.Load())
	}
}

func TestACollectorThatRefusesOrIsAwayCostsOnlyTraces(t *testing.T) {
	b := newBench(t)
	b.to.refuses = errors.New("503")
	b.traces["t"] = b.Open(policy.Opening{})
	b.Ended("t")
	b.Ended("gone from the journal")
	b.Start(b.find)
	b.Stop(t.Context())
	if got := b.dropped.Load(); got != 2 || len(b.to.spans) != 0 {
		t.Errorf("got %d dropped and %d spans, want 2 and none", got, len(b.to.spans))
	}
}

func TestACollectorThatHangsDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.to.hangs = true
		b.traces["t"] = b.Open(policy.Opening{})
		b.Ended("t")
		b.Start(b.find)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		b.Stop(ctx)
		if took := time.Since(begun); took > 3*time.Second || b.dropped.Load() != 1 {
			t.Errorf("stopped after %s with %d dropped, want at most 3s and 1", took, b.dropped.Load())
		}
	})
}
