package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	e.read += len(p)
	return len(p), nil
}

// TestStreams: a file that is too large, not regular or in UTF-16 is rejected with the cause.
func TestStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := write("big.yaml", "#"+strings.Repeat("x", maxBytes))
	// 4 bytes per line: just over half of maxBytes
	half := write("half.yaml", strings.Repeat("# x\n", maxBytes/8+1))
	other := write("other.yaml", strings.Repeat("# x\n", maxBytes/8+1))
	for name, c := range map[string]struct {
		paths []string
		want  string // text in the error; empty for no error
	}{
		"a device":           {[]string{"/dev/zero"}, "/dev/zero: is not a regular file; "},
		"a pipe in a folder": {[]string{folder}, "pipe.yaml: is not a regular file; "},
		"too large":          {[]string{big}, "big.yaml: is too large: all files together may have at most 64 MiB; "},
		"too large together": {[]string{half, other}, "other.yaml: is too large: "},
		"little-endian":      {[]string{write("le.yaml", "\xFF\xFEk\x00")}, "le.yaml: is written in UTF-16; save it as UTF-8"},
		"big-endian":         {[]string{write("be.yaml", "\xFE\xFF\x00k")}, "be.yaml: is written in UTF-16; save it as UTF-8"},
		"half of the limit":  {[]string{half}, ""},
	} {
		_, err := ReadFiles(c.paths, bytes.NewReader(nil))
		checkOneLine(t, err)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	var stdin endless
	_, err := ReadFiles([]string{"-"}, &stdin)
	if err == nil || !strings.HasPrefix(err.Error(), "<stdin>: is too large: ") || stdin.read > 4*maxBytes {
		t.Errorf("an endless standard input gives %v after %d bytes, want \"is too large\" after at most %d", err, stdin.read, 4*maxBytes)
	}
}
