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

// Home is the folder of one lab. The process of the lab holds a lock on the folder.
type Home struct {
	Path string // absolute path of the folder

	lock *os.File // locked until Remove
}

// NewHome creates a new folder, and removes the folders of labs that have ended.
func NewHome() (*Home, error) {
	base, err := baseFolder()
	if err != nil {
		return nil, err
	}
	// With this lock, only one lab at a time creates or removes folders. Otherwise another lab would remove the new
	// folder as stale before this process has locked the folder.
	baseLock, err := lockFile(filepath.Join(base, "door"), syscall.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("lock the folder of labs: %w", err)
	}
	defer baseLock.Close()
	removeStale(base)
	if err := checkFreeSpace(os.TempDir()); err != nil { // after removeStale, which frees space
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
	base, err := baseFolder()
	if err != nil {
		return nil, err
	}
	type home struct {
		path    string
		created int64
	}
	var running []home
	paths, _ := filepath.Glob(filepath.Join(base, "lab-*"))
	for _, path := range paths {
		info, err := os.Stat(filepath.Join(path, "lock"))
		if err != nil || !isLocked(filepath.Join(path, "lock")) {
			continue
		}
		running = append(running, home{path, info.ModTime().UnixNano()})
	}
	slices.SortFunc(running, func(a, b home) int { return cmp.Compare(b.created, a.created) })
	out := make([]string, 0, len(running))
	for _, h := range running {
		out = append(out, h.path)
	}
	return out, nil
}

// baseFolder returns the folder that contains the folders of this user's labs, and creates it if missing. Each
// user has a separate folder, so that labs do not depend on other users' permissions.
func baseFolder() (string, error) {
	dir, err := tempFolder()
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
		return "", fmt.Errorf("%s must be your folder with mode 0700: remove the folder, or set TMPDIR to your own folder", base)
	}
	return base, nil
}

// removeStale removes the folders of labs whose process has ended. The caller holds the lock of the base folder.
func removeStale(base string) {
	paths, _ := filepath.Glob(filepath.Join(base, "lab-*"))
	for _, path := range paths {
		if !isLocked(filepath.Join(path, "lock")) {
			_ = os.RemoveAll(path)
		}
	}
}

// lockFile opens or creates a file and locks it. The lock lasts until the file is closed or the process ends. flags
// are those of flock(2).
func lockFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), flags); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// isLocked reports whether a running process holds the lock on a file. To find out, it takes and releases the lock.
func isLocked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
