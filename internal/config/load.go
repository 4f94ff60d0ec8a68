package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Note reports that a setting of Karpenter was given, but has no effect.
type Note struct {
	Setting     string // "--feature-gates (FEATURE_GATES)"
	Value       string // as configured
	Explanation string // what Joiner does instead, or which feature Joiner does not have
}

// ErrHelp is returned when the arguments ask for help.
var ErrHelp = errors.New("the arguments ask for help")

// FromProcess reads the settings as Load does, from the arguments and the environment ("NAME=value") of a process. A
// variable that is probably a misspelled setting (see checkVariableNames) is an error that names the setting.
func FromProcess(args, environ []string) (Settings, []Note, error) {
	variables := map[string]string{}
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok {
			variables[name] = value
		}
	}
	if err := checkVariableNames(args, variables); err != nil {
		return Settings{}, nil, err
	}
	return Load(args, func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	})
}

// Load reads the settings. A flag overrides its variable, and a variable the default. An empty variable is ignored. The
// notes are about settings of Karpenter that have no effect. Flags are written --name=value or --name value; --name
// alone sets a boolean to true.
func Load(args []string, lookup func(variable string) (string, bool)) (Settings, []Note, error) {
	c := Settings{ReservedCapacity: true} // the only feature gate that is on by default
	given, err := parse(args, c.byFlag())
	if err != nil {
		return Settings{}, nil, err
	}
	for _, s := range c.table() {
		value, source := s.fallback, ""
		if v, ok := lookup(s.variable()); ok && v != "" {
			value, source = v, s.variable()
		}
		if v, ok := given[s.flag]; ok {
			value, source = v, "--"+s.flag
		}
		if value == "" && source == "" {
			continue // neither given nor with a default
		}
		if err := s.set(value); err != nil {
			err = quotingError(s, value, err)
			if strings.HasPrefix(value, "tcp://") && source == s.variable() {
				err = fmt.Errorf("%w; Kubernetes writes such values for services: set enableServiceLinks: false, or --%s", err, s.flag)
			}
			return Settings{}, nil, fmt.Errorf("setting %s is %q: %w", source, value, err)
		}
	}
	if err := c.check(); err != nil {
		return Settings{}, nil, err
	}
	return c, notes(given, lookup), nil
}

// Setting describes one setting.
type Setting struct {
	Flag     string // without leading hyphens: "batch-max-duration"
	Variable string // "BATCH_MAX_DURATION"
	Default  string // as text; empty for none
	Help     string // for the command's help and the reference documentation
}

// All returns the supported settings, grouped by topic.
func All() []Setting {
	var c Settings
	var out []Setting
	for _, s := range c.table() {
		out = append(out, Setting{Flag: s.flag, Variable: s.variable(), Default: s.fallback, Help: s.help})
	}
	return out
}

// Unsupported returns the settings of Karpenter that are accepted and have no effect, sorted by flag. Default is the
// value that matches what Joiner does. Help says what Joiner does if another value is given; it is empty if every value
// is harmless.
func Unsupported() []Setting {
	all := unsupported()
	var out []Setting
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		if _, isSupported := (&Settings{}).byFlag()[flag]; isSupported {
			continue
		}
		out = append(out, Setting{Flag: flag, Variable: setting{flag: flag}.variable(), Default: all[flag].harmless, Help: all[flag].note})
	}
	return out
}

// Help returns one line for each setting, and a sentence on their variables.
func Help() string {
	var b strings.Builder
	for _, s := range All() {
		fmt.Fprintf(&b, "  --%-28s %s", s.Flag, s.Help)
		if s.Default != "" {
			fmt.Fprintf(&b, " (default %s)", s.Default)
		}
		b.WriteString("\n")
	}
	b.WriteString("\nEach setting can also be given as an environment variable: --batch-max-duration as BATCH_MAX_DURATION.\n")
	return b.String()
}

// parse returns the values of the flags in args, by flag. Unsupported settings of Karpenter are accepted, too.
func parse(args []string, known map[string]setting) (map[string]string, error) {
	given := map[string]string{}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "-h" || arg == "--help" || arg == "-help" {
			return nil, ErrHelp
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		s, ok := known[name]
		_, isUnsupported := unsupported()[name]
		if !strings.HasPrefix(arg, "-") || !ok && !isUnsupported {
			return nil, fmt.Errorf("there is no setting %q%s: joiner controller --help lists the settings", arg, flagHint(name, known))
		}
		switch {
		case hasValue:
		case s.isBool && (i+1 == len(args) || strings.HasPrefix(args[i+1], "-")):
			value = "true"
		case i+1 == len(args):
			return nil, fmt.Errorf("setting --%s has no value: write --%s=VALUE", name, name)
		default:
			i++
			value = args[i]
		}
		if before, isGiven := given[name]; isGiven && before != value {
			return nil, fmt.Errorf("setting --%s is given twice, as %q and as %q: leave one of them out", name, before, value)
		}
		given[name] = value
	}
	return given, nil
}

// quotingError returns an error about spaces or quotes around the value if the value is valid without them, else err.
func quotingError(s setting, value string, err error) error {
	inner := strings.Trim(value, " \t\r\n\"'")
	if inner == "" || inner == value || s.set(inner) != nil {
		return err
	}
	return fmt.Errorf("there are spaces or quotes around it (did you mean %s?)", inner)
}

// notes returns a note for each unsupported setting of Karpenter that is given, unless its value is harmless.
func notes(given map[string]string, lookup func(string) (string, bool)) []Note {
	var out []Note
	all := unsupported()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := setting{flag: name}
		value, ok := given[name]
		if !ok {
			value, ok = lookup(s.variable())
		}
		u := all[name]
		if !ok || value == "" || u.note == "" || strings.EqualFold(value, u.harmless) || areGatesOff(name, value) {
			continue
		}
		out = append(out, Note{Setting: s.bothNames(), Value: value, Explanation: u.note})
	}
	gates := setting{flag: "feature-gates"}
	value, ok := given[gates.flag]
	if !ok {
		value, _ = lookup(gates.variable())
	}
	return append(out, gateNotes(gates.bothNames(), value)...)
}

// gateNotes returns a note for each unsupported feature gate of Karpenter that value, the list of gates, turns on.
func gateNotes(setting, value string) []Note {
	consequences := (&Settings{}).unsupportedGates()
	on := map[string]bool{}
	for _, gate := range strings.Split(value, ",") {
		name, state, _ := strings.Cut(strings.TrimSpace(gate), "=")
		if _, ok := consequences[name]; ok {
			on[name], _ = strconv.ParseBool(state) // Load has validated the state; the last one applies
		}
	}
	var out []Note
	for _, name := range slices.Sorted(maps.Keys(consequences)) {
		if on[name] {
			out = append(out, Note{Setting: setting, Value: name + "=true", Explanation: consequences[name]})
		}
	}
	return out
}

// areGatesOff reports whether the setting is a list of feature gates, and value turns none of them on.
func areGatesOff(name, value string) bool {
	if !strings.HasSuffix(name, "feature-gates") {
		return false
	}
	for _, gate := range strings.Split(value, ",") {
		_, state, _ := strings.Cut(strings.TrimSpace(gate), "=")
		if strings.EqualFold(state, "true") {
			return false
		}
	}
	return true
}
