package main

import (
	"context"
	"log/slog"
	"slices"
)

// quiet is a handler for the logs of libraries. It drops stack traces, and lines below warning unless the log level is
// debug, so that the log has mainly the controller's own decisions.
type quiet struct{ slog.Handler }

// Enabled reports whether a library's line of the level is written.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, level) && (level >= slog.LevelWarn || q.Handler.Enabled(ctx, slog.LevelDebug))
}

// Handle writes the line without stack traces.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if !slices.Contains([]string{"stacktrace", "stack"}, a.Key) {
			out.AddAttrs(a)
		}
		return true
	})
	return q.Handler.Handle(ctx, out)
}

// WithAttrs returns a quiet handler with the attributes.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup returns a quiet handler with the group.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
