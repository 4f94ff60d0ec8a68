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

// writeBundle writes a bundle atomically, with mode 0600, so that a full disk does not destroy a previous bundle. In
// two cases it writes to the path directly, and keeps the mode: the path is not a regular file (for example, it
// is a pipe), or the file can be written but not replaced.
func writeBundle(path string, text []byte) error {
	err := writerFor(&path)(path, text)
	var pathErr *os.PathError
	var linkErr *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pathErr):
		err = pathErr.Err
	case errors.As(err, &linkErr):
		err = linkErr.Err
	}
	return fmt.Errorf("write bundle: %s: %w", path, err) // without the name of the temporary file, which the user does not know
}

// writerFor returns the function that writes to *path. If *path is a symbolic link, writerFor sets *path to the target
// of the link.
func writerFor(path *string) func(path string, text []byte) error {
	switch clean := filepath.ToSlash(filepath.Clean(*path)); {
	case clean == "/dev/stdout": // os.OpenFile starts at offset 0: bundle and findings would overwrite each other
		return func(_ string, text []byte) error { _, err := os.Stdout.Write(text); return err }
	case clean == "/dev/stderr":
		return func(_ string, text []byte) error { _, err := os.Stderr.Write(text); return err }
	case strings.HasPrefix(clean, "/dev/"), strings.HasPrefix(clean, "/proc/"):
		return writeThrough // links in these folders refer to open files, so they are not resolved to paths
	}
	if target, err := filepath.EvalSymlinks(*path); err == nil {
		*path = target // replace the file, not the link
	}
	if info, err := os.Stat(*path); err == nil && !info.Mode().IsRegular() {
		return writeThrough
	}
	return replaceOrOverwrite
}

func writeThrough(path string, text []byte) error { return os.WriteFile(path, text, 0o600) }

// replaceOrOverwrite replaces a file. If that is impossible because the file is a mount point or its folder is
// read-only, it overwrites the file. If the file cannot be opened for writing either, it returns the error of the
// replacement.
func replaceOrOverwrite(path string, text []byte) error {
	err := replaceFile(path, text)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	file, openErr := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0) // without O_CREATE: the file must exist
	if openErr != nil {
		return err
	}
	_, err = file.Write(text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// replaceFile writes a temporary file in the same folder, and renames it to the path.
func replaceFile(path string, text []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	if _, err = temporary.Write(text); err == nil {
		err = temporary.Sync()
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
