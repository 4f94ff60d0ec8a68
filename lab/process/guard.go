package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// GuardArg is the first argument that makes the program run Guard.
const GuardArg = "guard"

// guard is the parent's end of the pipe to the guard process. The kernel closes the pipe when the parent ends for any
// reason.
type guard struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

// startGuard starts the guard process in its own process group, so that Ctrl-C does not reach the guard.
func startGuard(self, dir string) (*guard, error) {
	cmd := exec.Command(self, GuardArg, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make the guard's pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// watch adds a child to the processes that the guard kills, and forget removes it.
func (g *guard) watch(pid int)  { g.say(fmt.Sprintf("+%d\n", pid)) }
func (g *guard) forget(pid int) { g.say(fmt.Sprintf("-%d\n", pid)) }

// dismiss ends the guard process, which then kills no process and removes no folder.
func (g *guard) dismiss() {
	g.say("bye\n")
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}

// say sends a line to the guard process. It ignores errors: they mean that the guard has ended.
func (g *guard) say(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = io.WriteString(g.pipe, line)
}

// Guard is the main function of the guard process. It reads the process ids of its parent's children from the pipe in.
// If the pipe ends without the line that dismiss sends, Guard kills these processes and removes dir.
func Guard(dir string, in io.Reader) {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	pids := map[int]struct{}{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if line == "bye" {
			return
		}
		pid, err := strconv.Atoi(strings.TrimLeft(line, "+-"))
		if err != nil {
			continue
		}
		if strings.HasPrefix(line, "+") {
			pids[pid] = struct{}{}
		} else {
			delete(pids, pid)
		}
	}
	for pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	// The processes are not children of the guard, so the guard cannot wait for them: it polls.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(2 * time.Second)
	for pid := range pids {
		for syscall.Kill(pid, 0) == nil && time.Now().Before(deadline) {
			<-tick.C
		}
	}
	_ = os.RemoveAll(dir)
}
