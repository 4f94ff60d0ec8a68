package process

import (
	"fmt"
	"os"
	"syscall"
)

// need is the required free space in bytes. A lab uses some 120 MB within its first seconds, logs and etcd grow from there, and etcd does
// not survive a full disk.
const need = 500e6

// temporary returns the folder in which labs create their folders. It must exist, because a missing one is probably mistyped.
func temporary() (string, error) {
	dir := os.TempDir()
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("the lab needs a folder to work in, and TMPDIR (%s) is none: make it, or set TMPDIR to another folder", dir)
	}
	return dir, nil
}

// hasRoom returns an error if the disk of a folder is too full for a lab.
func hasRoom(dir string) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("read the free space under TMPDIR (%s): %w", dir, err)
	}
	if disk.Blocks == 0 { // the file system does not report its size
		return nil
	}
	return enough(dir, disk.Bavail*uint64(disk.Bsize))
}

// enough returns an error if the free bytes of a folder do not suffice.
func enough(dir string, free uint64) error {
	if free >= need {
		return nil
	}
	return fmt.Errorf("the lab needs %d MB under TMPDIR (%s), and there are %d MB: make room, or set TMPDIR to another folder", int(need/1e6), dir, free/1e6)
}
