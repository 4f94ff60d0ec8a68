package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckFree checks that less than 500 MB of free disk space is an error, and that its text has both numbers.
func TestCheckFree(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64]string{
		0:           "the lab needs 500 MB of free space under TMPDIR (/x), which has 0 MB: free some space, or set TMPDIR to another folder",
		60_999_999:  "the lab needs 500 MB of free space under TMPDIR (/x), which has 60 MB: free some space, or set TMPDIR to another folder",
		499_999_999: "the lab needs 500 MB of free space under TMPDIR (/x), which has 499 MB: free some space, or set TMPDIR to another folder",
		500_000_000: "", // no error
		1 << 63:     "",
	} {
		got := ""
		if err := checkFree("/x", free); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d free bytes: error %q, want %q", free, got, want)
		}
	}
}

// TestHomeWithoutFolder checks that TMPDIR must be an existing folder, and that a missing folder is not created.
func TestHomeWithoutFolder(t *testing.T) {
	base := t.TempDir()
	file, missing := filepath.Join(base, "file"), filepath.Join(base, "missing")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, missing} {
		t.Setenv("TMPDIR", dir)
		_, newErr := NewHome()
		_, listErr := Homes()
		for _, err := range []error{newErr, listErr} {
			if err == nil || !strings.Contains(err.Error(), "TMPDIR ("+dir+") is not a folder") {
				t.Errorf("%s: error %v, want that TMPDIR is not a folder", dir, err)
			}
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Errorf("NewHome or Homes created %s, want an error only", missing)
	}
}

// TestHome checks that NewHome creates a folder in TMPDIR, that Homes lists it, and that Remove deletes it.
func TestHome(t *testing.T) {
	base := t.TempDir()
	if err := checkFreeSpace(base); err != nil {
		t.Skip(err)
	}
	t.Setenv("TMPDIR", base)
	home, err := NewHome()
	if err != nil {
		t.Fatal(err)
	}
	if running, err := Homes(); err != nil || len(running) != 1 || running[0] != home.Path || !strings.HasPrefix(home.Path, base) {
		t.Errorf("the homes are %v (%v), want %s", running, err, home.Path)
	}
	if err := home.Remove(); err != nil {
		t.Fatal(err)
	}
	if running, err := Homes(); err != nil || len(running) != 0 {
		t.Errorf("the homes are %v (%v) after Remove, want none", running, err)
	}
}
