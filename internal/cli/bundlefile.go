package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// writeBundle writes a bundle whole or not at all: what was there before is not given up for one that a full disk cuts off. Only its
// owner may read it. What is no file, such as a pipe, is written to as it is, and so is a file that may be written and not replaced,
// which keeps its mode.
func writeBundle(path string, text []byte) error {
	err := writerFor(&path)(path, text)
	var wrong *os.PathError
	var link *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		err = wrong.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("write bundle: %s: %w", path, err) // nobody has heard of a name beside it
}

// writerFor returns how to write to the path, which becomes that of the file where it is one of a link.
func writerFor(path *string) func(path string, text []byte) error {
	switch clean := filepath.ToSlash(filepath.Clean(*path)); {
	case clean == "/dev/stdout": // not opened once more, for then what is said on the screen would be written over it
		return func(_ string, text []byte) error { _, err := os.Stdout.Write(text); return err }
	case clean == "/dev/stderr":
		return func(_ string, text []byte) error { _, err := os.Stderr.Write(text); return err }
	case strings.HasPrefix(clean, "/dev/"), strings.HasPrefix(clean, "/proc/"): // a link there leads to what is open, and not to a name
		return writeThrough
	}
	if real, err := filepath.EvalSymlinks(*path); err == nil {
		*path = real // the file is replaced, and not the link to it
	}
	if info, err := os.Stat(*path); err == nil && !info.Mode().IsRegular() {
		return writeThrough
	}
	return replaceOrOverwrite
}

func writeThrough(path string, text []byte) error { return os.WriteFile(path, text, 0o600) }

// replaceOrOverwrite replaces a file, or writes over one that cannot be replaced: one that is mounted by itself, or that is in a folder
// where nothing may be created.
func replaceOrOverwrite(path string, text []byte) error {
	err := replaceFile(path, text)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	file, err2 := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0) // one that is not there is not created: that was tried
	if err2 != nil {
		return err
	}
	_, err = file.Write(text)
	if err2 := file.Close(); err == nil {
		err = err2
	}
	return err
}

// replaceFile writes a file beside the one of the path, and puts it in its place.
func replaceFile(path string, text []byte) error {
	beside, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	if _, err = beside.Write(text); err == nil {
		err = beside.Sync()
	}
	if err2 := beside.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Rename(beside.Name(), path)
	}
	if err != nil {
		_ = os.Remove(beside.Name())
	}
	return err
}
