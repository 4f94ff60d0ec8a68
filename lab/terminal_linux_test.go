package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/joiner-sh/joiner/lab"
)

// answeredDoctor runs joiner doctor as the owner of the account, in a terminal in which the user types the answer to
// its question. It returns the output and the exit code.
func answeredDoctor(t *testing.T, l *lab.Lab, joiner, answer string, args ...string) (printed string, code int) {
	t.Helper()
	near, far := terminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, joiner, append([]string{"doctor"}, args...)...)
	cmd.Env = append(append(os.Environ(), l.Environment()...), "CLUSTER_NAME="+l.Cluster, "AWS_SESSION_TOKEN=")
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far, &out, &out
	if _, err := io.WriteString(near, answer+"\n"); err != nil {
		t.Fatal(err)
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("joiner doctor did not end after the answer %q. It printed:\n%s", answer, out.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// terminal opens a pseudo terminal. far is the program's end, and near is the user's end: text that the test writes to
// near is the program's input.
func terminal(t *testing.T) (near, far *os.File) {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	if err := unix.IoctlSetPointerInt(int(near.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(near.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return near, far
}
