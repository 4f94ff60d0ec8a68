package main

import (
	"net"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/config"
)

// TestCheckPorts: the error about an occupied port or a foreign address names the setting.
func TestCheckPorts(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	taken := other.Addr().(*net.TCPAddr).Port
	for name, c := range map[string]struct {
		settings config.Settings
		want     string // part of the error; empty: no error
	}{
		"nothing to serve": {config.Settings{BindAddress: "127.0.0.1"}, ""},
		"metrics":          {config.Settings{BindAddress: "127.0.0.1", MetricsPort: taken}, "serve metrics: another program has port "},
		"metrics, fix": {config.Settings{BindAddress: "127.0.0.1", MetricsPort: taken},
			"give --metrics-port (METRICS_PORT) another port, or 0 for none"},
		"probes": {config.Settings{BindAddress: "127.0.0.1", ProbePort: taken},
			"give --health-probe-port (HEALTH_PROBE_PORT) another port"},
		"on all addresses": {config.Settings{MetricsPort: taken}, "serve metrics: another program has port "},
		"address of another host": {config.Settings{BindAddress: "192.0.2.1", MetricsPort: taken},
			"does not have the address 192.0.2.1: correct --bind-address (BIND_ADDRESS)"},
	} {
		err := checkPorts(t.Context(), c.settings)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bind string
		port int
		want string
	}{{"", 0, "0"}, {"127.0.0.1", 0, "0"}, {"", 8080, ":8080"}, {"127.0.0.1", 8080, "127.0.0.1:8080"}, {"::1", 8080, "[::1]:8080"}} {
		if got := address(config.Settings{BindAddress: c.bind}, c.port); got != c.want {
			t.Errorf("%q %d: %s, want %s", c.bind, c.port, got, c.want)
		}
	}
}
