package instance

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// utilities returns emulations of the images' programs that user data commonly calls. An emulated program has only the
// effects that the lab needs.
func (b *boot) utilities(f *files) map[string]program {
	succeed := func([]string, io.Reader, io.Writer, io.Writer) int { return 0 } // succeeds without an effect
	programs := map[string]program{
		"cat":       func(args []string, in io.Reader, out, errs io.Writer) int { return cat(f, args, in, out, errs) },
		"tee":       func(args []string, in io.Reader, out, _ io.Writer) int { return tee(f, args, in, out) },
		"logger":    func(args []string, in io.Reader, _, errs io.Writer) int { return logger(args, in, errs) },
		"mkdir":     func(args []string, _ io.Reader, _, _ io.Writer) int { return eachPath(args, f.makeFolder) },
		"rm":        func(args []string, _ io.Reader, _, _ io.Writer) int { return eachPath(args, f.remove) },
		"touch":     func(args []string, _ io.Reader, _, _ io.Writer) int { return touch(f, args) },
		"cp":        func(args []string, _ io.Reader, _, errs io.Writer) int { return copyOrMove(f, "cp", args, errs) },
		"mv":        func(args []string, _ io.Reader, _, errs io.Writer) int { return copyOrMove(f, "mv", args, errs) },
		"jq":        func(args []string, in io.Reader, out, errs io.Writer) int { return jq(f, args, in, out, errs) },
		"base64":    encodeOrDecode,
		"curl":      func(args []string, in io.Reader, out, errs io.Writer) int { return b.curl(f, args, in, out, errs) },
		"swapon":    func([]string, io.Reader, io.Writer, io.Writer) int { b.hasSwap = true; return 0 },
		"mkswap":    succeed,
		"fallocate": b.fallocate,
		"hostname":  printer(b.PrivateDNSName),
		"uname":     b.uname,
		"nproc":     printer(fmt.Sprint(b.Facts.Processor.VCPUs)),
		"date":      printer(time.Now().UTC().Format(time.UnixDate)),
		"id":        printer("uid=0(root) gid=0(root) groups=0(root)"),
		"whoami":    printer("root"),
	}
	for _, name := range []string{
		"sleep", "chmod", "chown", "sync", "sysctl", "systemctl", "mount", "umount", "swapoff", "modprobe", "yum", "dnf", "rpm",
		"update-ca-trust", "iptables", "useradd", "groupadd", "usermod", "amazon-linux-extras", "cloud-init", "chronyc", "setenforce",
	} {
		programs[name] = succeed
	}
	return programs
}

// printer returns a program that prints the line and ignores its arguments.
func printer(line string) program {
	return func(_ []string, _ io.Reader, out, _ io.Writer) int {
		fmt.Fprintln(out, line)
		return 0
	}
}

// uname emulates uname with at most one of the options -m, -p, -i and -r.
func (b *boot) uname(args []string, _ io.Reader, out, _ io.Writer) int {
	architecture := b.Image.Architecture
	if architecture == "arm64" {
		architecture = "aarch64"
	}
	switch strings.Join(args, "") {
	case "-m", "-p", "-i":
		fmt.Fprintln(out, architecture)
	case "-r":
		fmt.Fprintln(out, b.Image.kernelVersion()+"."+architecture)
	default:
		fmt.Fprintln(out, "Linux")
	}
	return 0
}

func cat(f *files, args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) == 0 {
		args = []string{"-"}
	}
	code := 0
	for _, name := range args {
		if name == "-" {
			copyInput(out, in)
			continue
		}
		data, ok := f.read(path.Clean(name))
		if !ok {
			fmt.Fprintf(errs, "cat: %s: No such file or directory\n", name)
			code = 1
		}
		_, _ = out.Write(data)
	}
	return code
}

// tee emulates tee, also with the option -a. Lines for /dev/console are written to the output only.
func tee(f *files, args []string, in io.Reader, out io.Writer) int {
	isAppend := false
	var names []string
	for _, arg := range args {
		if arg == "-a" {
			isAppend = true
		} else if !strings.HasPrefix(arg, "-") {
			names = append(names, path.Clean(arg))
		}
	}
	var input bytes.Buffer
	copyInput(io.MultiWriter(out, &input), in)
	for _, name := range names {
		if name != "/dev/console" && f.write(name, input.Bytes(), isAppend) != nil {
			return 1
		}
	}
	return 0
}

// logger emulates logger: with -s it copies the input to standard error. The lab has no journal. Text in arguments is
// ignored.
func logger(args []string, in io.Reader, errs io.Writer) int {
	toStderr := false
	for _, arg := range args {
		toStderr = toStderr || arg == "-s"
	}
	if !toStderr {
		errs = io.Discard
	}
	copyInput(errs, in)
	return 0
}

func touch(f *files, args []string) int {
	for _, name := range args {
		if f.write(path.Clean(name), nil, true) != nil {
			return 1
		}
	}
	return 0
}

// copyOrMove emulates the program in name, which is cp or mv, for one file.
func copyOrMove(f *files, name string, args []string, errs io.Writer) int {
	var paths []string
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			paths = append(paths, path.Clean(arg))
		}
	}
	if len(paths) != 2 {
		fmt.Fprintf(errs, "%s: missing file operand\n", name)
		return 1
	}
	data, ok := f.read(paths[0])
	if !ok {
		fmt.Fprintf(errs, "%s: cannot stat '%s': No such file or directory\n", name, paths[0])
		return 1
	}
	if to, err := f.stat(paths[1]); err == nil && to.IsDir() {
		paths[1] = path.Join(paths[1], path.Base(paths[0]))
	}
	if err := f.write(paths[1], data, false); err != nil {
		fmt.Fprintf(errs, "%s: cannot create regular file '%s': No such file or directory\n", name, paths[1])
		return 1
	}
	if name == "mv" && paths[0] != paths[1] {
		f.remove(paths[0])
	}
	return 0
}

// eachPath calls do for each argument that is not an option. It returns the exit code 0.
func eachPath(args []string, do func(string)) int {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			do(path.Clean(arg))
		}
	}
	return 0
}

// encodeOrDecode emulates base64 on standard input. With -d or --decode it decodes.
func encodeOrDecode(args []string, in io.Reader, out, errs io.Writer) int {
	for _, arg := range args {
		if arg == "-d" || arg == "--decode" {
			if _, err := io.Copy(out, base64.NewDecoder(base64.StdEncoding, in)); err != nil {
				fmt.Fprintln(errs, "base64: invalid input")
				return 1
			}
			return 0
		}
	}
	encoder := base64.NewEncoder(base64.StdEncoding, out)
	copyInput(encoder, in)
	_ = encoder.Close()
	fmt.Fprintln(out)
	return 0
}

// curl emulates requests to the metadata service, and downloads of a URL to a file if the URL contains an architecture.
// All other requests fail.
func (b *boot) curl(f *files, args []string, _ io.Reader, out, errs io.Writer) int {
	url, file := "", ""
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://"):
			url = arg
		case arg == "--output" && i+1 < len(args), // next: -o, also in a group of options such as -sSLo
			strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "o") && i+1 < len(args):
			file = path.Clean(args[i+1])
		}
	}
	if arch := architectureOf(url); arch != "" && file != "" {
		if err := f.write(file, []byte(executablePrefix+arch), false); err != nil {
			fmt.Fprintf(errs, "curl: (23) Failed to open the file %s: No such file or directory\n", file)
			return 23
		}
		return 0
	}
	item, ok := strings.CutPrefix(url, "http://169.254.169.254/latest/")
	if !ok {
		fmt.Fprintf(errs, "curl: (28) Failed to connect to %s: the lab has no network beyond the metadata service\n", url)
		return 28
	}
	responses := map[string]string{
		"api/token":                             "AQAEAGVk",
		"meta-data/instance-id":                 b.ID,
		"meta-data/instance-type":               b.Facts.Name,
		"meta-data/local-ipv4":                  b.PrivateIP,
		"meta-data/local-hostname":              b.PrivateDNSName,
		"meta-data/hostname":                    b.PrivateDNSName,
		"meta-data/placement/availability-zone": b.Zone,
		"meta-data/placement/region":            b.Region,
	}
	response, ok := responses[strings.TrimSuffix(item, "/")]
	if !ok {
		fmt.Fprintln(errs, "curl: (22) The requested URL returned error: 404 Not Found")
		return 22
	}
	fmt.Fprint(out, response)
	return 0
}

// fallocate only checks the size: it fails if the file is larger than the disk.
func (b *boot) fallocate(args []string, _ io.Reader, _, errs io.Writer) int {
	for i, arg := range args {
		if arg != "-l" || i+1 == len(args) {
			continue
		}
		size, err := resource.ParseQuantity(strings.TrimSuffix(args[i+1], "B"))
		if err != nil {
			fmt.Fprintln(errs, "fallocate: invalid length value specified")
			return 1
		}
		if size.Value() >= b.RootGiB*1e9 { // GB, not GiB: the image needs space too
			fmt.Fprintln(errs, "fallocate: fallocate failed: No space left on device")
			return 1
		}
	}
	return 0
}

// copyInput copies at most maxFile bytes of the input, and ignores errors. A nil reader is empty.
func copyInput(to io.Writer, from io.Reader) {
	if from != nil {
		_, _ = io.Copy(to, io.LimitReader(from, maxFile))
	}
}
