package launch

import (
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/network"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// selectGroups are the steps by which a class that selects no security group selects some: those that the instances of
// other classes have, else the one that EKS made.
func selectGroups(ix *index.Index, c diagnosis.Class) []fix.Step {
	used := map[string]nodeclass.Usage{}
	for _, other := range ix.Evidence.Classes.Value {
		if other.Name == c.Name || len(other.Groups) == 0 {
			continue
		}
		key := strings.Join(slices.Sorted(slices.Values(other.Groups)), " ")
		used[key] = nodeclass.Usage{Nodes: used[key].Nodes + nodeclass.NodesOf(ix, other.Name), Classes: used[key].Classes + 1}
	}
	step := clusterGroup(ix, c)
	switch sets := nodeclass.MostUsed(used); len(sets) {
	case 0:
	case 1:
		step = WithGroups(c, strings.Fields(sets[0])).With("as other EC2NodeClasses have it")
	default:
		step = fix.Edit(fix.NodeClass(c.Name)).With("in spec.securityGroupSelectorTerms select what other EC2NodeClasses have: %s", strings.Join(sets, ", or "))
	}
	return nearTag(c.GroupTags, tagsOf(ix, func(o diagnosis.Class) map[string]string { return o.GroupTags }, c), step)
}

// selectSubnets are the steps by which a class that selects no subnet selects some.
func selectSubnets(ix *index.Index, c diagnosis.Class) []fix.Step {
	used := map[string]nodeclass.Usage{}
	for _, other := range ix.Evidence.Classes.Value {
		if other.Name == c.Name || len(other.Subnets) == 0 {
			continue
		}
		key := strings.Join(slices.Sorted(slices.Values(other.Subnets)), " ")
		used[key] = nodeclass.Usage{Nodes: used[key].Nodes + nodeclass.NodesOf(ix, other.Name), Classes: used[key].Classes + 1}
	}
	step := network.RoomierSubnets(ix, c)
	switch sets := nodeclass.MostUsed(used); len(sets) {
	case 0:
	case 1:
		var terms fix.List
		for _, id := range strings.Fields(sets[0]) {
			terms = append(terms, fix.At(fix.Subnet(id), "id"))
		}
		step = fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "subnetSelectorTerms")).With("as other EC2NodeClasses have it")
	default:
		step = fix.Edit(fix.NodeClass(c.Name)).With("in spec.subnetSelectorTerms select what other EC2NodeClasses have: %s", strings.Join(sets,
			", or "))
	}
	return nearTag(c.SubnetTags, tagsOf(ix, func(o diagnosis.Class) map[string]string { return o.SubnetTags }, c), step)
}

// tagsOf are the tags by which the classes other than one select, and those that are usual.
func tagsOf(ix *index.Index, of func(diagnosis.Class) map[string]string, c diagnosis.Class) map[string]string {
	out := map[string]string{"karpenter.sh/discovery": ix.Evidence.Name}
	for _, other := range ix.Evidence.Classes.Value {
		if other.Name != c.Name {
			maps.Copy(out, of(other))
		}
	}
	return out
}

// nearTag adds advice for a tag that may be misspelt.
func nearTag(own, known map[string]string, step fix.Step) []fix.Step {
	steps := []fix.Step{step}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, isKnown := known[key]; isKnown {
			continue
		}
		if near := suggest.Nearest(key, slices.Sorted(maps.Keys(known))); near != "" {
			steps = append(steps, fix.Say("or select by the tag %s, if that is meant in place of %s", near, key))
		}
	}
	return steps
}
