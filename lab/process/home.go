package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Home is the folder of one lab. The process of the lab holds a lock on it.
type Home struct {
	Path string // absolute path of the folder

	lock *os.File // locked until Remove
}

// NewHome creates a new folder, and removes the folders of labs that have ended.
func NewHome() (*Home, error) {
	base, err := homes()
	if err != nil {
		return nil, err
	}
	// This lock allows only one lab at a time to create or remove folders, because a new folder looks unused until it
	// is locked.
	baseLock, err := lockFile(filepath.Join(base, "door"), syscall.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("lock the folder of labs: %w", err)
	}
	defer baseLock.Close()
	sweep(base)
	if err := hasRoom(os.TempDir()); err != nil { // checked after old folders were removed
		return nil, err
	}
	path, err := os.MkdirTemp(base, "lab-")
	if err != nil {
		return nil, fmt.Errorf("make the lab's folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(path, "lock"), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return nil, fmt.Errorf("lock the lab's folder: %w", err)
	}
	return &Home{Path: path, lock: lock}, nil
}

// Remove removes the folder and everything in it.
func (h *Home) Remove() error {
	defer h.lock.Close()
	if err := os.RemoveAll(h.Path); err != nil {
		return fmt.Errorf("remove the lab's folder: %w", err)
	}
	return nil
}

// Homes returns the folders of this user's running labs, newest first.
func Homes() ([]string, error) {
	base, err := homes()
	if err != nil {
		return nil, err
	}
	type home struct {
		path    string
		created int64
	}
	var alive []home
	paths, _ := filepath.Glob(filepath.Join(base, "lab-*"))
	for _, path := range paths {
		info, err := os.Stat(filepath.Join(path, "lock"))
		if err != nil || !locked(filepath.Join(path, "lock")) {
			continue
		}
		alive = append(alive, home{path, info.ModTime().UnixNano()})
	}
	slices.SortFunc(alive, func(a, b home) int { return cmp.Compare(b.created, a.created) })
	out := make([]string, 0, len(alive))
	for _, h := range alive {
		out = append(out, h.path)
	}
	return out, nil
}

// homes returns the folder of all labs of this user. It is per user, because users of one computer must not depend on
// each other's permissions.
func homes() (string, error) {
	dir, err := temporary()
	if err != nil {
		return "", err
	}
	base := filepath.Join(dir, "joiner-lab-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make the folder of labs: %w", err)
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", fmt.Errorf("read the mode of the folder of labs: %w", err)
	}
	// The folder's name is predictable and the folder contains keys, so check its owner and mode.
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || info.Mode().Perm() != 0o700 || ok && int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("the folder of labs, %s, has another owner or mode than 0700: remove the folder, or set TMPDIR to your own folder", base)
	}
	return base, nil
}

// sweep removes the folders whose process has ended. The caller holds the lock of the base folder.
func sweep(base string) {
	paths, _ := filepath.Glob(filepath.Join(base, "lab-*"))
	for _, path := range paths {
		if !locked(filepath.Join(path, "lock")) {
			_ = os.RemoveAll(path)
		}
	}
}

// lockFile opens or creates a file and locks it. The lock lasts until the file is closed or the process ends. how has
// the flags of flock(2).
func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// locked reports whether a running process holds the lock on a file. It does not keep a lock itself.
func locked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
