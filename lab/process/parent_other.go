//go:build !linux

package process

import "syscall"

// dieWithParent removes a child from the terminal's foreground group, so that Ctrl-C reaches the parent only. The guard ends the child with
// the parent.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
