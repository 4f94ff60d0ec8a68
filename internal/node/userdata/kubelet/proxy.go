package kubelet

import (
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

const maxWritten = 100

// RecordWritten records a text that user data writes to a file below /etc, which may set the kubelet's environment.
func RecordWritten(r *userdata.Reader, path string, t userdata.Text) {
	if strings.HasPrefix(path, "/etc/") && len(r.Written) < maxWritten {
		r.Written = append(r.Written, userdata.Written{Path: path, Text: t})
	}
}

// kubeletEnvironment returns the kubelet's environment as far as user data sets it. User data can set it in the
// NodeConfig, in drop-ins of the kubelet's unit, in the defaults of systemd, and in environment files that these
// drop-ins or defaults name. Later settings override earlier ones.
func kubeletEnvironment(r *userdata.Reader, s userdata.Start) map[string]userdata.Value {
	out := map[string]userdata.Value{}
	for _, service := range []string{"default", "kubelet"} {
		for name, v := range s.Environment[service] {
			out[name] = v
		}
	}
	for _, file := range r.Written {
		if !strings.HasPrefix(file.Path, "/etc/systemd/system/kubelet.service") && !strings.HasPrefix(file.Path, "/etc/systemd/system.conf") {
			continue
		}
		eachLine(file.Text, func(line string, at userdata.Position) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch strings.TrimSpace(key) {
			case "Environment", "DefaultEnvironment":
				for _, pair := range userdata.Words(value) {
					addAssignment(out, pair, at)
				}
			case "EnvironmentFile":
				addEnvironmentFile(r, strings.TrimPrefix(strings.TrimSpace(value), "-"), out)
			}
		})
	}
	return out
}

// proxyLine matches a line of a systemd unit that is blank, is a comment, is a section header, or sets only proxies in
// the environment.
var proxyLine = regexp.MustCompile(`(?i)^\s*(#.*|\[service\]|environmentfile=-?/etc/environment|(default)?environment=(\s*["']?(https?|no|all|ftp)_proxy=[^"'\s]*["']?)+)?\s*$`)

// SetsProxies reports whether a drop-in of a unit sets proxies and changes nothing else.
func SetsProxies(t userdata.Text) bool {
	for line := range strings.Lines(t.Body) {
		if !proxyLine.MatchString(line) {
			return false
		}
	}
	return true
}

func addEnvironmentFile(r *userdata.Reader, path string, environment map[string]userdata.Value) {
	for _, file := range r.Written {
		if file.Path == path {
			eachLine(file.Text, func(line string, at userdata.Position) { addAssignment(environment, strings.TrimSpace(line), at) })
		}
	}
}

// addAssignment adds one assignment to environment: NAME=value, or NAME="value".
func addAssignment(environment map[string]userdata.Value, pair string, at userdata.Position) {
	name, value, ok := strings.Cut(pair, "=")
	if ok && name != "" && !strings.HasPrefix(name, "#") {
		environment[name] = userdata.Value{Text: strings.Trim(value, `"'`), Vague: strings.Contains(value, userdata.UnknownText), At: at}
	}
}

func eachLine(t userdata.Text, visit func(line string, at userdata.Position)) {
	number := 0
	for line := range strings.Lines(t.Body) {
		visit(line, userdata.Position{Part: t.At.Part, Line: t.At.Line + number})
		number++
	}
}

// JudgeProxy reports a kubelet that sends requests to the API server through a proxy, because HTTPS_PROXY is set and
// NO_PROXY does not exclude the API server. A network in NO_PROXY does not exclude a host name.
func JudgeProxy(r *userdata.Reader, s userdata.Start) {
	env := kubeletEnvironment(r, s)
	first := func(names ...string) userdata.Value { // in the order of Go's HTTP client
		for _, name := range names {
			if env[name].IsSet() {
				return env[name]
			}
		}
		return userdata.Value{}
	}
	proxy, noProxy := first("HTTPS_PROXY", "https_proxy"), first("NO_PROXY", "no_proxy")
	host := hostOf(firstKnownText(s.Endpoint.Text, r.In.Endpoint))
	if !proxy.IsSet() || excludes(noProxy.Text, host) {
		return
	}
	at, certainty := noProxy.At, userdata.Likely
	if !noProxy.IsSet() {
		at = proxy.At
	}
	if noProxy.Vague || proxy.Vague {
		certainty = userdata.Possible
	}
	r.Report(userdata.ProxyForAPIServer, certainty, userdata.JoinsDifferently, at,
		"the kubelet calls the API server through a proxy, because NO_PROXY does not contain the API server's host name (a network in NO_PROXY does not match host names)").
		Suggest("add to NO_PROXY", noProxyEntry(host))
}

// firstKnownText returns a, or b if a is empty or contains UnknownText.
func firstKnownText(a, b string) string {
	if a == "" || strings.Contains(a, userdata.UnknownText) {
		return b
	}
	return a
}

// eksDomain is the domain of EKS's API servers; in China ".cn" follows.
const eksDomain = ".eks.amazonaws.com"

// hostOf returns the host of a URL in lower case; empty if the text is not a URL, or its host has neither dot nor
// colon.
func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || !strings.ContainsAny(u.Hostname(), ".:") {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// noProxyEntry returns what to add to NO_PROXY for a host: the domain of EKS's API servers if the host is in that
// domain or is unknown, otherwise the host itself.
func noProxyEntry(host string) string {
	switch {
	case host == "":
		return eksDomain
	case strings.Contains(host, eksDomain):
		return host[strings.Index(host, eksDomain):]
	}
	return host
}

// excludes reports whether NO_PROXY excludes a host. For an unknown host, an entry for the domain of EKS or AWS is
// sufficient.
func excludes(noProxy, host string) bool {
	address, err := netip.ParseAddr(host)
	isAddress := err == nil
	for _, entry := range strings.Split(noProxy, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(entry, "*"), "."), ":")
		network, err := netip.ParsePrefix(entry)
		switch {
		case entry == "*":
			return true
		case isAddress && err == nil && network.Contains(address):
			return true
		case name == "" || strings.Contains(name, userdata.UnknownText):
		case host == "" && (strings.HasSuffix(name, "amazonaws.com") || strings.HasSuffix(name, "amazonaws.com.cn")):
			return true
		case host == name || !isAddress && strings.HasSuffix(host, "."+name):
			return true
		}
	}
	return false
}

// EnvironmentOf returns the environment variables that spec.instance of a NodeConfig sets, by service and name.
func EnvironmentOf(instance map[string]any, positions map[string]userdata.Position) map[string]map[string]userdata.Value {
	out := map[string]map[string]userdata.Value{}
	services, _ := instance["environment"].(map[string]any)
	for _, service := range slices.Sorted(maps.Keys(services)) {
		variables, _ := services[service].(map[string]any)
		out[service] = map[string]userdata.Value{}
		for name, value := range variables {
			if text, ok := value.(string); ok {
				out[service][name] = userdata.Value{Text: text, At: positions["spec.instance.environment."+service+"."+name]}
			}
		}
	}
	return out
}

// The patterns of an assignment of NO_PROXY and of HTTPS_PROXY in a line of any file.
var (
	noProxyValue = regexp.MustCompile(`(?i)(no_proxy["']?\s*[=:]\s*)("[^"]*|'[^']*|[^\s"']*)`)
	proxyValue   = regexp.MustCompile(`(?i)https_proxy(["']?\s*[=:]\s*["']?)[^\s"']*`)
)

// AddToNoProxy returns the line with one more entry in NO_PROXY. If the line sets only HTTPS_PROXY, it adds a line that
// sets NO_PROXY.
func AddToNoProxy(line, entry string) string {
	if noProxyValue.MatchString(line) {
		return noProxyValue.ReplaceAllStringFunc(line, func(found string) string {
			// Without entries, or after a comma, no comma is needed.
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
	separator := line[m[2]:m[3]] // = or a colon, and any quotes
	return line + "\n" + line[:m[0]] + "NO_PROXY" + separator + entry + line[m[1]:]
}
