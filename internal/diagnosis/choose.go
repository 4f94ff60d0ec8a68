package diagnosis

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// A fix that must name an object which the broken one does not name chooses a value that works elsewhere: first that of nodes that joined,
// then that of most other EC2NodeClasses. On a tie, the user chooses.

// inRegion and ofCluster are parameters of most calls to AWS.
func (d *desk) inRegion() fix.Param  { return fix.P("--region", fix.Region(d.Region)) }
func (d *desk) ofCluster() fix.Param { return fix.P("--cluster-name", fix.ClusterName(d.Name)) }

// controllerDeployment is the Deployment of the controller.
func (d *desk) controllerDeployment() fix.Object {
	c := d.Controller.Value
	return fix.Deployment(orElse(c.Namespace, "kube-system"), orElse(c.workload(), "joiner"))
}

// instanceOf returns the instance ID in a provider ID.
func instanceOf(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// worth is the support for a candidate: the nodes that joined with it, and the classes that use it.
type worth struct{ nodes, classes int }

// best returns the candidates with the most support, sorted.
func best(all map[string]worth) []string {
	var out []string
	var most worth
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch w := all[name]; cmp.Or(cmp.Compare(w.nodes, most.nodes), cmp.Compare(w.classes, most.classes)) {
		case 1:
			most, out = w, []string{name}
		case 0:
			out = append(out, name)
		}
	}
	return out
}

// nodesOf is the number of ready nodes whose instances are of a class.
func (d *desk) nodesOf(class string) int {
	n := 0
	for _, i := range d.Instances.Value {
		if node, isNode := d.joined[i.ID]; isNode && node.Ready && i.Class == class {
			n++
		}
	}
	return n
}

// likelyRoles are the names of the roles that the instances of a class should have, as far as can be said: one, several that are as good, or none.
func (d *desk) likelyRoles(c Class) []string {
	used := map[string]worth{}
	for _, other := range d.Classes.Value {
		arn, _ := d.nodeRole(other)
		if other.Name == c.Name || arn == "" || !d.canBeNodes(arn) {
			continue
		}
		w := used[roleName(arn)]
		used[roleName(arn)] = worth{w.nodes + d.nodesOf(other.Name), w.classes + 1}
	}
	if len(used) > 0 {
		return best(used)
	}
	mapped := d.mappedRoles()
	own := slices.DeleteFunc(slices.Clone(mapped), func(name string) bool {
		return slices.ContainsFunc(d.NodeGroups.Value, func(g NodeGroup) bool { return roleName(g.Role) == name })
	})
	if len(own) > 0 {
		mapped = own
	}
	slices.Sort(mapped)
	return slices.Compact(mapped)
}

// mappedRoles are the names of the roles that the cluster lets join as nodes, and that EC2 may take on; one may be there twice.
func (d *desk) mappedRoles() []string {
	var out []string
	for _, e := range d.Entries.Value {
		if e.isNodes() && fix.RoleARN(e.Principal).IsValid() && trustsEC2(d.Roles[roleName(e.Principal)].Value) {
			out = append(out, roleName(e.Principal))
		}
	}
	for _, m := range d.AuthMap.Value.Roles {
		if fix.RoleARN(m.ARN).IsValid() && trustsEC2(d.Roles[roleName(m.ARN)].Value) && slices.Contains(m.Groups, "system:nodes") {
			out = append(out, roleName(m.ARN))
		}
	}
	return out
}

// canBeNodes reports whether nothing that is known keeps a role from being the nodes'.
func (d *desk) canBeNodes(arn string) bool {
	r := d.Roles[roleName(arn)]
	return fix.RoleARN(arn).IsValid() && !d.isControllers(arn) && !r.Is(Missing) && (!r.Known() || trustsEC2(r.Value) || len(r.Value.Trusts) == 0)
}

// withRole is the step that sets the role of a class.
func (c Class) withRole(role string) fix.Step {
	return fix.Merge(fix.NodeClass(c.Name), fix.At(fix.RoleOf(role), "spec", "role"))
}

// giveRole is the step by which the instances of a class get a role that works, or asks for one where several may be meant.
func (d *desk) giveRole(c Class) fix.Step {
	switch roles := d.likelyRoles(c); len(roles) {
	case 0:
		return fix.Edit(fix.NodeClass(c.Name)).With("set spec.role to a role that is there and that the cluster lets in")
	case 1:
		return c.withRole(roles[0])
	default:
		return fix.Edit(fix.NodeClass(c.Name)).With("set spec.role to the one that is meant: %s", strings.Join(roles, " or "))
	}
}

// addRole is the step that adds a role to the instance profile of a class.
func (d *desk) addRole(c Class) fix.Step {
	role, roles := fix.RoleOf(c.Role), d.likelyRoles(c)
	if c.Role == "" {
		role = fix.Blank("NODE_ROLE")
		if len(roles) == 1 {
			role = fix.RoleName(roles[0])
		}
	}
	step := fix.Call("iam", "add-role-to-instance-profile", fix.P("--instance-profile-name", fix.Profile(c.Profile)), fix.P("--role-name", role))
	if c.Role == "" && len(roles) > 1 {
		return step.With("NODE_ROLE is the one that is meant: %s", strings.Join(roles, " or "))
	}
	return step
}

// likelyNAT is the NAT gateway that the subnet's zone uses already, else the only one that there is; empty where the user chooses.
func (d *desk) likelyNAT(subnet string) string {
	zone := func(id string) string {
		i := slices.IndexFunc(d.Subnets.Value, func(s Subnet) bool { return s.ID == id })
		if i < 0 {
			return ""
		}
		return d.Subnets.Value[i].Zone
	}
	all, near := map[string]worth{}, map[string]worth{}
	for _, t := range d.Routes.Value {
		for _, r := range t.Routes {
			if !strings.HasPrefix(r.Target, "nat-") || r.Blackhole {
				continue
			}
			all[r.Target] = worth{}
			if slices.ContainsFunc(t.Subnets, func(id string) bool { return zone(id) != "" && zone(id) == zone(subnet) }) {
				near[r.Target] = worth{}
			}
		}
	}
	for _, some := range []map[string]worth{near, all} {
		if names := best(some); len(names) == 1 {
			return names[0]
		}
	}
	return ""
}

// selectGroups are the steps by which a class that selects no security group selects some: those that the instances of other classes have, else the
// one that EKS made.
func (d *desk) selectGroups(c Class) []fix.Step {
	used := map[string]worth{}
	for _, other := range d.Classes.Value {
		if other.Name == c.Name || len(other.Groups) == 0 {
			continue
		}
		key := strings.Join(slices.Sorted(slices.Values(other.Groups)), " ")
		used[key] = worth{used[key].nodes + d.nodesOf(other.Name), used[key].classes + 1}
	}
	step := d.clusterGroup(c)
	switch sets := best(used); len(sets) {
	case 0:
	case 1:
		step = c.withGroups(strings.Fields(sets[0])).With("as other EC2NodeClasses have it")
	default:
		step = fix.Edit(fix.NodeClass(c.Name)).With("in spec.securityGroupSelectorTerms select what other EC2NodeClasses have: %s", strings.Join(sets, ", or "))
	}
	return nearTag(c.GroupTags, d.tagsOf(func(o Class) map[string]string { return o.GroupTags }, c), step)
}

// selectSubnets are the steps by which a class that selects no subnet selects some.
func (d *desk) selectSubnets(c Class) []fix.Step {
	used := map[string]worth{}
	for _, other := range d.Classes.Value {
		if other.Name == c.Name || len(other.Subnets) == 0 {
			continue
		}
		key := strings.Join(slices.Sorted(slices.Values(other.Subnets)), " ")
		used[key] = worth{used[key].nodes + d.nodesOf(other.Name), used[key].classes + 1}
	}
	step := d.roomierSubnets(c)
	switch sets := best(used); len(sets) {
	case 0:
	case 1:
		var terms fix.List
		for _, id := range strings.Fields(sets[0]) {
			terms = append(terms, fix.At(fix.Subnet(id), "id"))
		}
		step = fix.Merge(fix.NodeClass(c.Name), fix.At(terms, "spec", "subnetSelectorTerms")).With("as other EC2NodeClasses have it")
	default:
		step = fix.Edit(fix.NodeClass(c.Name)).With("in spec.subnetSelectorTerms select what other EC2NodeClasses have: %s", strings.Join(sets, ", or "))
	}
	return nearTag(c.SubnetTags, d.tagsOf(func(o Class) map[string]string { return o.SubnetTags }, c), step)
}

// tagsOf are the tags by which the classes other than one select, and those that are usual.
func (d *desk) tagsOf(of func(Class) map[string]string, c Class) map[string]string {
	out := map[string]string{"karpenter.sh/discovery": d.Name}
	for _, other := range d.Classes.Value {
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
