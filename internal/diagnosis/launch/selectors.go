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

// selectGroups returns the steps that fix a class that selects no security group. They select the set of groups that
// other classes use most (see nodeclass.MostUsed). On a tie, the user chooses; without other classes, they select the
// cluster security group.
func selectGroups(ix *index.Index, c diagnosis.Class) []fix.Step {
	used := map[string]nodeclass.Usage{} // by set: sorted IDs, separated by spaces
	for _, other := range ix.Evidence.Classes.Value {
		if other.Name == c.Name || len(other.Groups) == 0 {
			continue
		}
		key := strings.Join(slices.Sorted(slices.Values(other.Groups)), " ")
		used[key] = nodeclass.Usage{Nodes: used[key].Nodes + nodeclass.CountReadyNodes(ix, other.Name), Classes: used[key].Classes + 1}
	}
	step := clusterGroup(ix, c)
	switch sets := nodeclass.MostUsed(used); len(sets) {
	case 0:
	case 1:
		step = WithGroups(c, strings.Fields(sets[0])).With("as in other EC2NodeClasses")
	default:
		step = fix.Edit(fix.NodeClass(c.Name)).With("in spec.securityGroupSelectorTerms select the groups of other EC2NodeClasses: %s", strings.Join(sets, ", or "))
	}
	return withTagAdvice(c.GroupTags, tagsOf(ix, func(o diagnosis.Class) map[string]string { return o.GroupTags }, c), step)
}

// selectSubnets returns the steps that fix a class that selects no subnet. They select subnets as selectGroups selects
// groups; without other classes, subnets with many free addresses.
func selectSubnets(ix *index.Index, c diagnosis.Class) []fix.Step {
	used := map[string]nodeclass.Usage{} // by set: sorted IDs, separated by spaces
	for _, other := range ix.Evidence.Classes.Value {
		if other.Name == c.Name || len(other.Subnets) == 0 {
			continue
		}
		key := strings.Join(slices.Sorted(slices.Values(other.Subnets)), " ")
		used[key] = nodeclass.Usage{Nodes: used[key].Nodes + nodeclass.CountReadyNodes(ix, other.Name), Classes: used[key].Classes + 1}
	}
	step := network.RoomierSubnets(ix, c)
	switch sets := nodeclass.MostUsed(used); len(sets) {
	case 0:
	case 1:
		var terms fix.List
		for _, id := range strings.Fields(sets[0]) {
			terms = append(terms, fix.At(fix.Subnet(id), "id"))
		}
		step = fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "subnetSelectorTerms")).With("as in other EC2NodeClasses")
	default:
		step = fix.Edit(fix.NodeClass(c.Name)).With("in spec.subnetSelectorTerms select the subnets of other EC2NodeClasses: %s", strings.Join(sets,
			", or "))
	}
	return withTagAdvice(c.SubnetTags, tagsOf(ix, func(o diagnosis.Class) map[string]string { return o.SubnetTags }, c), step)
}

// tagsOf returns the tags in the selectors of all classes except c, and the usual discovery tag. selectorTags returns
// the tags in the selectors of one class.
func tagsOf(ix *index.Index, selectorTags func(diagnosis.Class) map[string]string, c diagnosis.Class) map[string]string {
	out := map[string]string{"karpenter.sh/discovery": ix.Evidence.Name}
	for _, other := range ix.Evidence.Classes.Value {
		if other.Name != c.Name {
			maps.Copy(out, selectorTags(other))
		}
	}
	return out
}

// withTagAdvice returns the step and advice about each of the tags that may be a misspelling of a known tag.
func withTagAdvice(tags, known map[string]string, step fix.Step) []fix.Step {
	steps := []fix.Step{step}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if _, isKnown := known[key]; isKnown {
			continue
		}
		if near := suggest.Nearest(key, slices.Sorted(maps.Keys(known))); near != "" {
			steps = append(steps, fix.AdviceStep("or select by the tag %s, if %s is a misspelling of it", near, key))
		}
	}
	return steps
}
