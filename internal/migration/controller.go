package migration

import (
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

func (in Installation) controllersOf(p Product) []Controller {
	var out []Controller
	for _, c := range in.Controllers {
		if c.Product == p {
			out = append(out, c)
		}
	}
	return out
}

// subject returns the subject of findings about the controller; empty if its name is unknown.
func (c Controller) subject() string {
	if c.Name == "" {
		return ""
	}
	return "Deployment " + c.Namespace + "/" + c.Name
}

// controllers checks whether Joiner can replace the installed controllers of Karpenter, and whether a controller of
// Joiner is active beside them.
func controllers(in Installation) []Finding {
	var out []Finding
	karpenters := in.controllersOf(Karpenter)
	if len(karpenters) == 0 && in.hasClusterObjects() {
		out = append(out, unknown("", "no Deployment of Karpenter was seen, so its settings are unknown").
			withFix("give its values: --values FILE"))
	}
	for _, c := range karpenters {
		if major, ok := majorOf(c.Version); ok && major < 1 {
			out = append(out, stops(c.subject(), "Karpenter %s predates the v1 API", c.Version).
				withFix("first upgrade Karpenter to version 1.0 or later, following its own guide"))
		}
		isLeaseKnown := c.Name != "" && c.Problem == "" // a controller from a values file has no name
		if c.Lease == "" && isLeaseKnown {
			out = append(out, differs(c.subject(), "it has no leader election: only the order of the steps prevents that both are active").
				withFix("make sure that no pod of Karpenter is left before Joiner starts"))
		}
	}
	if len(karpenters) > 1 {
		out = append(out, differs("", "there are %s of Karpenter", count(len(karpenters), "Deployment")).withFix("scale all of them to zero"))
	}
	for _, joiner := range in.controllersOf(Joiner) {
		for _, c := range karpenters {
			if joiner.Replicas > 0 && c.Replicas > 0 && (joiner.Lease != c.Lease || c.Lease == "") {
				out = append(out, stops(joiner.subject(),
					"it runs beside %s and does not share its lease: both act on the same nodes", c.subject()).
					withCommand("", fix.SplitWords("kubectl --namespace"), joinedWord(fix.Namespace(joiner.Namespace)), fix.SplitWords("scale"),
						joinedWord(fix.Text("deployment/"), fix.Name(joiner.Name)), fix.SplitWords("--replicas=0")))
			}
		}
	}
	return out
}

// hasClusterObjects reports whether any object of a cluster was read.
func (in Installation) hasClusterObjects() bool {
	return in.UID != "" || len(in.Definitions)+len(in.Pools)+len(in.Classes)+len(in.Claims)+len(in.Nodes) > 0
}

// majorOf returns the major version. ok is false if the text is not a version: "latest", or a digest.
func majorOf(version string) (major int, ok bool) {
	first, _, hasDot := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	major, err := strconv.Atoi(first)
	return major, err == nil && hasDot
}

// settings checks the effect of Karpenter's settings on Joiner.
func settings(in Installation) []Finding {
	var out []Finding
	for _, c := range in.controllersOf(Karpenter) {
		if c.Problem != "" {
			out = append(out, stops(c.subject(), "Joiner would not start with these settings: %s", c.Problem))
		}
		for _, s := range c.Ignored {
			out = append(out, differs(c.subject(), "%s is %s: %s", s.Setting, s.Value, s.Says))
		}
		if c.Problem != "" {
			continue
		}
		if len(c.Ignored) == 0 {
			out = append(out, stays("all settings of Karpenter have an effect"))
		}
		if c.Queue != "" {
			out = append(out, stays("interruption messages are read from the queue %s, as Karpenter does", c.Queue))
		} else {
			out = append(out, stays("there is no interruption queue, with Karpenter or with Joiner"))
		}
	}
	return out
}

// selfReferences returns the values of Karpenter's chart that refer to Karpenter itself, with their replacement for
// Joiner's chart.
func selfReferences() []selfReference {
	return []selfReference{
		{"controller.image.", "it names Karpenter's image", fix.SplitWords("--set controller.image.repository=ghcr.io/joiner-sh/joiner --set controller.image.tag= --set controller.image.digest=")},
		{"fullnameOverride", "Joiner's objects would have the names of Karpenter's", fix.SplitWords("--set fullnameOverride=joiner")},
		{"nameOverride", "Joiner's objects would have the names of Karpenter's", fix.SplitWords("--set nameOverride=joiner")},
		{"podDisruptionBudget.name", "Joiner's budget would have the name of Karpenter's",
			fix.SplitWords("--set podDisruptionBudget.name=joiner")},
	}
}

type selfReference struct {
	path, why string      // a path that ends with a dot stands for all values below it
	flags     []fix.Value // flags of helm that replace the value in Joiner's chart
}

// values checks the values of Karpenter's chart that are to be passed to Joiner's.
func values(in Installation) []Finding {
	var out []Finding
	for _, ref := range selfReferences() {
		if path, ok := in.valuePath(ref.path); ok {
			out = append(out, differs("value "+path, "%s", ref.why).withCommand("helm install … ", ref.flags))
		}
	}
	for _, v := range in.UnknownValues {
		f := differs("value "+v.Path, "no chart has this value, so it has no effect with Karpenter").withFix("remove %s from the values", v.Path)
		if v.Near != "" {
			f = differs("value "+v.Path, "no chart has this value, so it has no effect with Karpenter: did you mean %s?",
				v.Near).withFix("rename %s to %s, or remove it", v.Path, v.Near)
		}
		out = append(out, f)
	}
	return out
}

// valuePath returns the path of a value that was set and is not empty: path itself or, if path ends with a dot, the
// first path below it by name. The second result is false if there is none.
func (in Installation) valuePath(path string) (string, bool) {
	found := ""
	for p, v := range in.Values {
		isAtPath := p == path || strings.HasSuffix(path, ".") && strings.HasPrefix(p, path)
		if v != "" && isAtPath && (found == "" || p < found) {
			found = p
		}
	}
	return found, found != ""
}
