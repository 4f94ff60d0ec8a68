package process

import (
	"fmt"
	"os"
	"syscall"
)

// neededBytes is the free disk space that a lab requires. A lab uses about 120 MB within its first seconds. Then logs
// and etcd grow, and etcd ends if the disk is full.
const neededBytes = 500e6

// tempFolder returns the folder in which labs create their folders. The folder must exist, because a path that does not
// exist is probably misspelt.
func tempFolder() (string, error) {
	dir := os.TempDir()
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("TMPDIR (%s) is not a folder: create the folder, or set TMPDIR to another folder", dir)
	}
	return dir, nil
}

// checkFreeSpace returns an error if the disk that contains dir is too full for a lab.
func checkFreeSpace(dir string) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("read the free space under TMPDIR (%s): %w", dir, err)
	}
	if disk.Blocks == 0 { // the file system does not report its size
		return nil
	}
	return checkFree(dir, disk.Bavail*uint64(disk.Bsize))
}

// checkFree returns an error if free, the number of free bytes on the disk of dir, is less than neededBytes.
func checkFree(dir string, free uint64) error {
	if free >= neededBytes {
		return nil
	}
	return fmt.Errorf("the lab needs %d MB of free space under TMPDIR (%s), which has %d MB: free some space, or set TMPDIR to another folder", int(neededBytes/1e6), dir, free/1e6)
}
