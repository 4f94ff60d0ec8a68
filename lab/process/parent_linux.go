package process

import "syscall"

// dieWithParent returns attributes with which the kernel kills a child when the parent ends. They also remove the child
// from the terminal's foreground group, so that Ctrl-C reaches the parent only.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
