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
			pairs := splitWords(value)
			if key == "EnvironmentFile" {
				// "-" marks a file that may be missing.
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

// proxyFor returns host and port of the proxy that a program with this environment uses to call address, an https URL.
// The result is empty if the program uses no proxy. Source: golang.org/x/net/http/httpproxy. Unlike httpproxy, proxyFor
// also uses the proxy for loopback addresses, because the lab's API server listens on 127.0.0.1.
func proxyFor(environment map[string]string, address string) string {
	variable := func(name string) string { // in upper case, or else in lower case
		if value := environment[name]; value != "" {
			return value
		}
		return environment[strings.ToLower(name)]
	}
	target, err := url.Parse(address)
	proxy, proxyErr := url.Parse(variable("HTTPS_PROXY"))
	if err != nil || proxyErr != nil || proxy.Host == "" {
		return ""
	}
	host := target.Hostname()
	ip, ipErr := netip.ParseAddr(host)
	for _, entry := range strings.Split(variable("NO_PROXY"), ",") {
		entry = strings.TrimSpace(entry)
		block, blockErr := netip.ParsePrefix(entry)
		switch {
		case entry == "":
		case entry == "*", entry == host, strings.HasSuffix(host, "."+strings.TrimPrefix(entry, ".")):
			return ""
		case ipErr == nil && blockErr == nil && block.Contains(ip):
			return ""
		}
	}
	return proxy.Host
}
