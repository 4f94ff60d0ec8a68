package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestLogIsForItsReader: programs read JSON, people a line of text with the time of day.
func TestLogIsForItsReader(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	slog.New(newHandler(&out, slog.LevelInfo, false)).Info("a b", "c", "d e")
	var line map[string]string
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["msg"] != "a b" || line["c"] != "d e" {
		t.Errorf("%q: %v", out.String(), err)
	}
	out.Reset()
	log := slog.New(newHandler(&out, slog.LevelInfo, true))
	log.Debug("hidden")
	log.Info("a b", "c", "d e")
	if want := `^time=\d\d:\d\d:\d\d level=INFO msg="a b" c="d e"\n$`; !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("%q, want %s", out.String(), want)
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
		t.Error("a file is taken for a terminal")
	}
	if device, err := os.Open(os.DevNull); err == nil {
		t.Cleanup(func() { _ = device.Close() })
		if !isTerminal(device) {
			t.Error("a device is taken for a file")
		}
	}
}
