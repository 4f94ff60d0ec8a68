package lab_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const unprivilegedID = 65534 // of the user and the group

// TestUnprivileged runs TestSealedIRSA once more as the user `nobody`, if the test runs as root. Root runs the program
// in the sandbox with the host's user ids. Any other user needs a user namespace, in which the program has the pod's
// user id.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the test does not run as root: TestSandboxedControllers and TestSealedIRSA then cover this case")
	}
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
	}
	t.Parallel()
	home, err := os.MkdirTemp("", "unprivileged") // t.TempDir is in a folder that only root can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"lab.test": self, "helm": helm, "joiner": program(t)} {
		copyExecutable(t, filepath.Join(home, name), from)
	}
	if err := os.CopyFS(filepath.Join(home, "deploy"), os.DirFS("../deploy")); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(home, "lab")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{home, work} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(folder, unprivilegedID, unprivilegedID); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(home, "lab.test"), "-test.v", "-test.run", "^TestSealedIRSA$", "-test.timeout", "5m")
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"),
		helmVariable + "=" + filepath.Join(home, "helm"), "JOINER_BINARY=" + filepath.Join(home, "joiner")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivilegedID, Gid: unprivilegedID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the test failed as user nobody: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("as nobody:\n%s", out)
	}
	t.Logf("as nobody:\n%s", out)
}

func copyExecutable(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
