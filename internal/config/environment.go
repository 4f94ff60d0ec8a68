package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// misspelt finds the first variable, by name, that is almost one of ours. A setting that was given under its own name was not
// misspelt, so a variable of another program that resembles it is let be; ours have no prefix, so one with the name of the product
// before that of a setting is wrong in any case. Where args cannot be read, that comes first, and nothing is said here.
func misspelt(args []string, variables map[string]string) error {
	flags := (&Settings{}).byFlag()
	given, err := parse(args, flags)
	if err != nil {
		return nil
	}
	ours := flagsByVariable(flags)
	names := slices.Sorted(maps.Keys(ours))
	for _, v := range slices.Sorted(maps.Keys(variables)) {
		if _, known := ours[v]; known || variables[v] == "" || isIgnored(v) || isServiceLink(v, variables[v]) {
			continue
		}
		rest, prefixed := withoutPrefix(v)
		near := suggest.Nearest(rest, names)
		if near == "" || !isNear(rest, near) {
			continue
		}
		_, byFlag := given[ours[near]]
		if !prefixed && (byFlag || variables[near] != "") {
			continue
		}
		if prefixed {
			return fmt.Errorf("there is no variable %s: those of settings have no prefix, write %s (or --%s)", v, near, ours[near])
		}
		return fmt.Errorf("there is no variable %s: is %s (--%s) meant? unset it if it is another program's, or set %s, too", v, near, ours[near], near)
	}
	return nil
}

// flagsByVariable are the flags of settings by the names of their variables. Those that change nothing are left out: they are misspelt
// without harm.
func flagsByVariable(flags map[string]setting) map[string]string {
	out := map[string]string{}
	for flag, s := range flags {
		out[s.variable()] = flag
	}
	for flag, u := range unsupported() {
		if u.says != "" {
			out[setting{flag: flag}.variable()] = flag
		}
	}
	return out
}

// isIgnored reports whether a variable is that of a setting of Karpenter's that is taken and changes nothing.
func isIgnored(variable string) bool {
	_, ok := unsupported()[strings.ToLower(strings.ReplaceAll(variable, "_", "-"))]
	return ok
}

// serviceLink is how Kubernetes calls variables that it writes for the services of the pod's namespace.
var serviceLink = regexp.MustCompile(`_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)

// isServiceLink reports whether a variable comes from a service, which may well be called joiner: JOINER_PORT=tcp://10.0.0.1:8080.
func isServiceLink(variable, value string) bool {
	return serviceLink.MatchString(variable) || strings.HasSuffix(variable, "_PORT") && strings.Contains(value, "://")
}

// withoutPrefix takes away the name of a product.
func withoutPrefix(variable string) (rest string, prefixed bool) {
	upper := strings.ToUpper(variable)
	for _, prefix := range []string{"JOINER_", "KARPENTER_"} {
		if rest, ok := strings.CutPrefix(upper, prefix); ok {
			return rest, true
		}
	}
	return upper, false
}

// isNear is stricter than a suggestion may be: the controller does not start for it. Two edits in a name of eight letters or more, one
// in a shorter one.
func isNear(a, b string) bool {
	most := 2
	if min(len(a), len(b)) < 8 {
		most = 1
	}
	return suggest.Distance(strings.ReplaceAll(a, "-", "_"), b) <= most
}
