package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// newLogger returns a logger that writes lines of the level and above: as text if the writer is a terminal, else as
// JSON. It also makes controller-runtime and klog write to the same writer, through libraryLogHandler.
func newLogger(to io.Writer, level string) *slog.Logger {
	minLevel := map[string]slog.Level{"debug": slog.LevelDebug, "error": slog.LevelError}[level] // info is LevelInfo, the zero value
	handler := newHandler(to, minLevel, isTerminal(to))
	ctrl.SetLogger(logr.FromSlogHandler(libraryLogHandler{handler}))
	klog.SetSlogLogger(slog.New(libraryLogHandler{handler}))
	return slog.New(handler)
}

// newHandler returns a handler that shortens the values of attributes. It writes text with the time of day if asText is
// true, else JSON.
func newHandler(to io.Writer, minLevel slog.Level, asText bool) slog.Handler {
	if !asText {
		return slog.NewJSONHandler(to,
			&slog.HandlerOptions{Level: minLevel, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { return shorten(a) }})
	}
	return slog.NewTextHandler(to, &slog.HandlerOptions{Level: minLevel, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			return slog.String(a.Key, a.Value.Time().Format(time.TimeOnly))
		}
		return shorten(a)
	}})
}

// isTerminal reports whether w is a terminal or another character device.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
