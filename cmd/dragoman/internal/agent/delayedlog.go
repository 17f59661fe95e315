package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// DelayedLog drops everything until Begun is set. Before an agent has joined, the server may
// not be a hub, and what a dialect logs about its frames is noise.
type DelayedLog struct {
	slog.Handler
	Begun *atomic.Bool
}

// Enabled implements slog.Handler.
func (l *DelayedLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.Begun.Load() && l.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (l *DelayedLog) WithAttrs(all []slog.Attr) slog.Handler {
	return &DelayedLog{l.Handler.WithAttrs(all), l.Begun}
}

// WithGroup implements slog.Handler.
func (l *DelayedLog) WithGroup(name string) slog.Handler {
	return &DelayedLog{l.Handler.WithGroup(name), l.Begun}
}
