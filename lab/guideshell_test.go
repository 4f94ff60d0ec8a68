package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guideShell is a bash that runs the commands of a guide one after another, so that later commands have the exported
// variables of earlier ones.
type guideShell struct {
	t      *testing.T
	folder string // working folder
	page   string // file with the commands, for messages
	cmd    *exec.Cmd
	input  *os.File      // pipe from which the shell reads the commands
	codes  *bufio.Reader // exit codes of the commands
	out    string        // file with the output of the current command
}

// guideLoop reads commands, each of which ends with a zero byte, from file descriptor 3, and writes their exit codes to
// file descriptor 4. It uses no subshells, so that later commands have the variables of earlier ones.
const guideLoop = `while IFS= read -r -d '' __step <&3; do eval "$__step" >"$__out" 2>&1 </dev/null 3<&- 4>&-; echo $? >&4; done`

// newGuideShell starts a shell in a folder, with exactly the given environment.
func newGuideShell(t *testing.T, page, folder string, env []string) *guideShell {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	steps, stepsIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	codes, codesIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &guideShell{t: t, page: page, folder: folder, input: stepsIn, codes: bufio.NewReader(codes), out: filepath.Join(t.TempDir(), "out")}
	s.cmd = exec.Command(bash, "--noprofile", "--norc", "-c", guideLoop)
	s.cmd.Dir, s.cmd.Env = folder, append(env, "__out="+s.out)
	s.cmd.ExtraFiles = []*os.File{steps, codesIn}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = steps.Close()
	_ = codesIn.Close()
	t.Cleanup(func() {
		_ = stepsIn.Close()
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
		_ = codes.Close()
	})
	return s
}

// run runs a step and returns its output. A step that fails, or takes longer than limit, fails the test.
func (s *guideShell) run(step guideStep, limit time.Duration) string {
	s.t.Helper()
	output, code := s.execute(step, limit, nil)
	if code != 0 {
		s.t.Fatalf("%s:%d: %s\nexit code %d, want 0:\n%s", s.page, step.line, step.text, code, output)
	}
	return output
}

// interrupt runs an endless step, sends Ctrl-C as soon as enough returns true for the output, and returns the output.
func (s *guideShell) interrupt(step guideStep, limit time.Duration, enough func(output string) bool) string {
	s.t.Helper()
	output, _ := s.execute(step, limit, enough)
	if !enough(output) {
		s.t.Fatalf("%s:%d: %s\nended before the expected output:\n%s", s.page, step.line, step.text, output)
	}
	return output
}

// execute runs a step, and sends Ctrl-C once if enough returns true for the output so far. It returns the output and
// the exit code.
func (s *guideShell) execute(step guideStep, limit time.Duration, enough func(string) bool) (output string, code int) {
	s.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	if _, err := s.input.WriteString(step.text + "\x00"); err != nil {
		s.t.Fatalf("%s:%d: send %s to the shell: %v", s.page, step.line, step.text, err)
	}
	ended := make(chan string, 1)
	go func() {
		line, _ := s.codes.ReadString('\n') // empty if the shell has ended
		ended <- strings.TrimSpace(line)
	}()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case line := <-ended:
			n, err := strconv.Atoi(line)
			if err != nil {
				s.t.Fatalf("%s:%d: %s\nended the shell:\n%s", s.page, step.line, step.text, s.output())
			}
			s.t.Logf("%5.1f s  %s", time.Since(began).Seconds(), firstLine(step.text))
			return s.output(), n
		case <-ctx.Done():
			s.t.Fatalf("%s:%d: %s\nhas not ended after %s:\n%s", s.page, step.line, step.text, limit, s.output())
		case <-poll.C:
			if enough != nil && enough(s.output()) {
				s.pressCtrlC()
				enough = nil // send Ctrl-C only once
			}
		}
	}
}

func (s *guideShell) output() string {
	text, err := os.ReadFile(s.out)
	if err != nil {
		return ""
	}
	return string(text)
}

// pressCtrlC sends SIGINT to all processes that the shell has started, but not to the shell.
func (s *guideShell) pressCtrlC() {
	for _, pid := range descendants(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGINT) // the process may have ended
	}
}

func descendants(pid int) []int {
	var out []int
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for _, word := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			out = append(append(out, child), descendants(child)...)
		}
	}
	return out
}

func firstLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if more {
		line += " …"
	}
	return line
}

// linkCheckout creates a folder with links to the entries of the checkout's root, except build output. Commands that
// create files in the folder do not change the checkout.
func linkCheckout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if slices.Contains([]string{".git", "bin", "dist"}, e.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(root, e.Name()), filepath.Join(folder, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// readerEnv returns the environment for the commands of a guide: that of this process without variables about clouds
// and clusters, with a new home, and with the variables in more. PATH starts with a folder that has the scripts in
// tools, by name.
func readerEnv(t *testing.T, tools map[string]string, more ...string) []string {
	t.Helper()
	home, folder := t.TempDir(), t.TempDir()
	for name, script := range tools {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"HOME=" + home, "PATH=" + folder + ":" + os.Getenv("PATH")}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // keep the caches of the real home
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatalf("go env %s: %v", name, err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	excluded := []string{"AWS_", "KUBE", "HELM_", "JOINER_", "CLUSTER_", "HOME=", "PATH=", "GOCACHE=", "GOMODCACHE=", "GOPATH="}
	for _, variable := range os.Environ() {
		if !slices.ContainsFunc(excluded, func(p string) bool { return strings.HasPrefix(variable, p) }) {
			env = append(env, variable)
		}
	}
	return append(env, more...)
}
