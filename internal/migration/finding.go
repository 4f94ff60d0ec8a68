package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// Weight is the effect of a finding on the migration, one of the constants below.
type Weight string

// The weights, the heaviest first.
const (
	Stops   Weight = "stops"   // the migration must not start: a node or money could be lost, or Joiner would not start
	Differs Weight = "differs" // Joiner behaves differently from Karpenter
	Unknown Weight = "unknown" // the subject could not be checked
	Stays   Weight = "stays"   // the subject was checked, and does not change
)

// Finding is the result of a check.
type Finding struct {
	Weight  Weight `json:"weight"`            // effect on the migration
	Check   string `json:"check"`             // name of the check: "definitions"
	Subject string `json:"subject,omitempty"` // "NodePool default"; empty: the installation
	Says    string `json:"says"`              // the result, in one sentence
	Fix     string `json:"fix,omitempty"`     // the fix, often a command
}

// Report is the result of Check.
type Report struct {
	// Go is true if nothing stops the migration and all requested data could be read.
	Go bool `json:"go"`
	// Hidden lists the requested data that could not be read and may contain a reason to stop.
	Hidden   []string  `json:"hidden,omitempty"`
	Cluster  string    `json:"cluster,omitempty"`
	Findings []Finding `json:"findings"` // the heaviest first
	Steps    Steps     `json:"steps"`
}

// Check finds out what changes when Joiner replaces Karpenter.
func Check(in Installation) Report {
	var all []Finding
	for _, check := range checks() {
		for _, f := range check.find(in) {
			f.Check = check.name
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Weight.order(), b.Weight.order()), cmp.Compare(checkOrder(a.Check), checkOrder(b.Check)),
			cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Says, b.Says))
	})
	hasStop := slices.ContainsFunc(all, func(f Finding) bool { return f.Weight == Stops })
	var hidden []string
	for _, u := range in.Unseen {
		if u.Asked {
			hidden = append(hidden, u.What)
		}
	}
	return Report{Go: !hasStop && len(hidden) == 0, Hidden: hidden, Cluster: in.Cluster, Findings: all, Steps: StepsFor(in)}
}

type check struct {
	name string
	find func(Installation) []Finding
}

// checks returns all checks, the most important first. Findings of equal weight have this order.
func checks() []check {
	return []check{
		{"controllers", controllers},
		{"settings", settings},
		{"values", values},
		{"definitions", definitions},
		{"nodepools", pools},
		{"ec2nodeclasses", classes},
		{"nodeclaims", claims},
		{"nodes", nodes},
		{"instances", instances},
		{"permissions", permissions},
		{"drift", drift},
		{"dashboards", dashboards},
		{"unseen", unseen},
	}
}

func checkOrder(name string) int {
	return slices.IndexFunc(checks(), func(c check) bool { return c.name == name })
}

func (w Weight) order() int { return slices.Index([]Weight{Stops, Differs, Unknown, Stays}, w) }

// stops, differs, unknown and stays return a finding with the weight of the same name.
func stops(subject, format string, args ...any) Finding {
	return Finding{Weight: Stops, Subject: subject, Says: fmt.Sprintf(format, args...)}
}

func differs(subject, format string, args ...any) Finding {
	return Finding{Weight: Differs, Subject: subject, Says: fmt.Sprintf(format, args...)}
}

func unknown(subject, format string, args ...any) Finding {
	return Finding{Weight: Unknown, Subject: subject, Says: fmt.Sprintf(format, args...)}
}

func stays(format string, args ...any) Finding {
	return Finding{Weight: Stays, Says: fmt.Sprintf(format, args...)}
}

// withFix returns f with a fix in words; string arguments are escaped. For commands, use withCommand.
func (f Finding) withFix(format string, args ...any) Finding {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = fix.Escape(text)
		}
	}
	f.Fix = fmt.Sprintf(format, args...)
	return f
}

// withCommand returns f with a command as its fix, after a short introduction. The command consists of constant words
// and of identifiers, which may be untrusted text: if an identifier is invalid, the fix is a comment that names it,
// without a command.
func (f Finding) withCommand(introduction string, words ...[]fix.Value) Finding {
	step := fix.Run(slices.Concat(words...)...)
	f.Fix = fix.New(f.Subject, step).Steps()[0].String()
	if !strings.HasPrefix(f.Fix, "# ") { // a command
		f.Fix = introduction + f.Fix
	}
	return f
}

func identifiers(texts []string, of func(string) fix.Value) []fix.Value {
	out := make([]fix.Value, len(texts))
	for i, text := range texts {
		out[i] = of(text)
	}
	return out
}

func joinedWord(parts ...fix.Value) []fix.Value { return []fix.Value{fix.Join(parts...)} }

func unseen(in Installation) []Finding {
	var out []Finding
	for _, u := range in.Unseen {
		out = append(out, unknown(u.What, "not checked: %s", u.Why))
	}
	return out
}

// firstNames returns up to three different names, sorted, and the number of the others: "a, b, c and 1 more".
func firstNames(names []string) string {
	const maxNames = 3
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

// count returns a number with a noun: "1 node", "2 nodes".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func form(n int, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}

// CheckNames returns the names of all checks, the most important first.
func CheckNames() []string {
	var out []string
	for _, c := range checks() {
		out = append(out, c.name)
	}
	return out
}
