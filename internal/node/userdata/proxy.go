package userdata

import (
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxWritten bounds how many texts are kept that user data writes to files.
const maxWritten = 100

// written is a text that user data writes into a file, or adds to it.
type written struct {
	path string
	text text
}

// wrote notes what is written to a file of which the kubelet's environment may be made.
func (r *reader) wrote(path string, t text) {
	if strings.HasPrefix(path, "/etc/") && len(r.written) < maxWritten {
		r.written = append(r.written, written{path, t})
	}
}

// kubeletEnvironment is what user data puts into the environment of the kubelet: by drop-ins of its unit and defaults of systemd, by the files
// that those name, and by the NodeConfig. What is written later wins.
func (r *reader) kubeletEnvironment(s start) map[string]Value {
	out := map[string]Value{}
	for _, service := range []string{"default", "kubelet"} {
		for name, v := range s.environment[service] {
			out[name] = v
		}
	}
	for _, one := range r.written {
		if !strings.HasPrefix(one.path, "/etc/systemd/system/kubelet.service") && !strings.HasPrefix(one.path, "/etc/systemd/system.conf") {
			continue
		}
		one.text.eachLine(func(line string, at Spot) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch strings.TrimSpace(key) {
			case "Environment", "DefaultEnvironment":
				for _, pair := range words(value) {
					assignTo(out, pair, at)
				}
			case "EnvironmentFile":
				r.environmentFile(strings.TrimPrefix(strings.TrimSpace(value), "-"), out)
			}
		})
	}
	return out
}

// proxyLine is a line of a unit that has to do with the environment's proxies, and with nothing else.
var proxyLine = regexp.MustCompile(`(?i)^\s*(#.*|\[service\]|environmentfile=-?/etc/environment|(default)?environment=(\s*["']?(https?|no|all|ftp)_proxy=[^"'\s]*["']?)+)?\s*$`)

// setsProxies reports whether a drop-in of a unit sets proxies, and changes nothing else of what is started.
func setsProxies(t text) bool {
	for line := range strings.Lines(t.body) {
		if !proxyLine.MatchString(line) {
			return false
		}
	}
	return true
}

// environmentFile adds what user data writes into a file of assignments.
func (r *reader) environmentFile(path string, to map[string]Value) {
	for _, one := range r.written {
		if one.path == path {
			one.text.eachLine(func(line string, at Spot) { assignTo(to, strings.TrimSpace(line), at) })
		}
	}
}

// assignTo notes one assignment: NAME=value, or NAME="value".
func assignTo(to map[string]Value, pair string, at Spot) {
	name, value, ok := strings.Cut(pair, "=")
	if ok && name != "" && !strings.HasPrefix(name, "#") {
		to[name] = Value{Text: strings.Trim(value, `"'`), Vague: strings.Contains(value, mark), At: at}
	}
}

// eachLine calls what is given with the lines of the text and their places.
func (t text) eachLine(with func(line string, at Spot)) {
	number := 0
	for line := range strings.Lines(t.body) {
		with(line, Spot{Part: t.at.Part, Line: t.at.Line + number})
		number++
	}
}

// judgeProxy says when the kubelet asks a proxy for the API server. A name is not in a network that NO_PROXY names: it has to be there itself.
func (r *reader) judgeProxy(s start) {
	env := r.kubeletEnvironment(s)
	first := func(names ...string) Value { // as Go's HTTP client looks for them
		for _, name := range names {
			if env[name].IsSet() {
				return env[name]
			}
		}
		return Value{}
	}
	proxy, but := first("HTTPS_PROXY", "https_proxy"), first("NO_PROXY", "no_proxy")
	host := hostOf(known(s.endpoint.Text, r.in.Endpoint))
	if !proxy.IsSet() || leavesOut(but.Text, host) {
		return
	}
	at, certainty := but.At, Likely
	if !but.IsSet() {
		at = proxy.At
	}
	if but.Vague || proxy.Vague {
		certainty = Possible
	}
	r.problem(ProxyCatches, certainty, JoinsAmiss, at,
		"the kubelet asks a proxy for the API server, whose name is not in NO_PROXY: networks that stand there do not cover names").
		with("add to NO_PROXY", exception(host))
}

// known is the first of two values that is known.
func known(a, b string) string {
	if a == "" || strings.Contains(a, mark) {
		return b
	}
	return a
}

// endpoints is the domain of the API servers of EKS; in China another one is behind it.
const endpoints = ".eks.amazonaws.com"

// hostOf is the host of a URL; empty where it is none, or stands for one that is not known.
func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || !strings.ContainsAny(u.Hostname(), ".:") {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// exception is what NO_PROXY has to have for a host.
func exception(host string) string {
	switch {
	case host == "":
		return endpoints
	case strings.Contains(host, endpoints):
		return host[strings.Index(host, endpoints):]
	}
	return host
}

// leavesOut reports whether a host is asked without a proxy. Of one that is not known it is enough that names of EKS, or of AWS, are left out.
func leavesOut(noProxy, host string) bool {
	address, err := netip.ParseAddr(host)
	isAddress := err == nil
	for _, one := range strings.Split(noProxy, ",") {
		one = strings.ToLower(strings.TrimSpace(one))
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(one, "*"), "."), ":")
		block, err := netip.ParsePrefix(one)
		switch {
		case one == "*":
			return true
		case isAddress && err == nil && block.Contains(address):
			return true
		case name == "" || strings.Contains(name, mark):
		case host == "" && (strings.HasSuffix(name, "amazonaws.com") || strings.HasSuffix(name, "amazonaws.com.cn")):
			return true
		case host == name || !isAddress && strings.HasSuffix(host, "."+name):
			return true
		}
	}
	return false
}

// environmentOf is the environment that a NodeConfig gives to services, by service and name.
func environmentOf(instance map[string]any, spots map[string]Spot) map[string]map[string]Value {
	out := map[string]map[string]Value{}
	services, _ := instance["environment"].(map[string]any)
	for _, service := range slices.Sorted(maps.Keys(services)) {
		all, _ := services[service].(map[string]any)
		out[service] = map[string]Value{}
		for name, value := range all {
			if line, ok := value.(string); ok {
				out[service][name] = Value{Text: line, At: spots["spec.instance.environment."+service+"."+name]}
			}
		}
	}
	return out
}

var (
	noProxyValue = regexp.MustCompile(`(?i)(no_proxy["']?\s*[=:]\s*)("[^"]*|'[^']*|[^\s"']*)`)
	proxyValue   = regexp.MustCompile(`(?i)https_proxy(["']?\s*[=:]\s*["']?)[^\s"']*`)
)

// excepted is a line in which NO_PROXY has one entry more, or where none is, with another one behind it that sets it.
func excepted(line, entry string) string {
	if noProxyValue.MatchString(line) {
		return noProxyValue.ReplaceAllStringFunc(line, func(found string) string {
			if strings.HasSuffix(found, "=") || strings.HasSuffix(found, ",") || strings.HasSuffix(found, `="`) {
				return found + entry
			}
			return found + "," + entry
		})
	}
	m := proxyValue.FindStringSubmatchIndex(line)
	if m == nil {
		return line
	}
	return line + "\n" + line[:m[0]] + "NO_PROXY" + line[m[2]:m[3]] + entry + line[m[1]:]
}
