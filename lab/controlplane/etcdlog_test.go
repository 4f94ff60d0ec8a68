package controlplane

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestFatalHook checks that an error that ends etcd is printed once, with its cause, and that other errors are not
// printed.
func TestFatalHook(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	code := 0
	log := zap.New(zapcore.NewNopCore(), zap.WithFatalHook(fatalHook{&printed, func(c int) { code = c }}))
	log.Error("slow", zap.Error(syscall.EIO))
	if printed.Len() > 0 || code != 0 {
		t.Errorf("an error that does not end etcd: printed %q, exit code %d, want neither", printed.String(), code)
	}
	log.Fatal("failed to save entries", zap.String("path", "/x"), zap.Error(fmt.Errorf("write /x/wal: %w", syscall.ENOSPC)))
	if want := "\nlab: etcd ended: failed to save entries: write /x/wal: no space left on device\n"; printed.String() != want || code != 1 {
		t.Errorf("%q and exit code %d, want %q and 1", printed.String(), code, want)
	}
}
