package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestBundleInReadOnlyFolder: in a read-only folder, an existing writable file is overwritten. A missing or read-only
// file is an error.
func TestBundleInReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("the mode of a folder does not restrict root, nor any user on Windows")
	}
	folder := t.TempDir()
	writable, readOnly := filepath.Join(folder, "writable.json"), filepath.Join(folder, "readonly.json")
	for path, mode := range map[string]os.FileMode{writable: 0o600, readOnly: 0o400} {
		if err := os.WriteFile(path, []byte("a previous bundle that is longer than the new one"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) // so that the test can remove the folder
	if err := writeBundle(writable, []byte("{}")); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(writable); err != nil || string(got) != "{}" {
		t.Errorf("the writable file has %q (%v), want {}", got, err)
	}
	for _, path := range []string{readOnly, filepath.Join(folder, "missing.json")} {
		want := "write bundle: " + path + ": permission denied"
		if err := writeBundle(path, []byte("{}")); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
