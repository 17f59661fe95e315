package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// LateLog is a log that says nothing until it has begun: what a dialect makes of
// frames of another server is told in one line when it gives up.
type LateLog struct {
	slog.Handler
	Begun *atomic.Bool
}

// Enabled implements slog.Handler.
func (l *LateLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.Begun.Load() && l.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (l *LateLog) WithAttrs(all []slog.Attr) slog.Handler {
	return &LateLog{l.Handler.WithAttrs(all), l.Begun}
}

// WithGroup implements slog.Handler.
func (l *LateLog) WithGroup(name string) slog.Handler {
	return &LateLog{l.Handler.WithGroup(name), l.Begun}
}
