package launch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
	"github.com/joiner-sh/joiner/internal/suggest"
)

func judgeSelection(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, c := range ix.Evidence.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		before := len(out)
		for _, s := range []struct {
			conditionType, kind string
			steps               []fix.Step
		}{
			{"SubnetsReady", "subnet", selectSubnets(ix, c)},
			{"SecurityGroupsReady", "security group", selectGroups(ix, c)},
			{"AMIsReady", "image", []fix.Step{nodeclass.FamilyImages(c)}},
		} {
			condition := diagnosis.FindCondition(c.Conditions, s.conditionType)
			matchesNothing := strings.HasSuffix(condition.Reason, "NotFound") || condition.Reason == "UnsupportedAlias"
			if condition.Status != "False" || !matchesNothing {
				continue
			}
			out = append(out, diagnosis.ReportBroken(subject, diagnosis.Certain, "it selects no %s, so nothing can be launched with it", s.kind).
				With("condition "+s.conditionType+": "+diagnosis.Shorten(condition.Message)).FixedBy(s.steps...))
		}
		if len(out) == before {
			out = append(out, diagnosis.ReportFine(subject))
		}
	}
	return out
}

// clusterGroup is the step that makes a class select the cluster security group, in which instances reach each other
// and the control plane. If the group is not known, the user selects one.
func clusterGroup(ix *index.Index, c diagnosis.Class) fix.Step {
	if ix.Evidence.Cluster.Value.Group == "" {
		return fix.Edit(fix.NodeClass(c.Name)).With("in spec.securityGroupSelectorTerms select the nodes' security group")
	}
	return WithGroups(c, []string{ix.Evidence.Cluster.Value.Group})
}

// WithGroups is the step that makes a class select exactly the given security groups.
func WithGroups(c diagnosis.Class, ids []string) fix.Step {
	var terms fix.List
	for _, id := range ids {
		terms = append(terms, fix.At(fix.Group(id), "id"))
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "securityGroupSelectorTerms"))
}

// WithoutForeignGroups is the step that removes the security groups that another cluster owns from the selection of a
// class. If no group remains, it is the step clusterGroup.
func WithoutForeignGroups(ix *index.Index, c diagnosis.Class) fix.Step {
	var ids []string
	for _, g := range ix.Groups(c.Groups) {
		if ix.OtherOwner(g.Tags) == "" {
			ids = append(ids, g.ID)
		}
	}
	if len(ids) == 0 {
		return clusterGroup(ix, c)
	}
	return WithGroups(c, ids)
}

func judgeClassRef(ix *index.Index) []diagnosis.Finding {
	if gap, ok := ix.Evidence.Pools.Gap("the NodePools"); ok {
		return []diagnosis.Finding{gap}
	}
	if gap, ok := ix.Evidence.Classes.Gap("the EC2NodeClasses"); ok {
		return []diagnosis.Finding{gap}
	}
	var out []diagnosis.Finding
	for _, p := range ix.Evidence.Pools.Value {
		subject := "NodePool " + p.Name
		if _, ok := ix.Evidence.Class(p.Class); ok || p.Class == "" {
			out = append(out, diagnosis.ReportFine(subject))
			continue
		}
		f := diagnosis.ReportBroken(subject, diagnosis.Certain,
			"the NodePool names the EC2NodeClass %s, which does not exist", p.Class).With(fmt.Sprintf("%s: %d",
			ix.Evidence.Classes.Source, len(ix.Evidence.Classes.Value)))
		out = append(out, f.FixedBy(nearestClass(ix, p)))
	}
	return out
}

// nearestClass returns the step that makes a NodePool refer to an existing class: the first of the classes below that
// exists. If none exists, the user chooses a class or creates one.
//   - the class with a similar name
//   - the class with the NodePool's own name
//   - the only class
func nearestClass(ix *index.Index, p diagnosis.Pool) fix.Step {
	var names []string
	for _, c := range ix.Evidence.Classes.Value {
		names = append(names, c.Name)
	}
	name := suggest.Nearest(p.Class, names)
	switch {
	case len(names) == 0:
		return fix.Apply("ec2nodeclass.yaml").With("docs/examples has one; with metadata.name %s", p.Class)
	case name == "" && slices.Contains(names, p.Name):
		name = p.Name
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return fix.Edit(fix.NodePool(p.Name)).With("set spec.template.spec.nodeClassRef.name to one of: %s", strings.Join(names, ", "))
	}
	return fix.Merge(fix.NodePool(p.Name), fix.At(fix.Name(name), "spec", "template", "spec", "nodeClassRef", "name"))
}
