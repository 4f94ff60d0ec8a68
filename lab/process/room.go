package process

import (
	"fmt"
	"os"
	"syscall"
)

// need is the room, in bytes, that a lab has to find: it takes some 120 MB within its first seconds, logs and etcd grow from there, and
// etcd does not survive a full disk.
const need = 500e6

// temporary returns the folder that labs have theirs in. It must be there: somebody who may make one anywhere has else mistyped it.
func temporary() (string, error) {
	dir := os.TempDir()
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("the lab needs a folder to work in, and TMPDIR (%s) is none: make it, or set TMPDIR to another folder", dir)
	}
	return dir, nil
}

// hasRoom refuses a folder on a disk that is too full for a lab.
func hasRoom(dir string) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("look at the room under TMPDIR (%s): %w", dir, err)
	}
	if disk.Blocks == 0 { // it does not say
		return nil
	}
	return enough(dir, disk.Bavail*uint64(disk.Bsize))
}

// enough judges the free bytes under a folder.
func enough(dir string, free uint64) error {
	if free >= need {
		return nil
	}
	return fmt.Errorf("the lab needs %d MB under TMPDIR (%s), and there are %d MB: make room, or set TMPDIR to another folder", int(need/1e6), dir, free/1e6)
}
