package diagnosis

import (
	"fmt"
	"slices"
	"strings"
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
		for _, s := range []struct{ condition, what, fix string }{
			{"SubnetsReady", "subnet", d.roomierSubnets(c)},
			{"SecurityGroupsReady", "security group", d.clusterGroup(c)},
			{"AMIsReady", "image", familyImages(c)},
		} {
			now := condition(c.Conditions, s.condition)
			if now.Status != "False" || !strings.HasSuffix(now.Reason, "NotFound") && now.Reason != "UnsupportedAlias" {
				continue
			}
			out = append(out, broken(subject, Certain, "it selects no %s, so nothing can be launched with it", s.what).
				with("condition "+s.condition+": "+quote(now.Message)).mend(s.fix))
		}
		if len(out) == before {
			out = append(out, fine(subject))
		}
	}
	return out
}

// clusterGroup is the command that gives instances the security group that EKS made, whose members reach each other and the control plane.
func (d *desk) clusterGroup(c Class) string {
	if d.Cluster.Value.Group == "" {
		return "kubectl edit ec2nodeclass " + c.Name + "   # in spec.securityGroupSelectorTerms select the nodes' security group"
	}
	return fmt.Sprintf(`kubectl patch ec2nodeclass %s --type merge -p '{"spec":{"securityGroupSelectorTerms":[{"id":"%s"}]}}'`, c.Name, d.Cluster.Value.Group)
}

// ownGroups is the command that leaves of a class' security groups those that no other cluster claims.
func (d *desk) ownGroups(c Class) string {
	var terms []string
	for _, g := range d.groups(c.Groups) {
		if d.otherOwner(g.Tags) == "" {
			terms = append(terms, `{"id":"`+g.ID+`"}`)
		}
	}
	if len(terms) == 0 {
		return d.clusterGroup(c)
	}
	return fmt.Sprintf(`kubectl patch ec2nodeclass %s --type merge -p '{"spec":{"securityGroupSelectorTerms":[%s]}}'`, c.Name, strings.Join(terms, ","))
}

// familyImages is the command that selects the newest image of the class' family, where AWS makes one.
func familyImages(c Class) string {
	if c.Family == "" || c.Family == "Custom" {
		return "kubectl edit ec2nodeclass " + c.Name + "   # in spec.amiSelectorTerms select an image that is there"
	}
	return fmt.Sprintf(`kubectl patch ec2nodeclass %s --type merge -p '{"spec":{"amiSelectorTerms":[{"alias":"%s@latest"}]}}'`, c.Name, strings.ToLower(c.Family))
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

// nearestClass is the command that lets a pool name a class that is there: the one with the pool's own name, else the first.
func (d *desk) nearestClass(p Pool) string {
	if len(d.Classes.Value) == 0 {
		return "kubectl apply -f ec2nodeclass.yaml   # docs/examples has one; with metadata.name " + p.Class
	}
	i := max(0, slices.IndexFunc(d.Classes.Value, func(c Class) bool { return c.Name == p.Name }))
	return fmt.Sprintf(`kubectl patch nodepool %s --type merge -p '{"spec":{"template":{"spec":{"nodeClassRef":{"name":"%s"}}}}}'`, p.Name, d.Classes.Value[i].Name)
}
