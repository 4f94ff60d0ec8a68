package repocheck

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// maxFileSize is the maximum size of a tracked file in bytes, because every clone keeps all versions.
const maxFileSize = 1 << 20

// headSize is the number of bytes that TestNoBinaries reads of a file: Git, too, calls a file binary if these contain a
// zero byte.
const headSize = 8000

// binaryKinds maps the first bytes of programs, libraries and archives to their kind. Such files cannot be reviewed.
var binaryKinds = map[string]string{
	"\x7fELF": "an ELF binary", "MZ": "a Windows binary", "!<arch>\n": "an archive of objects", "\x00asm": "a WebAssembly module",
	"\xfe\xed\xfa\xce": "a Mach-O binary", "\xfe\xed\xfa\xcf": "a Mach-O binary", "\xce\xfa\xed\xfe": "a Mach-O binary",
	"\xcf\xfa\xed\xfe": "a Mach-O binary", "\xca\xfe\xba\xbe": "a universal binary or a Java class", "\xbe\xba\xfe\xca": "a universal binary",
	"\x1f\x8b": "a gzip archive", "PK\x03\x04": "a zip archive", "\x28\xb5\x2f\xfd": "a zstd archive", "\xfd7zXZ\x00": "an xz archive",
	"BZh": "a bzip2 archive",
}

// rejectionReason returns why a file must not be tracked, from its first bytes and its size; empty if it may be
// tracked.
func rejectionReason(head []byte, size int64) string {
	for magic, kind := range binaryKinds {
		if bytes.HasPrefix(head, []byte(magic)) {
			return "is " + kind
		}
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return "contains zero bytes, so it is not text"
	}
	if size > maxFileSize {
		return "is larger than 1 MiB"
	}
	return ""
}

// TestNoBinaries: every tracked file is text of at most 1 MiB.
func TestNoBinaries(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("no git checkout: %v", err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(names) < 500 {
		t.Fatalf("git tracks only %d files, want at least 500", len(names))
	}
	for _, name := range names {
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			continue // deleted, but not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		head, err := io.ReadAll(io.LimitReader(f, headSize))
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if why := rejectionReason(head, info.Size()); why != "" {
			t.Errorf("%s %s: build output belongs in bin/ or dist/, which git ignores", name, why)
		}
	}
}

// TestRejectionReason: programs of any platform, archives, other binary data and large files are rejected; texts are
// not.
func TestRejectionReason(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	head, err := io.ReadAll(io.LimitReader(f, headSize))
	if err != nil || rejectionReason(head, 1) == "" {
		t.Errorf("rejectionReason accepts this test's own program (%v)", err)
	}
	for text, size := range map[string]int64{"MZ\x90": 3, "\xcf\xfa\xed\xfe\x07": 5, "\x1f\x8b\x08": 3, "data\x00": 5,
		"text": maxFileSize + 1} {
		if rejectionReason([]byte(text), size) == "" {
			t.Errorf("rejectionReason accepts %q of %d bytes", text, size)
		}
	}
	for _, text := range []string{"", "package joiner\n", "Größe\n", "#!/usr/bin/env bash\n"} {
		if why := rejectionReason([]byte(text), int64(len(text))); why != "" {
			t.Errorf("rejectionReason rejects %q: it %s", text, why)
		}
	}
}
