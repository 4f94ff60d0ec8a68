package main

import (
	"context"
	"log/slog"
	"slices"
)

// libraryLogHandler is a handler for the logs of libraries. It drops stack traces, and lines below warning unless the
// log level is debug, so that the log has mainly the controller's own decisions.
type libraryLogHandler struct{ slog.Handler }

// Enabled reports whether a library's line of the level is written.
func (q libraryLogHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, level) && (level >= slog.LevelWarn || q.Handler.Enabled(ctx, slog.LevelDebug))
}

// Handle writes the line without stack traces.
func (q libraryLogHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if !slices.Contains([]string{"stacktrace", "stack"}, a.Key) {
			out.AddAttrs(a)
		}
		return true
	})
	return q.Handler.Handle(ctx, out)
}

// WithAttrs returns a libraryLogHandler with the attributes.
func (q libraryLogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return libraryLogHandler{q.Handler.WithAttrs(attrs)}
}

// WithGroup returns a libraryLogHandler with the group.
func (q libraryLogHandler) WithGroup(name string) slog.Handler {
	return libraryLogHandler{q.Handler.WithGroup(name)}
}
