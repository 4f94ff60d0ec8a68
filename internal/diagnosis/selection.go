package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// judgeSelection: terms of an EC2NodeClass that find nothing keep it from being used, and are in nobody's way but the user's.
func judgeSelection(d *desk) []Finding {
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, c := range d.Classes.Value {
		subject := "EC2NodeClass " + c.Name
		before := len(out)
		for _, s := range []struct {
			condition, what string
			steps           []fix.Step
		}{
			{"SubnetsReady", "subnet", d.selectSubnets(c)},
			{"SecurityGroupsReady", "security group", d.selectGroups(c)},
			{"AMIsReady", "image", []fix.Step{familyImages(c)}},
		} {
			now := condition(c.Conditions, s.condition)
			if now.Status != "False" || !strings.HasSuffix(now.Reason, "NotFound") && now.Reason != "UnsupportedAlias" {
				continue
			}
			out = append(out, broken(subject, Certain, "it selects no %s, so nothing can be launched with it", s.what).
				with("condition "+s.condition+": "+quote(now.Message)).mend(s.steps...))
		}
		if len(out) == before {
			out = append(out, fine(subject))
		}
	}
	return out
}

// clusterGroup is the step that gives instances the security group that EKS made, whose members reach each other and the control plane.
func (d *desk) clusterGroup(c Class) fix.Step {
	if d.Cluster.Value.Group == "" {
		return fix.Edit(fix.NodeClass(c.Name)).With("in spec.securityGroupSelectorTerms select the nodes' security group")
	}
	return c.withGroups([]string{d.Cluster.Value.Group})
}

// withGroups is the step that makes a class select some security groups.
func (c Class) withGroups(ids []string) fix.Step {
	var terms fix.List
	for _, id := range ids {
		terms = append(terms, fix.At(fix.Group(id), "id"))
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "securityGroupSelectorTerms"))
}

// ownGroups is the step that leaves of a class' security groups those that no other cluster claims.
func (d *desk) ownGroups(c Class) fix.Step {
	var ids []string
	for _, g := range d.groups(c.Groups) {
		if d.otherOwner(g.Tags) == "" {
			ids = append(ids, g.ID)
		}
	}
	if len(ids) == 0 {
		return d.clusterGroup(c)
	}
	return c.withGroups(ids)
}

// familyImages is the step that selects the newest image of the class's family, if AWS releases one.
func familyImages(c Class) fix.Step {
	alias := aliasOf(c.Family)
	if c.Family == "" || c.Family == "Custom" {
		return fix.Edit(fix.NodeClass(c.Name)).With("in spec.amiSelectorTerms select an image that is there")
	}
	return fix.Merge(fix.NodeClass(c.Name), fix.At(fix.List{fix.At(alias, "alias")}, "spec", "amiSelectorTerms"))
}

// aliasOf returns the alias of the newest images of a family.
func aliasOf(family string) fix.Value {
	switch family {
	case "AL2":
		return fix.Text("al2@latest")
	case "AL2023":
		return fix.Text("al2023@latest")
	case "Bottlerocket":
		return fix.Text("bottlerocket@latest")
	case "Windows2019":
		return fix.Text("windows2019@latest")
	case "Windows2022":
		return fix.Text("windows2022@latest")
	case "Windows2025":
		return fix.Text("windows2025@latest")
	}
	return fix.Family(family)
}

// judgeClassRef: a NodePool whose EC2NodeClass is not there buys nothing.
func judgeClassRef(d *desk) []Finding {
	if gap, ok := d.Pools.gap("the NodePools"); ok {
		return []Finding{gap}
	}
	if gap, ok := d.Classes.gap("the EC2NodeClasses"); ok {
		return []Finding{gap}
	}
	var out []Finding
	for _, p := range d.Pools.Value {
		subject := "NodePool " + p.Name
		if _, ok := d.class(p.Class); ok || p.Class == "" {
			out = append(out, fine(subject))
			continue
		}
		f := broken(subject, Certain, "it names the EC2NodeClass %s, and there is none of that name", p.Class).with(fmt.Sprintf("%s: %d", d.Classes.Source, len(d.Classes.Value)))
		out = append(out, f.mend(d.nearestClass(p)))
	}
	return out
}

// nearestClass is the step that lets a pool name a class that is there: the one of a name like the one that it names, else the one with the
// pool's own name, else the one that there is; of several the user chooses.
func (d *desk) nearestClass(p Pool) fix.Step {
	var names []string
	for _, c := range d.Classes.Value {
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
		return fix.Edit(fix.NodePool(p.Name)).With("in spec.template.spec.nodeClassRef.name write one of: %s", strings.Join(names, ", "))
	}
	return fix.Merge(fix.NodePool(p.Name), fix.At(fix.Name(name), "spec", "template", "spec", "nodeClassRef", "name"))
}
