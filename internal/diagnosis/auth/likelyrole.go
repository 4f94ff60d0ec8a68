package auth

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
	"github.com/joiner-sh/joiner/internal/diagnosis/nodeclass"
)

// likelyRoles returns the names of the roles that the instances of a class should probably have: the most used roles of
// the other classes (nodeclass.MostUsed), or else the mapped roles. All are equally likely.
func likelyRoles(ix *index.Index, c diagnosis.Class) []string {
	used := map[string]nodeclass.Usage{} // by role name
	for _, other := range ix.Evidence.Classes.Value {
		arn := nodeRole(ix, other)
		if other.Name == c.Name || arn == "" || !canBeNodeRole(ix, arn) {
			continue
		}
		u := used[RoleName(arn)]
		used[RoleName(arn)] = nodeclass.Usage{Nodes: u.Nodes + nodeclass.CountReadyNodes(ix, other.Name), Classes: u.Classes + 1}
	}
	if len(used) > 0 {
		return nodeclass.MostUsed(used)
	}
	mapped := mappedRoles(ix)
	ofNoGroup := slices.DeleteFunc(slices.Clone(mapped), func(name string) bool {
		return slices.ContainsFunc(ix.Evidence.NodeGroups.Value, func(g diagnosis.NodeGroup) bool { return RoleName(g.Role) == name })
	})
	if len(ofNoGroup) > 0 { // a role that no node group has is probably for Joiner's nodes
		mapped = ofNoGroup
	}
	slices.Sort(mapped)
	return slices.Compact(mapped)
}

// mappedRoles returns the names of the roles that are mapped as node roles and that trust EC2. A name may occur twice.
func mappedRoles(ix *index.Index) []string {
	var out []string
	for _, e := range ix.Evidence.Entries.Value {
		if isNodeEntry(e) && fix.RoleARN(e.Principal).IsValid() && trustsEC2(ix.Evidence.Roles[RoleName(e.Principal)].Value) {
			out = append(out, RoleName(e.Principal))
		}
	}
	for _, m := range ix.Evidence.AuthMap.Value.Roles {
		if fix.RoleARN(m.ARN).IsValid() && trustsEC2(ix.Evidence.Roles[RoleName(m.ARN)].Value) && slices.Contains(m.Groups, "system:nodes") {
			out = append(out, RoleName(m.ARN))
		}
	}
	return out
}

// canBeNodeRole reports whether the evidence does not rule out that the role is a node role.
func canBeNodeRole(ix *index.Index, arn string) bool {
	r := ix.Evidence.Roles[RoleName(arn)]
	return fix.RoleARN(arn).IsValid() && !isControllerOrPodRole(ix, arn) && !r.Is(diagnosis.Missing) &&
		(!r.Known() || trustsEC2(r.Value) || len(r.Value.Trusts) == 0)
}

func withRole(c diagnosis.Class, role string) fix.Step {
	return fix.Merge(fix.NodeClass(c.Name), fix.At(fix.RoleOf(role), "spec", "role"))
}

// giveRole is the step that sets the role of a class to the likely role. If there are several likely roles or none, the
// user chooses.
func giveRole(ix *index.Index, c diagnosis.Class) fix.Step {
	switch roles := likelyRoles(ix, c); len(roles) {
	case 0:
		return fix.Edit(fix.NodeClass(c.Name)).With("set spec.role to an existing role that is mapped as a node role")
	case 1:
		return withRole(c, roles[0])
	default:
		return fix.Edit(fix.NodeClass(c.Name)).With("set spec.role to one of: %s", strings.Join(roles, " or "))
	}
}

// AddRole is the step that adds a role to the instance profile of a class: the class's role, or else the likely role.
// If there are several likely roles or none, the user chooses.
func AddRole(ix *index.Index, c diagnosis.Class) fix.Step {
	role, roles := fix.RoleOf(c.Role), likelyRoles(ix, c)
	if c.Role == "" {
		role = fix.Placeholder("NODE_ROLE")
		if len(roles) == 1 {
			role = fix.RoleName(roles[0])
		}
	}
	step := fix.Call("iam", "add-role-to-instance-profile", fix.P("--instance-profile-name", fix.Profile(c.Profile)),
		fix.P("--role-name", role))
	if c.Role == "" && len(roles) > 1 {
		return step.With("NODE_ROLE is one of: %s", strings.Join(roles, " or "))
	}
	return step
}
