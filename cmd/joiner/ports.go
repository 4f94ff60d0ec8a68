package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/joiner-sh/joiner/internal/config"
)

// address returns the address on which a port listens; "0", which disables the server, for port 0.
func address(settings config.Settings, port int) string {
	if port == 0 {
		return "0"
	}
	return net.JoinHostPort(settings.BindAddress, strconv.Itoa(port))
}

// checkPorts checks that the controller can listen on its ports, before the controller calls Kubernetes or AWS. The
// manager would report an occupied metrics port only when the manager is created, and an occupied probe port only when
// it runs.
func checkPorts(ctx context.Context, settings config.Settings) error {
	for _, p := range []struct {
		what, setting string
		port          int
	}{
		{"metrics", "--metrics-port (METRICS_PORT)", settings.MetricsPort},
		{"probes", "--health-probe-port (HEALTH_PROBE_PORT)", settings.ProbePort},
	} {
		if p.port == 0 {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address(settings, p.port))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("serve %s: another program has port %d already: give %s another port, or 0 for none", p.what, p.port, p.setting)
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return fmt.Errorf("serve %s: this host does not have the address %s: correct --bind-address (BIND_ADDRESS)", p.what,
				settings.BindAddress)
		case err != nil:
			return fmt.Errorf("serve %s: %w: give %s another port, or 0 for none", p.what, err, p.setting)
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("serve %s: %w", p.what, err)
		}
	}
	return nil
}
