package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnough: a lab does not begin what its disk has no room for.
func TestEnough(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64]string{
		0:           "the lab needs 500 MB under TMPDIR (/x), and there are 0 MB: make room, or set TMPDIR to another folder",
		60_999_999:  "the lab needs 500 MB under TMPDIR (/x), and there are 60 MB: make room, or set TMPDIR to another folder",
		499_999_999: "the lab needs 500 MB under TMPDIR (/x), and there are 499 MB: make room, or set TMPDIR to another folder",
		500_000_000: "",
		1 << 63:     "",
	} {
		got := ""
		if err := enough("/x", free); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d bytes: %q, want %q", free, got, want)
		}
	}
}

// TestHomeWithoutFolder: what TMPDIR names must be there and be a folder, and is not made.
func TestHomeWithoutFolder(t *testing.T) {
	base := t.TempDir()
	file, missing := filepath.Join(base, "file"), filepath.Join(base, "missing")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, missing} {
		t.Setenv("TMPDIR", dir)
		_, err := NewHome()
		_, listed := Homes()
		for _, err := range []error{err, listed} {
			if err == nil || !strings.Contains(err.Error(), "TMPDIR ("+dir+") is none") {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Errorf("%s was made", missing)
	}
}

// TestHome: a folder is made where TMPDIR says, is among those that are alive, and goes.
func TestHome(t *testing.T) {
	base := t.TempDir()
	if err := hasRoom(base); err != nil {
		t.Skip(err)
	}
	t.Setenv("TMPDIR", base)
	home, err := NewHome()
	if err != nil {
		t.Fatal(err)
	}
	if alive, err := Homes(); err != nil || len(alive) != 1 || alive[0] != home.Path || !strings.HasPrefix(home.Path, base) {
		t.Errorf("alive are %v (%v), want %s", alive, err, home.Path)
	}
	if err := home.Remove(); err != nil {
		t.Fatal(err)
	}
	if alive, err := Homes(); err != nil || len(alive) != 0 {
		t.Errorf("alive are %v (%v) after the end", alive, err)
	}
}
