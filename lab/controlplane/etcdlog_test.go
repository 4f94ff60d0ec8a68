package controlplane

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestLastWord: what etcd ends of is told once, with its cause, and other errors are not.
func TestLastWord(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	code := 0
	log := zap.New(zapcore.NewNopCore(), zap.WithFatalHook(lastWord{&told, func(c int) { code = c }}))
	log.Error("slow", zap.Error(syscall.EIO))
	if told.Len() > 0 || code != 0 {
		t.Errorf("an error that etcd survives: %q, exit code %d", told.String(), code)
	}
	log.Fatal("failed to save entries", zap.String("path", "/x"), zap.Error(fmt.Errorf("write /x/wal: %w", syscall.ENOSPC)))
	if want := "\nlab: etcd ended: failed to save entries: write /x/wal: no space left on device\n"; told.String() != want || code != 1 {
		t.Errorf("%q and exit code %d, want %q and 1", told.String(), code, want)
	}
}
