package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// misspelt returns an error about the first variable, by name, that is probably a misspelled setting. A variable that resembles a setting
// which has a value is ignored, because it may belong to another program. A setting with the prefix JOINER_ or KARPENTER_ is always an
// error. It returns nil if args are invalid, because Load reports that.
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
		return fmt.Errorf("there is no variable %s: did you mean %s (--%s)? unset it if it is another program's, or set %s, too",
			v, near, ours[near], near)
	}
	return nil
}

// flagsByVariable returns the flags of settings by variable. It omits settings without any effect, because misspelling them does no harm.
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

// isIgnored reports whether a variable is that of an accepted setting of Karpenter without effect.
func isIgnored(variable string) bool {
	_, ok := unsupported()[strings.ToLower(strings.ReplaceAll(variable, "_", "-"))]
	return ok
}

// serviceLink matches the variables that the kubelet sets for the Services of the pod's namespace.
var serviceLink = regexp.MustCompile(`_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)

// isServiceLink reports whether a variable comes from a Service, which may be named joiner: JOINER_PORT=tcp://10.0.0.1:8080.
func isServiceLink(variable, value string) bool {
	return serviceLink.MatchString(variable) || strings.HasSuffix(variable, "_PORT") && strings.Contains(value, "://")
}

// withoutPrefix removes the prefix JOINER_ or KARPENTER_ from an upper-cased variable.
func withoutPrefix(variable string) (rest string, prefixed bool) {
	upper := strings.ToUpper(variable)
	for _, prefix := range []string{"JOINER_", "KARPENTER_"} {
		if rest, ok := strings.CutPrefix(upper, prefix); ok {
			return rest, true
		}
	}
	return upper, false
}

// isNear reports whether two names differ by at most two edits, or one if a name has less than eight letters. It is stricter than package
// suggest, because the controller does not start with such a variable.
func isNear(a, b string) bool {
	most := 2
	if min(len(a), len(b)) < 8 {
		most = 1
	}
	return suggest.Distance(strings.ReplaceAll(a, "-", "_"), b) <= most
}
