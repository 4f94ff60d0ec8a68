package inputfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRead: a file is read whole; an endless file is refused.
func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(path); err != nil || string(text) != "a: 1\n" {
		t.Errorf("read %q, %v; want the whole file", text, err)
	}
	if _, err := Read("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero is too large: a file may have at most 256 MiB") {
		t.Errorf("/dev/zero: error %v, want that it is too large", err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "absent")); !os.IsNotExist(err) {
		t.Errorf("a missing file: error %v, want os.ErrNotExist", err)
	}
}
