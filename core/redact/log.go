package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a handler that gives records to next without what is redacted, in messages
// and in values. now returns the Redactor that holds, nil for none.
func Handler(next slog.Handler, now func() *Redactor) slog.Handler { return handler{next, now} }

type handler struct {
	slog.Handler
	now func() *Redactor
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, from slog.Record) error {
	r := h.now()
	if r == nil {
		return h.Handler.Handle(ctx, from)
	}
	to := slog.NewRecord(from.Time, from.Level, r.Text(from.Message), from.PC)
	from.Attrs(func(a slog.Attr) bool {
		to.AddAttrs(r.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, to)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	r, clean := h.now(), make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = r.attr(a)
	}
	return handler{h.Handler.WithAttrs(clean), h.now}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.now}
}

// attr returns an attribute without what is redacted. A value that is neither text nor a number
// becomes text if its text has something to redact.
func (r *Redactor) attr(a slog.Attr) slog.Attr {
	if r == nil {
		return a
	}
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(r.Text(v.String()))
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, g := range group {
			clean[i] = r.attr(g)
		}
		a.Value = slog.GroupValue(clean...)
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if raw, ok := v.Any().([]byte); ok {
			text = string(raw)
		}
		if clean := r.Text(text); clean != text {
			a.Value = slog.StringValue(clean)
		}
	}
	return a
}
