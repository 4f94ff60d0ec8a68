package process

import "syscall"

// dieWithParent has the kernel kill a child with its parent, and keeps it out
// of the terminal's foreground group, so that Ctrl-C reaches the parent only.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
