package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkArg is an argument of Main instead of the path of a spec. With checkArg, Main only checks whether the kernel
// allows sandboxes.
const checkArg = "check"

// Isolate changes attr so that a process starts in its own namespaces of mounts, network, host name and IPC. The
// process must run Main.
func Isolate(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	if os.Geteuid() == 0 {
		return
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
}

// CheckSupport returns an error if this host does not allow sandboxes. self is a program that runs Main if its first
// argument is Arg.
func CheckSupport(self string) error {
	cmd := exec.Command(self, Arg, checkArg)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	Isolate(cmd.SysProcAttr)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the kernel does not allow namespaces: %w\n%s", err, out)
	}
	return nil
}

// Main turns this process into a sandbox, starts the program of the spec in file, and waits for its end. Main forwards
// signals to the program and returns its exit code. If this process is killed, the kernel kills the program.
func Main(file string) int {
	runtime.LockOSThread() // the program inherits the capabilities of this thread
	code, err := run(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return 1
	}
	return code
}

// run does the work of Main, and returns the program's exit code: 255 if a signal killed the program.
func run(file string) (int, error) {
	if err := setUpNamespaces(); err != nil {
		return 0, err
	}
	if file == checkArg {
		return 0, nil
	}
	s, err := load(file)
	if err != nil {
		return 0, err
	}
	if err := syscall.Sethostname([]byte(s.Host)); err != nil {
		return 0, fmt.Errorf("set the host name: %w", err)
	}
	if err := s.listen(); err != nil {
		return 0, err
	}
	if err := makeReadOnly(s.Root); err != nil {
		return 0, err
	}
	if err := dropCapabilities(); err != nil {
		return 0, err
	}
	cmd := s.command()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", s.Program, err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			_ = cmd.Process.Signal(sig)
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode() & 0xff, nil // -1 after a signal becomes 255
	}
	return 0, err
}

// command returns the command that starts the program with the user ID User. If this process is root on the host, User
// is also the user ID on the host. Otherwise User exists only in a user namespace, and is mapped to the user of this
// process.
func (s Spec) command() *exec.Cmd {
	cmd := &exec.Cmd{
		Path: s.Program, Args: append([]string{s.Program}, s.Args...), Env: s.Env, Dir: "/", Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Chroot: s.Root, Pdeathsig: syscall.SIGKILL},
	}
	if inUserNamespace() {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: s.User, HostID: 0, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: s.User, HostID: 0, Size: 1}}
		return cmd
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.User), Gid: uint32(s.User)}
	return cmd
}

// inUserNamespace reports whether this process is in another user namespace than the host's, which maps all user IDs to
// themselves.
func inUserNamespace() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	var inside, outside, size int64
	_, err = fmt.Sscan(string(text), &inside, &outside, &size)
	return err == nil && (outside != 0 || size < 1<<31)
}

// makeReadOnly mounts a folder on itself, read-only, and checks that a write fails.
func makeReadOnly(root string) error {
	if err := syscall.Mount(root, root, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	const flags = syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY | syscall.MS_NOSUID | syscall.MS_NODEV
	if err := syscall.Mount("", root, "", flags, ""); err != nil {
		return fmt.Errorf("mount the root read-only: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, "written"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("the root is not read-only: %w", err)
	}
	return nil
}

// dropCapabilities removes all capabilities from programs that this thread starts. The programs cannot gain
// capabilities through a file either.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// EINVAL: the kernel does not have this capability
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// setUpNamespaces makes mounts private to this process, and routes every address of the sandbox's network to the
// sandbox itself.
func setUpNamespaces() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private to the sandbox: %w", err)
	}
	const loopback = 1
	link := binary.NativeEndian.AppendUint32(nil, 0) // ifinfomsg: family and type; then index, flags, and mask of changed flags
	link = binary.NativeEndian.AppendUint32(link, loopback)
	link = binary.NativeEndian.AppendUint32(link, unix.IFF_UP)
	link = binary.NativeEndian.AppendUint32(link, unix.IFF_UP)
	if err := netlink(unix.RTM_NEWLINK, 0, link); err != nil {
		return fmt.Errorf("bring up the sandbox's network: %w", err)
	}
	// A route of type RTN_LOCAL whose destination has a length of 0 bits, the second byte, makes every address local.
	route := []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
	route = binary.NativeEndian.AppendUint16(route, 8) // attribute: length, type, value
	route = binary.NativeEndian.AppendUint16(route, unix.RTA_OIF)
	route = binary.NativeEndian.AppendUint32(route, loopback)
	if err := netlink(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, route); err != nil {
		return fmt.Errorf("route all addresses to the sandbox: %w", err)
	}
	return nil
}

// netlink sends one request to the kernel's network configuration, and returns the error in the kernel's response.
func netlink(kind, flags uint16, body []byte) error {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	message := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	message = binary.NativeEndian.AppendUint16(message, kind)
	message = binary.NativeEndian.AppendUint16(message, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	message = binary.NativeEndian.AppendUint64(message, 0) // sequence, port
	if err := unix.Sendto(socket, append(message, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	response := make([]byte, 4096)
	n, _, err := unix.Recvfrom(socket, response, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 { // the header, then the error code
		return fmt.Errorf("the kernel's response has only %d bytes", n)
	}
	if code := int32(binary.NativeEndian.Uint32(response[unix.SizeofNlMsghdr:])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}
