package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnough checks the error for each amount of free disk space.
func TestEnough(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64]string{
		0:           "the lab needs 500 MB of free space under TMPDIR (/x), which has 0 MB: free some space, or set TMPDIR to another folder",
		60_999_999:  "the lab needs 500 MB of free space under TMPDIR (/x), which has 60 MB: free some space, or set TMPDIR to another folder",
		499_999_999: "the lab needs 500 MB of free space under TMPDIR (/x), which has 499 MB: free some space, or set TMPDIR to another folder",
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

// TestHomeWithoutFolder checks that TMPDIR must name an existing folder, and that NewHome does not create it.
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
			if err == nil || !strings.Contains(err.Error(), "TMPDIR ("+dir+") is not a folder") {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Errorf("%s was created", missing)
	}
}

// TestHome checks that NewHome creates a folder in TMPDIR, that Homes lists it, and that Remove deletes it.
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
		t.Errorf("the homes are %v (%v), want %s", alive, err, home.Path)
	}
	if err := home.Remove(); err != nil {
		t.Fatal(err)
	}
	if alive, err := Homes(); err != nil || len(alive) != 0 {
		t.Errorf("the homes are %v (%v) after Remove", alive, err)
	}
}
