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

// checkArg in place of a spec has Main try whether sandboxes can be made here.
const checkArg = "check"

// Isolate has a process start in namespaces of its own: files, network, host name. It is to run Main.
func Isolate(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	if os.Geteuid() == 0 {
		return
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
}

// Possible returns why no sandbox can be made on this host; nil if one can. self is a program whose first argument Arg runs Main.
func Possible(self string) error {
	cmd := exec.Command(self, Arg, checkArg)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	Isolate(cmd.SysProcAttr)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the kernel allows no namespaces: %w\n%s", err, out)
	}
	return nil
}

// Main is the process that makes a sandbox around itself, starts the program in it and waits for it. It passes signals on, and ends as
// the program does; when it is killed, the program is, too.
func Main(file string) int {
	runtime.LockOSThread() // what the program inherits, it inherits from a thread
	code, err := run(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cell:", err)
		return 1
	}
	return code
}

func run(file string) (int, error) {
	if err := seclude(); err != nil {
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
		return 0, fmt.Errorf("name the host: %w", err)
	}
	if err := s.open(); err != nil {
		return 0, err
	}
	if err := freeze(s.Root); err != nil {
		return 0, err
	}
	if err := renounce(); err != nil {
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
		return exit.ExitCode() & 0xff, nil
	}
	return 0, err
}

// command returns the program as a user without any right. If this process is root, the user is one of the host, too. Otherwise it is one
// of a separate namespace, and outside of the namespace the user of this process.
func (s Spec) command() *exec.Cmd {
	cmd := &exec.Cmd{
		Path: s.Program, Args: append([]string{s.Program}, s.Args...), Env: s.Env, Dir: "/", Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Chroot: s.Root, Pdeathsig: syscall.SIGKILL},
	}
	if inNamespace() {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: s.User, HostID: 0, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: s.User, HostID: 0, Size: 1}}
		return cmd
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.User), Gid: uint32(s.User)}
	return cmd
}

// inNamespace reports whether root is root in a namespace alone.
func inNamespace() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	var inside, outside, size int64
	_, err = fmt.Sscan(string(text), &inside, &outside, &size)
	return err == nil && (outside != 0 || size < 1<<31)
}

// freeze makes a folder a file system of its own that cannot be written to, and makes sure of it.
func freeze(root string) error {
	if err := syscall.Mount(root, root, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	const flags = syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY | syscall.MS_NOSUID | syscall.MS_NODEV
	if err := syscall.Mount("", root, "", flags, ""); err != nil {
		return fmt.Errorf("mount the root read-only: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, "written"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("the root can be written to: %w", err)
	}
	return nil
}

// renounce has nothing that this thread starts ever have a capability, or get one from a program's file.
func renounce() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // a kernel that does not have it
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("renounce new privileges: %w", err)
	}
	return nil
}

// seclude keeps mounts to this process, and routes every address of the sandbox's network to the sandbox itself.
func seclude() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to the sandbox: %w", err)
	}
	const loopback = 1
	link := binary.NativeEndian.AppendUint32(nil, 0) // ifinfomsg: family, type; then index, flags, which of them change
	link = binary.NativeEndian.AppendUint32(link, loopback)
	link = binary.NativeEndian.AppendUint32(link, unix.IFF_UP)
	link = binary.NativeEndian.AppendUint32(link, unix.IFF_UP)
	if err := ask(unix.RTM_NEWLINK, 0, link); err != nil {
		return fmt.Errorf("bring up the sandbox's network: %w", err)
	}
	// A route for all addresses, of the kind that says: they are mine.
	route := []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
	route = binary.NativeEndian.AppendUint16(route, 8) // an attribute: its length, its kind, its value
	route = binary.NativeEndian.AppendUint16(route, unix.RTA_OIF)
	route = binary.NativeEndian.AppendUint32(route, loopback)
	if err := ask(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, route); err != nil {
		return fmt.Errorf("have all addresses lead to the sandbox: %w", err)
	}
	return nil
}

// ask sends one request to the kernel's network, and returns what it says.
func ask(kind, flags uint16, body []byte) error {
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
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(socket, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("the kernel's answer is %d bytes long", n)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}
