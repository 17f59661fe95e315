package service

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/adapters/otlp"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/trace"
)

// tracesTime is how long the last traces may take when the hub stops.
const tracesTime = 3 * time.Second

// traceRecords is the log of how far traces were exported, and traceRecordBytes bounds it: only the
// last record counts.
const (
	traceRecords     = "traces"
	traceRecordBytes = 64 << 10
)

// collectorOf returns the URL of the collector; "" for none.
func collectorOf(c config.Traces) string {
	if c.Endpoint == "" && strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return ""
	}
	return cmp.Or(c.Endpoint, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

// openTraces makes the tracer of the hub where there is a collector.
func (s *Service) openTraces(ctx context.Context, o *hub.Options) error {
	c := s.config.Traces
	from := "OTEL_EXPORTER_OTLP_ENDPOINT"
	if c.Endpoint != "" {
		from = s.config.At("traces.endpoint").Where()
	}
	endpoint := collectorOf(c)
	if endpoint == "" {
		return nil
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" {
		return fmt.Errorf("%s: want the URL of a collector such as http://127.0.0.1:4318, got %q", from, endpoint)
	}
	options := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: 200 * time.Millisecond, MaxInterval: 2 * time.Second, MaxElapsedTime: 5 * time.Second,
	})}
	if c.Endpoint != "" { // else the client reads the environment
		const path = "/v1/traces"
		if !strings.HasSuffix(at.Path, path) {
			at = at.JoinPath(path)
		}
		options = append(options, otlptracehttp.WithEndpointURL(at.String()))
	}
	s.traces, err = otlp.New(ctx, otlp.Options{
		Client: otlptracehttp.NewClient(options...), Hub: o.ID, Version: Version, Ratio: c.Ratio, Log: s.log, Positions: s.records(traceRecords),
		Reader: trace.Reader{
			DialectOf: func(id core.AgentID) string { return s.hub.DialectOf(id) }, Loses: losses(),
			Content: c.Content, Redact: s.redactor.Load,
		},
		Count: func(name string) {
			if h := s.counted.Load(); h != nil {
				h.Count(name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	o.Tracer = s.traces
	s.log.Info("traces are exported", "to", at.Host, "ratio", c.Ratio)
	return nil
}

// traceOf returns the trace context of a gRPC call. That of a stream on which many tasks go is the
// context of its connection, and that of none of them.
func traceOf(ctx context.Context) core.Trace {
	return core.TraceOf(func(key string) []string { return metadata.ValueFromIncomingContext(ctx, key) })
}

// traceID returns the id of the trace that a task is in, for the log.
func (s *Service) traceID(task core.TaskID) string {
	if h := s.counted.Load(); h != nil {
		return h.TraceID(task)
	}
	return ""
}

// closeTraces exports the last traces.
func (s *Service) closeTraces() {
	if s.traces != nil {
		ctx, cancel := context.WithTimeout(context.Background(), tracesTime)
		defer cancel()
		s.traces.Stop(ctx)
	}
}

// losses returns what tells which kinds of an agent's dialect are folded or refused on the way to
// a requester's.
func losses() func(agent, requester string, k core.Kind) bool {
	all := map[string]core.Translation{}
	for _, d := range Dialects() {
		all[d.Name] = d.Translation
	}
	loses := func(t core.Table, k core.Kind) bool {
		how := t[k].How
		return how == core.Folded || how == core.Refused
	}
	return func(agent, requester string, k core.Kind) bool {
		return agent != requester && (loses(all[agent].FromAgent, k) || loses(all[requester].ToRequester, k))
	}
}
