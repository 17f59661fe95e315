package trace

import (
	"context"
	"log/slog"

	"github.com/dragoman-hub/dragoman/core"
)

// LogHandler returns a handler that adds trace_id to the records with a task that is in a trace.
// idOf returns the id of the trace that a task is in, "" for none.
func LogHandler(next slog.Handler, idOf func(core.TaskID) string) slog.Handler {
	return logHandler{next, idOf}
}

type logHandler struct {
	slog.Handler
	idOf func(core.TaskID) string
}

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	var id string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "task" {
			id = h.idOf(core.TaskID(a.Value.String()))
		}
		return id == ""
	})
	if id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := h.Handler.WithAttrs(attrs)
	for _, a := range attrs {
		if a.Key != "task" {
			continue
		}
		if id := h.idOf(core.TaskID(a.Value.String())); id != "" {
			next = next.WithAttrs([]slog.Attr{slog.String("trace_id", id)})
		}
	}
	return logHandler{next, h.idOf}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name), h.idOf}
}
