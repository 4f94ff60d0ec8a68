package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is the resource usage of a process at one time.
type Usage struct {
	CPU    time.Duration // CPU time since the start of the process
	Memory int64         // resident memory, in bytes
	Peak   int64         // maximum resident memory since the start of the process, in bytes
}

// clockTick is the kernel's unit of CPU time in /proc: a hundredth of a second on every architecture that Go supports.
const clockTick = 10 * time.Millisecond

// UsageOf reads the usage of a running process from the kernel (Linux only).
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the resource usage of a process: %w", err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the resource usage of a process: %w", err)
	}
	return parseUsage(string(stat), string(status))
}

// parseUsage reads /proc/PID/stat and /proc/PID/status, see proc(5).
func parseUsage(stat, status string) (Usage, error) {
	end := strings.LastIndexByte(stat, ')') // end of the program's name, which may contain any character
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return Usage{}, fmt.Errorf("parse the resource usage of a process: %q is not in the format of /proc/PID/stat", stat)
	}
	var s Usage
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("parse the resource usage of a process: %w", err)
		}
		s.CPU += time.Duration(n) * clockTick
	}
	for line := range strings.Lines(status) {
		f := strings.Fields(line)
		// VmRSS is the resident memory, VmHWM its maximum.
		if len(f) != 3 || f[0] != "VmRSS:" && f[0] != "VmHWM:" {
			continue
		}
		kib, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("parse the resource usage of a process: %w", err)
		}
		if f[0] == "VmRSS:" {
			s.Memory = kib << 10
		} else {
			s.Peak = kib << 10
		}
	}
	return s, nil
}
