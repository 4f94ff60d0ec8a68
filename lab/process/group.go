// Package process starts child programs that never outlive this process.
//
// In: programs to start, each with a name, arguments and an environment.
// Out: running children, their logs, and a channel that is closed when a child ends.
// Never: a child left behind, even when this process is killed with SIGKILL.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Group is a set of child programs with a common log folder. The programs end with this process. On Linux the kernel
// kills each child when the thread that started the child ends. On all systems a guard process (see Guard) detects the
// end of this process and kills the remaining children.
type Group struct {
	logs  string      // path of the log folder
	guard *guard      // process that kills the remaining children when this process ends
	start chan func() // functions that start a child; startChildren runs them

	mu      sync.Mutex
	running map[*Process]struct{}
	closed  bool // Close was called: no more children start
}

// Spec describes a program to start.
type Spec struct {
	Name string   // for the log file and errors: "kube-apiserver"
	Path string   // path of the program
	Args []string // arguments, without the program's name
	Env  []string // added to this process's environment

	// Attr changes the attributes with which the program is started. nil changes nothing.
	Attr func(*syscall.SysProcAttr)
}

// NewGroup creates a group that writes logs into dir/logs. self is the path of a program that runs Guard if its
// first argument is GuardArg, usually os.Executable. If this process ends without Close, the guard removes dir.
func NewGroup(self, dir string) (*Group, error) {
	logs := filepath.Join(dir, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, fmt.Errorf("make log folder: %w", err)
	}
	guard, err := startGuard(self, dir)
	if err != nil {
		return nil, err
	}
	g := &Group{logs: logs, guard: guard, start: make(chan func()), running: map[*Process]struct{}{}}
	go g.startChildren()
	return g, nil
}

// startChildren starts all children, on one thread that lives as long as the group. Other threads could end earlier,
// and the kernel sends the parent-death signal when the thread that forked the child ends.
func (g *Group) startChildren() {
	runtime.LockOSThread()
	for start := range g.start {
		start()
	}
}

// Start starts a program. Its standard output and error go to NAME.log in the log folder.
func (g *Group) Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(filepath.Join(g.logs, spec.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	if spec.Attr != nil {
		spec.Attr(cmd.SysProcAttr)
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, fmt.Errorf("start %s: the group is closed", spec.Name)
	}
	result := make(chan error)
	g.start <- func() { result <- cmd.Start() }
	if err := <-result; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{Name: spec.Name, LogPath: log.Name(), cmd: cmd, done: make(chan struct{})}
	g.running[p] = struct{}{}
	g.guard.watch(p.PID())
	go g.reap(p)
	return p, nil
}

// reap waits until a child has ended, and removes it from the group.
func (g *Group) reap(p *Process) {
	err := p.cmd.Wait()
	g.mu.Lock()
	delete(g.running, p)
	g.guard.forget(p.PID())
	g.mu.Unlock()
	p.err = err
	close(p.done)
}

// Close interrupts every child, kills the children that still run after grace, waits until all have ended, and ends the
// guard.
func (g *Group) Close(grace time.Duration) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.closed = true
	var remaining []*Process
	for p := range g.running {
		remaining = append(remaining, p)
	}
	g.mu.Unlock()

	for _, p := range remaining {
		p.Interrupt()
	}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	for _, p := range remaining {
		select {
		case <-p.done:
			continue
		case <-deadline.C:
			deadline.Reset(0) // the deadline has also passed for the other children
		}
		p.Kill()
	}
	close(g.start)
	g.guard.dismiss()
}

// Process is one child program.
type Process struct {
	Name    string // see Spec.Name
	LogPath string // path of the log file

	cmd  *exec.Cmd
	done chan struct{}
	err  error // result of cmd.Wait; set before done is closed
}

// PID returns the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed once the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended and the last lines of its log, also after exit status 0. nil: the child runs.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended: %w\n%s", p.Name, err, p.Tail(15))
}

// Interrupt sends SIGINT to the child.
func (p *Process) Interrupt() { _ = p.cmd.Process.Signal(os.Interrupt) }

// Kill sends SIGKILL to the child and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Tail returns the last lines of the child's log, indented for use in an error message.
func (p *Process) Tail(lines int) string {
	data, err := os.ReadFile(p.LogPath)
	if err != nil {
		return "    (no log: " + err.Error() + ")"
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "    " + strings.Join(all, "\n    ")
}
