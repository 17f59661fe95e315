package otlp

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dragoman-hub/dragoman/core/trace"
)

// resourceOf describes the hub. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first.
func resourceOf(ctx context.Context, o Options) (*resourcepb.Resource, error) {
	r, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "dragoman"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Hub),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	out := &resourcepb.Resource{}
	for _, a := range r.Attributes() {
		out.Attributes = append(out.Attributes, pair(string(a.Key), a.Value.String()))
	}
	return out, nil
}

func scope(version string) *commonpb.InstrumentationScope {
	return &commonpb.InstrumentationScope{Name: "github.com/dragoman-hub/dragoman", Version: version}
}

// spanOf returns a span as OTLP has it.
func spanOf(s trace.Span) *tracepb.Span {
	out := &tracepb.Span{
		TraceId: s.Trace[:], SpanId: s.ID[:], TraceState: s.State, Name: s.Name, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanos(s.Start), EndTimeUnixNano: nanos(s.End), Attributes: pairs(s.Attributes), Status: &tracepb.Status{},
		Flags: uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK) | 1, // sampled
	}
	if s.Parent != [8]byte{} {
		out.ParentSpanId = s.Parent[:]
	}
	if s.IsClient {
		out.Kind = tracepb.Span_SPAN_KIND_CLIENT
	}
	if s.Failed {
		out.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.Message}
	}
	for _, m := range s.Moments {
		out.Events = append(out.Events, &tracepb.Span_Event{Name: m.Name, TimeUnixNano: nanos(m.At), Attributes: pairs(m.Attributes)})
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, &tracepb.Span_Link{TraceId: l.Trace[:], SpanId: l.ID[:]})
	}
	return out
}

// nanos returns the time as OTLP has it: never before 1970.
func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) } //nolint:gosec // not negative

func pairs(all []trace.Attribute) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(all))
	for _, a := range all {
		out = append(out, pair(a.Key, a.Value))
	}
	return out
}

func pair(key string, value any) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: anyOf(value)}
}

func anyOf(value any) *commonpb.AnyValue {
	switch v := value.(type) {
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	case int64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}}
	case []string:
		list := &commonpb.ArrayValue{}
		for _, one := range v {
			list.Values = append(list.Values, anyOf(one))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	case string:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}
	}
	return &commonpb.AnyValue{}
}
