package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestLogFormat: the log is JSON for programs, and text with the time of day for a terminal.
func TestLogFormat(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	slog.New(newHandler(&out, slog.LevelInfo, false)).Info("a b", "c", "d e")
	var line map[string]string
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["msg"] != "a b" || line["c"] != "d e" {
		t.Errorf("%q: %v; want JSON with msg and c", out.String(), err)
	}
	out.Reset()
	log := slog.New(newHandler(&out, slog.LevelInfo, true))
	log.Debug("hidden")
	log.Info("a b", "c", "d e")
	if want := `^time=\d\d:\d\d:\d\d level=INFO msg="a b" c="d e"\n$`; !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("%q, want %s", out.String(), want)
	}
}

// TestLogLinesAreBounded: long values of attributes are shortened, in both formats.
func TestLogLinesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 250_000)
	for _, asText := range []bool{false, true} {
		for name, value := range map[string]any{"text": long, "error": errors.New(long), "stringer": &url.URL{Path: long},
			"list": []string{"a", long}, "map": map[string]string{"a": long}} {
			var out bytes.Buffer
			slog.New(newHandler(&out, slog.LevelInfo, asText)).Info("a b", "c", value)
			if out.Len() > 4*maxText || // far less than long, escapes included
				!utf8.Valid(out.Bytes()) || !strings.Contains(out.String(), " bytes)") {
				t.Errorf("%s, as text %t: %d bytes, want a short line in UTF-8: %.200s", name, asText, out.Len(), out.String())
			}
		}
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if isTerminal(file) || isTerminal(&bytes.Buffer{}) {
		t.Error("isTerminal is true for a file or a buffer")
	}
	if device, err := os.Open(os.DevNull); err == nil {
		t.Cleanup(func() { _ = device.Close() })
		if !isTerminal(device) {
			t.Error("isTerminal is false for a character device")
		}
	}
}

// TestLogHasNoControlCharacters: control characters in texts of tenants and AWS are escaped or replaced.
func TestLogHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2Jb\u009b2Jc\u202ed\u2066e\x7ff"
	for _, asText := range []bool{false, true} {
		for name, value := range map[string]any{"text": hostile, "error": errors.New(hostile),
			"long": errors.New(hostile + strings.Repeat("x", maxText)),
			"list": []string{"a", hostile}, "struct": struct{ Name string }{hostile}} {
			var out bytes.Buffer
			slog.New(newHandler(&out, slog.LevelInfo, asText)).Info(hostile, "c", value)
			if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
				t.Errorf("%s, as text %t: the line has a control character: %q", name, asText, out.String())
			}
		}
	}
}
