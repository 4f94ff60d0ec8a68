package process

import "syscall"

// dieWithParent makes the kernel kill a child with its parent. It also removes the child from the terminal's foreground group, so that
// Ctrl-C reaches the parent only.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
