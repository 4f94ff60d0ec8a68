//go:build !linux

package process

import "syscall"

// dieWithParent returns attributes that remove a child from the terminal's foreground group, so that Ctrl-C reaches the
// parent only. The guard kills the child when the parent ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
