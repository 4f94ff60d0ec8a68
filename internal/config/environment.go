package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// checkVariableNames returns an error about the first variable, by name, that is probably a misspelled setting. A
// variable without the prefix JOINER_ or KARPENTER_ may belong to another program: it is no error if the setting that
// it resembles has a value. Invalid args are no error here, because Load reports them.
func checkVariableNames(args []string, variables map[string]string) error {
	flags := (&Settings{}).byFlag()
	given, err := parse(args, flags)
	if err != nil {
		return nil
	}
	flagOf := flagsByVariable(flags)
	names := slices.Sorted(maps.Keys(flagOf))
	for _, v := range slices.Sorted(maps.Keys(variables)) {
		if _, known := flagOf[v]; known || variables[v] == "" || isIgnored(v) || isServiceLink(v, variables[v]) {
			continue
		}
		bare, hasPrefix := withoutPrefix(v)
		near := suggest.Nearest(bare, names)
		if near == "" || !isNear(bare, near) {
			continue
		}
		_, hasFlag := given[flagOf[near]]
		if !hasPrefix && (hasFlag || variables[near] != "") {
			continue
		}
		if hasPrefix {
			return fmt.Errorf("there is no variable %s: the variables of settings have no prefix, write %s (or --%s)", v, near, flagOf[near])
		}
		return fmt.Errorf("there is no variable %s: did you mean %s (--%s)? if the variable belongs to another program, unset the variable, or set %s, too",
			v, near, flagOf[near], near)
	}
	return nil
}

// flagsByVariable returns the flags of settings by variable. It omits unsupported settings for which every value is
// harmless, because misspelling them does no harm either.
func flagsByVariable(flags map[string]setting) map[string]string {
	out := map[string]string{}
	for flag, s := range flags {
		out[s.variable()] = flag
	}
	for flag, u := range unsupported() {
		if u.note != "" {
			out[setting{flag: flag}.variable()] = flag
		}
	}
	return out
}

// isIgnored reports whether a variable belongs to a setting in unsupported.
func isIgnored(variable string) bool {
	_, ok := unsupported()[strings.ToLower(strings.ReplaceAll(variable, "_", "-"))]
	return ok
}

// serviceLink matches the variables that the kubelet sets for the Services of the pod's namespace.
var serviceLink = regexp.MustCompile(`_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)

// isServiceLink reports whether the kubelet set a variable for a Service. Without this check, the variables of a
// Service named joiner would count as misspelled settings: JOINER_PORT=tcp://10.0.0.1:8080.
func isServiceLink(variable, value string) bool {
	return serviceLink.MatchString(variable) || strings.HasSuffix(variable, "_PORT") && strings.Contains(value, "://")
}

// withoutPrefix returns the variable in upper case without the prefix JOINER_ or KARPENTER_, and whether it has one.
func withoutPrefix(variable string) (bare string, hasPrefix bool) {
	upper := strings.ToUpper(variable)
	for _, prefix := range []string{"JOINER_", "KARPENTER_"} {
		if bare, ok := strings.CutPrefix(upper, prefix); ok {
			return bare, true
		}
	}
	return upper, false
}

// isNear reports whether two names differ by at most two edits, or by one if a name has fewer than eight letters. It is
// stricter than package suggest, because the controller does not start if checkVariableNames returns an error.
func isNear(a, b string) bool {
	maxEdits := 2
	if min(len(a), len(b)) < 8 {
		maxEdits = 1
	}
	return suggest.Distance(strings.ReplaceAll(a, "-", "_"), b) <= maxEdits
}
