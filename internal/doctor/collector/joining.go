package collector

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// collectForJoining does the work of Collect if Late is not nil. It requests only the items that show why instances do
// not join, because the controller calls Collect repeatedly and the number of API calls is limited.
func (c *collector) collectForJoining(ctx context.Context) {
	e, kube := &c.e, c.Kube
	const unneeded = "it does not affect whether instances join"
	e.NodeGroups, e.Fargate = notRequested[[]diagnosis.NodeGroup](unneeded), notRequested[[]diagnosis.FargateProfile](unneeded)
	e.Identity, e.Events = notRequested[diagnosis.ClusterIdentity](unneeded), notRequested[[]diagnosis.Event](unneeded)
	e.Pods = notRequested[[]diagnosis.Pod](unneeded)
	e.Daemons, e.Claims = notRequested[[]diagnosis.DaemonSet](unneeded), notRequested[[]diagnosis.Claim](unneeded)
	e.UserData, e.Controller = notRequested[[]diagnosis.UserDataProblem](unneeded), notRequested[diagnosis.Controller](unneeded)
	e.Lease = notRequested[diagnosis.Lease](unneeded)
	if c.UserData != nil {
		e.UserData = ask(ctx, c, "spec.userData of ec2nodeclasses", c.UserData)
	}
	if kube != nil {
		c.runConcurrently([]func(){
			into(ctx, c, &e.AuthMap, "configmap kube-system/aws-auth", kube.AuthMap),
			listInto(ctx, c, &e.Classes, "ec2nodeclasses", kube.Classes),
			listInto(ctx, c, &e.Pools, "nodepools", kube.Pools),
			listInto(ctx, c, &e.Nodes, "nodes", kube.Nodes),
		})
		c.countTypes()
	}
	if c.EKS == nil || kube == nil {
		c.markAWSAbsent()
		return
	}
	c.runConcurrently(c.independentJoiningRequests(ctx))
	c.joiningClaims(ctx)
	if parts := strings.Split(e.Cluster.Value.ARN, ":"); e.Account == "" && len(parts) > 4 {
		e.Account = parts[4] // STS returned no account
	}
	c.runConcurrently(c.vpcAndConsoleRequests(ctx))
	if !c.NoIAM {
		c.runConcurrently(c.joiningRoleRequests(ctx))
		c.setOwnRole()
	}
}

// joiningClaims does the same as claims, but does not store the NodeClaims in the evidence.
func (c *collector) joiningClaims(ctx context.Context) {
	if len(c.e.Instances.Value) == 0 {
		return
	}
	claims := askList(ctx, c, "nodeclaims", c.Kube.Claims)
	c.e.Instances.Value = diagnosis.WithClaims(c.e.Instances.Value, claims.Value)
}

// independentJoiningRequests returns those of independentRequests that show why instances do not join.
func (c *collector) independentJoiningRequests(ctx context.Context) []func() {
	e := &c.e
	out := []func(){
		func() { e.Caller = ask(ctx, c, "sts:GetCallerIdentity", c.caller) },
		into(ctx, c, &e.Cluster, "eks:DescribeCluster "+c.Clients.Cluster, c.cluster),
		into(ctx, c, &e.Entries, "eks:ListAccessEntries", c.entries),
		into(ctx, c, &e.Images, "ec2:DescribeImages", c.images),
	}
	e.Instances = notRequested[[]diagnosis.Instance]("no instance is late")
	if len(c.Late) > 0 {
		out = append(out, listInto(ctx, c, &e.Instances, "ec2:DescribeInstances", c.EC2.InstancesForDiagnosis))
	}
	return out
}

// joiningRoleRequests returns the requests for the instance profiles of EC2NodeClasses without a role, and for at most 8
// roles:
//   - If instances are late: the roles of the EC2NodeClasses.
//   - If a class has an instance profile, or a role that the cluster does not map: the caller's role, and those of
//     roleNames.
func (c *collector) joiningRoleRequests(ctx context.Context) []func() {
	var mu sync.Mutex // guards the maps Roles and Profiles
	var out []func()
	names, hasUnmapped := []string{}, false
	for _, class := range c.e.Classes.Value {
		switch {
		case class.Role != "":
			name := class.Role[strings.LastIndexByte(class.Role, '/')+1:]
			hasUnmapped = hasUnmapped || !c.isMapped(name)
			if len(c.Late) > 0 {
				names = append(names, name)
			}
		case class.Profile != "":
			hasUnmapped = true // the profile's role is not known yet
			out = append(out, func() { c.profile(ctx, class.Profile, &mu) })
		}
	}
	if hasUnmapped {
		_, callerRole, _ := strings.Cut(ownRoleARN(c.e.Caller.Value), ":role/")
		names = append(names, callerRole)
		names = append(names, c.roleNames()...)
	}
	const maxRoles = 8 // a cluster may have hundreds of mappings
	requested := map[string]bool{}
	for _, name := range names {
		if name == "" || requested[name] || len(requested) == maxRoles {
			continue
		}
		requested[name] = true
		out = append(out, func() { c.role(ctx, name, &mu) })
	}
	return out
}

// isMapped reports whether the cluster has an access entry or a row in aws-auth for a role of this name.
func (c *collector) isMapped(name string) bool {
	return slices.ContainsFunc(c.e.Entries.Value, func(e diagnosis.Entry) bool { return strings.HasSuffix(e.Principal, "/"+name) }) ||
		slices.ContainsFunc(c.e.AuthMap.Value.Roles, func(m diagnosis.Mapping) bool { return strings.HasSuffix(m.ARN, "/"+name) })
}

// setOwnRole sets the controller's role to the role that the caller has assumed, unless EC2 may assume that role: it
// may be the node role of the instance where the controller runs.
func (c *collector) setOwnRole() {
	arn := ownRoleARN(c.e.Caller.Value)
	_, name, _ := strings.Cut(arn, ":role/")
	role, ok := c.e.Roles[name]
	// A Denied role is the controller's own: its policy lets it read only node roles.
	mayBeOwn := role.Known() || role.Is(diagnosis.Denied)
	trustsEC2 := slices.ContainsFunc(role.Value.Trusts,
		func(t string) bool { return t == "*" || strings.HasPrefix(t, "ec2.amazonaws.com") })
	if !ok || !mayBeOwn || trustsEC2 {
		return
	}
	c.e.Controller = diagnosis.KnownItem(c.e.Caller.Source, c.e.Caller.At,
		diagnosis.Controller{Role: cmp.Or(role.Value.ARN, arn), RoleSource: "its present credentials"})
}

// ownRoleARN returns the ARN, without path, of the role in the ARN of an assumed-role session; empty for another
// caller.
func ownRoleARN(caller string) string {
	parts := strings.SplitN(caller, ":", 6)
	if len(parts) < 6 || !strings.HasPrefix(parts[5], "assumed-role/") {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(parts[5], "assumed-role/"), "/")
	return "arn:" + parts[1] + ":iam::" + parts[4] + ":role/" + name
}
