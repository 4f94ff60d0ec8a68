package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestBundleInClosedFolder: an existing writable file is overwritten although its folder is read-only. A missing or read-only file is an
// error.
func TestBundleInClosedFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("no folder is closed to root, nor by its mode on Windows")
	}
	folder := t.TempDir()
	open, closed := filepath.Join(folder, "open.json"), filepath.Join(folder, "closed.json")
	for path, mode := range map[string]os.FileMode{open: 0o600, closed: 0o400} {
		if err := os.WriteFile(path, []byte("something longer that was there before"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) // so that it can be removed
	if err := writeBundle(open, []byte("{}")); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(open); err != nil || string(got) != "{}" {
		t.Errorf("the file has %q (%v), want {}", got, err)
	}
	for _, path := range []string{closed, filepath.Join(folder, "none.json")} {
		want := "write bundle: " + path + ": permission denied"
		if err := writeBundle(path, []byte("{}")); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
