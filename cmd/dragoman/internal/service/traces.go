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

// collectorOf returns the URL of the collector; nil for none. The environment may be meant for
// another program: what the hub cannot use of it, why says.
func collectorOf(c config.Traces) (at *url.URL, why string) {
	endpoint := c.Endpoint
	if endpoint == "" {
		exporters, set := os.LookupEnv("OTEL_TRACES_EXPORTER")
		if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || set && exporters != "" && !strings.Contains(exporters, "otlp") {
			return nil, ""
		}
		endpoint = cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	}
	if endpoint == "" {
		return nil, ""
	}
	const instead = ": name a collector for OTLP over HTTP with traces.endpoint, such as http://127.0.0.1:4318"
	if protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); protocol == "grpc" && c.Endpoint == "" {
		return nil, "the environment wants OTLP over gRPC" + instead
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Sprintf("%q is no URL of a collector", endpoint) + instead
	}
	return at, ""
}

// openTraces makes the tracer of the hub where there is a collector.
func (s *Service) openTraces(ctx context.Context, o *hub.Options) error {
	c := s.config.Traces
	at, why := collectorOf(c)
	switch {
	case why != "" && c.Endpoint != "":
		return fmt.Errorf("%s: %s", s.config.At("traces.endpoint").Where(), why)
	case why != "":
		s.log.Warn("traces are not exported", "why", why)
	}
	if at == nil {
		return nil
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
	var err error
	s.traces, err = otlp.New(ctx, otlp.Options{
		Client: otlptracehttp.NewClient(options...), Hub: o.ID, Version: Version, Ratio: c.Ratio, Log: s.log, Positions: s.records(traceRecords),
		Reader: trace.Reader{
			Translations: translations(), Content: c.Content, Redact: s.redactor.Load,
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
	return core.TraceFrom(metadata.ValueFromIncomingContext(ctx, core.TraceparentKey), metadata.ValueFromIncomingContext(ctx, core.TracestateKey))
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
