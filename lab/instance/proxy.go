package instance

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// kubeletEnvironment returns the environment variables that drop-ins of the kubelet's unit set, directly or with
// EnvironmentFile. Source: systemd.exec(5), "Environment".
func (f *files) kubeletEnvironment() map[string]string {
	out := map[string]string{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.content)) {
		if !strings.HasPrefix(name, "/etc/systemd/system/kubelet.service.d/") || !strings.HasSuffix(name, ".conf") {
			continue
		}
		for line := range strings.Lines(string(f.content[name])) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			pairs := words(value)
			if key == "EnvironmentFile" {
				pairs = strings.Split(string(f.content[strings.TrimPrefix(value, "-")]), "\n")
			} else if key != "Environment" {
				continue
			}
			for _, pair := range pairs {
				if variable, content, ok := strings.Cut(strings.TrimSpace(pair), "="); ok {
					out[variable] = strings.Trim(content, `"'`)
				}
			}
		}
	}
	return out
}

// proxyFor returns host and port of the proxy that a program with this environment uses for an https URL. It is empty
// without a proxy. Source: golang.org/x/net/http/httpproxy. Unlike httpproxy, it also uses a proxy for loopback
// addresses, because the lab's API server listens on 127.0.0.1.
func proxyFor(environment map[string]string, address string) string {
	either := func(name string) string {
		if value := environment[name]; value != "" {
			return value
		}
		return environment[strings.ToLower(name)]
	}
	target, err := url.Parse(address)
	proxy, err2 := url.Parse(either("HTTPS_PROXY"))
	if err != nil || err2 != nil || proxy.Host == "" {
		return ""
	}
	host := target.Hostname()
	ip, err := netip.ParseAddr(host)
	for _, one := range strings.Split(either("NO_PROXY"), ",") {
		one = strings.TrimSpace(one)
		block, notBlock := netip.ParsePrefix(one)
		switch {
		case one == "":
		case one == "*", one == host, strings.HasSuffix(host, "."+strings.TrimPrefix(one, ".")):
			return ""
		case err == nil && notBlock == nil && block.Contains(ip):
			return ""
		}
	}
	return proxy.Host
}
