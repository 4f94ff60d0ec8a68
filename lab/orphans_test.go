package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/joiner-sh/joiner/lab"
)

// killedLabArg is the argument with which the test binary calls runLabToKill.
const killedLabArg = "run-lab-to-kill"

// runLabToKill starts a lab, prints its folder, and waits until its process is killed.
func runLabToKill() int {
	l, err := lab.Start(context.Background(), lab.Options{Cluster: "doomed"})
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Println(l.Home)
	select {}
}

// TestKilledLabLeavesNothing kills a lab's process with SIGKILL, and checks that its child processes and files are
// gone.
func TestKilledLabLeavesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, killedLabArg)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	home := strings.TrimSpace(line)
	if err != nil || !filepath.IsAbs(home) {
		t.Fatalf("the lab did not start: %q %v", line, err)
	}
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) < 4 {
		t.Fatalf("the lab has %d children, want at least 4: an API server, a scheduler, a controller manager and a guard", len(children))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	var left []string
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		left = nil
		for _, pid := range children {
			if isRunning(pid) {
				left = append(left, strconv.Itoa(pid))
			}
		}
		if _, err := os.Stat(home); err == nil {
			left = append(left, home)
		}
		return len(left) == 0, nil
	})
	if err != nil {
		t.Errorf("ten seconds after SIGKILL, these processes or folders still exist: %v", left)
	}
}

func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		t.Skipf("the test needs ps: %v", err)
	}
	var children []int
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 2 && f[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(f[0])
			children = append(children, child)
		}
	}
	return children
}

// isRunning reports whether a process runs. A zombie counts as not running.
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
