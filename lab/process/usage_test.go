package process

import (
	"testing"
	"time"
)

// TestParseUsage parses the kernel's data about a process whose name has spaces and a parenthesis.
func TestParseUsage(t *testing.T) {
	t.Parallel()
	// utime is 250 and stime is 50, in hundredths of a second.
	stat := "4711 (a b) c) S 1 4711 4711 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 100 1000 200 18446744073709551615"
	status := "Name:\tjoiner\nVmPeak:\t  900000 kB\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\nThreads:\t9\n"
	got, err := parseUsage(stat, status)
	if want := (Usage{CPU: 3 * time.Second, Memory: 100 << 20, Peak: 200 << 20}); err != nil || got != want {
		t.Errorf("the usage is %+v (%v), want %+v", got, err, want)
	}
	if _, err := parseUsage("nonsense", status); err == nil {
		t.Error("invalid data in /proc/PID/stat: no error, want one")
	}
}
