//go:build !linux

package process

import "syscall"

// dieWithParent keeps a child out of the terminal's foreground group, so that
// Ctrl-C reaches the parent only. The guard ends it with the parent.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
