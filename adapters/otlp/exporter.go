package otlp

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/trace"
)

// Options of an Exporter. Client, Count and Log are required.
type Options struct {
	// Client sends spans to the collector. The Exporter starts and stops it.
	Client otlptrace.Client
	// Hub is the id of the hub, and Version that of the program.
	Hub, Version string
	// Ratio is the share of new traces that is sampled, from 0 to 1.
	Ratio float64
	// Reader makes the spans.
	Reader trace.Reader
	// Positions has how far the Exporter was, so that what ended before a kill is exported after the
	// restart. Nil keeps none.
	Positions core.RecordLog
	// Count adds one to a named counter.
	Count func(name string)
	Log   *slog.Logger
}

// The bounds of an Exporter.
const (
	queueLength = 8192             // tasks that have ended and were not read yet
	batchSpans  = 512              // after which a batch is sent
	batchTime   = time.Second      // after which it is sent anyway
	sendTime    = 10 * time.Second // how long sending may take, with what is tried again
)

// dropped is the counter of tasks whose spans were not exported.
const dropped = "traces.dropped"

// Find returns the events of a task that has ended.
type Find func(context.Context, core.TaskID) (iter.Seq[core.Event], error)

// Exporter is a [policy.Tracer] that exports the spans of tasks. It is safe for concurrent use.
type Exporter struct {
	trace.Sampler
	opts     Options
	resource *resourcepb.Resource
	missed   chan []core.TaskID
	ended    chan ending
	stop     chan struct{}
	ctx      context.Context //nolint:containedctx // what is sent ends with Stop
	cancel   context.CancelFunc
	running  sync.WaitGroup
	once     sync.Once

	// Of the goroutine.
	position position
	batch    []*tracepb.Span
	tasks    int       // in the batch
	last     time.Time // when the last task ended that was taken
	away     bool
}

// New returns an Exporter, which takes tasks at once and exports them from Start on.
func New(ctx context.Context, o Options) (*Exporter, error) {
	r, err := resourceOf(ctx, o)
	if err != nil {
		return nil, err
	}
	at, err := openPosition(ctx, o.Positions)
	if err != nil {
		return nil, err
	}
	if err := o.Client.Start(ctx); err != nil {
		return nil, err
	}
	e := &Exporter{Sampler: trace.NewSampler(o.Ratio), opts: o, resource: r, position: at, missed: make(chan []core.TaskID, 1), ended: make(chan ending, queueLength), stop: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return e, nil
}

// ending is a task that ended, and about when.
type ending struct {
	task core.TaskID
	at   time.Time
}

// Ended implements part of [policy.Tracer].
func (e *Exporter) Ended(id core.TaskID) {
	select {
	case e.ended <- ending{id, time.Now()}:
	default:
		e.opts.Count(dropped)
	}
}

// Start begins to export.
func (e *Exporter) Start(find Find) { e.running.Go(func() { e.run(find) }) }

// Stop exports what is left until ctx ends, and ends the Exporter.
func (e *Exporter) Stop(ctx context.Context) {
	e.once.Do(func() {
		close(e.stop)
		late := context.AfterFunc(ctx, e.cancel)
		e.running.Wait()
		late()
		e.cancel()
		_ = e.opts.Client.Stop(ctx) // it closes nothing that could fail
	})
}

func (e *Exporter) run(find Find) {
	flush := time.NewTimer(time.Hour)
	defer flush.Stop()
	for {
		select {
		case end := <-e.ended:
			if len(e.batch) == 0 {
				flush.Reset(batchTime)
			}
			e.takeMissed(find)
			e.take(find, end.task)
			e.last = end.at
		case all := <-e.missed:
			e.takeAll(find, all)
			flush.Reset(batchTime)
		case <-flush.C:
			e.send()
		case <-e.stop:
			e.takeMissed(find)
			for {
				select {
				case end := <-e.ended:
					e.take(find, end.task)
					continue
				default:
				}
				break
			}
			e.send()
			if e.ctx.Err() == nil { // all were taken, and none ends any more
				e.logPosition(e.position.note(e.ctx, time.Now()))
			}
			return
		}
	}
}

// take adds the spans of a task to the batch, and sends it once it is full.
func (e *Exporter) take(find Find, id core.TaskID) {
	events, err := find(e.ctx, id)
	if err != nil {
		e.opts.Count(dropped)
		e.opts.Log.Debug("a task could not be read for its trace", "task", id, "error", err)
		return
	}
	spans := e.opts.Reader.Spans(events)
	if len(spans) == 0 {
		return
	}
	for _, s := range spans {
		e.batch = append(e.batch, spanOf(s))
	}
	e.tasks++
	if len(e.batch) >= batchSpans {
		e.send()
	}
}

// send sends the batch.
func (e *Exporter) send() {
	if len(e.batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, sendTime)
	defer cancel()
	err := e.opts.Client.UploadTraces(ctx, []*tracepb.ResourceSpans{{Resource: e.resource, ScopeSpans: []*tracepb.ScopeSpans{{Scope: scope(e.opts.Version), Spans: e.batch}}}})
	switch {
	case err != nil:
		for range e.tasks {
			e.opts.Count(dropped)
		}
		if !e.away {
			e.opts.Log.Warn("traces are dropped: the collector does not take them", "tasks", e.tasks, "error", err)
		}
	case e.away:
		e.opts.Log.Info("the collector takes traces again")
	}
	e.away = err != nil
	e.batch, e.tasks = nil, 0
	if e.ctx.Err() == nil {
		e.logPosition(e.position.advance(e.ctx, e.last))
	}
}

func (e *Exporter) logPosition(err error) {
	if err != nil {
		e.opts.Log.Debug("how far traces are exported was not recorded", "error", err)
	}
}
