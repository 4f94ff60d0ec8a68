package collector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// independentRequests returns the AWS requests that need no result of another AWS request. Without AWS clients, it
// marks all items of AWS as absent and returns nil.
func (c *collector) independentRequests(ctx context.Context) []func() {
	e := &c.e
	if c.EKS == nil {
		c.markAWSAbsent()
		return nil
	}
	return []func(){
		func() { e.Caller = ask(ctx, c, "sts:GetCallerIdentity", c.caller) },
		into(ctx, c, &e.Cluster, "eks:DescribeCluster "+c.Clients.Cluster, c.cluster),
		into(ctx, c, &e.Entries, "eks:ListAccessEntries", c.entries),
		into(ctx, c, &e.NodeGroups, "eks:ListNodegroups", c.EKS.NodeGroups),
		into(ctx, c, &e.Fargate, "eks:ListFargateProfiles", c.EKS.FargateProfiles),
		listInto(ctx, c, &e.Instances, "ec2:DescribeInstances", c.EC2.InstancesForDiagnosis),
		into(ctx, c, &e.Impaired, "ec2:DescribeInstanceStatus", c.impaired),
		into(ctx, c, &e.Images, "ec2:DescribeImages", c.images),
	}
}

// caller returns the ARN of the IAM identity that makes the requests, and stores its account in the evidence.
func (c *collector) caller(ctx context.Context) (string, error) {
	identity, err := c.IAM.Identity(ctx)
	c.e.Account = identity.Account
	return identity.ARN, err
}

// images returns the images that the EC2NodeClasses name in their status and spec.
func (c *collector) images(ctx context.Context) ([]diagnosis.Image, error) {
	var ids []string
	for _, class := range c.e.Classes.Value {
		ids = append(append(ids, class.Images...), class.ImageIDs...)
	}
	slices.Sort(ids)
	return c.Images.ImagesByID(ctx, slices.Compact(ids))
}

// impaired returns, by instance ID, the failed status check: that of the host, else that of the instance. The result
// includes all instances of the account, not only those of the cluster.
func (c *collector) impaired(ctx context.Context) (map[string]string, error) {
	all, err := c.EC2.StatusProblems(ctx)
	out := map[string]string{}
	for _, p := range all {
		if p.Kind == ec2.InstanceCheckFailed && out[p.ID] == "" || p.Kind == ec2.SystemCheckFailed {
			out[p.ID] = string(p.Kind)
		}
	}
	return out, err
}

func (c *collector) cluster(ctx context.Context) (diagnosis.Cluster, error) {
	f, err := c.EKS.Facts(ctx)
	if err != nil {
		return diagnosis.Cluster{}, err
	}
	return diagnosis.Cluster{
		ARN:           f.ARN,
		Status:        f.Status,
		Version:       f.Version,
		Endpoint:      f.Endpoint,
		CA:            f.CA,
		Issuer:        f.Issuer,
		VPC:           f.VPC,
		Group:         f.SecurityGroup,
		AuthMode:      f.AuthMode,
		PublicAccess:  f.PublicAccess,
		PrivateAccess: f.PrivateAccess,
		PublicCIDRs:   f.PublicCIDRs,
		ServiceCIDR:   f.ServiceCIDR,
		Created:       f.Created.UTC(),
	}, nil
}

// entries returns the access entries of the cluster. If the cluster's authentication mode does not use access entries,
// EKS answers with an error, and entries returns an empty list without error.
func (c *collector) entries(ctx context.Context) ([]diagnosis.Entry, error) {
	all, err := c.EKS.Entries(ctx)
	out := []diagnosis.Entry{}
	if awserr.Is(err, awserr.Misconfigured) && strings.Contains(err.Error(), "authentication mode") {
		return out, nil
	}
	for _, e := range all {
		out = append(out, entryOf(e))
	}
	return out, err
}

func entryOf(e eks.Entry) diagnosis.Entry {
	return diagnosis.Entry{Principal: e.Principal, Type: e.Type, Username: e.Username, Groups: e.Groups, Created: e.Created.UTC()}
}

// vpcAndConsoleRequests returns the requests about the cluster's VPC, and the function consoles.
func (c *collector) vpcAndConsoleRequests(ctx context.Context) []func() {
	e, network := &c.e, c.Network
	if c.EKS == nil {
		return nil
	}
	out := []func(){func() { c.consoles(ctx) }}
	vpc := e.Cluster.Value.VPC
	if vpc == "" {
		why := "the cluster's VPC is not known"
		e.VPC, e.Subnets = notRequested[diagnosis.VPC](why), notRequested[[]diagnosis.Subnet](why)
		e.Routes, e.ACLs = notRequested[[]diagnosis.RouteTable](why), notRequested[[]diagnosis.ACL](why)
		e.Endpoints, e.Groups = notRequested[[]diagnosis.Endpoint](why), notRequested[[]diagnosis.Group](why)
		e.NATAddresses = notRequested[[]string](why)
		return out
	}
	return append(out,
		into(ctx, c, &e.VPC, "ec2:DescribeVpcAttribute "+vpc, forVPC(vpc, network.VPC)),
		into(ctx, c, &e.Subnets, "ec2:DescribeSubnets of "+vpc, forVPC(vpc, network.AllSubnets)),
		into(ctx, c, &e.Routes, "ec2:DescribeRouteTables of "+vpc, forVPC(vpc, network.Routes)),
		into(ctx, c, &e.ACLs, "ec2:DescribeNetworkAcls of "+vpc, forVPC(vpc, network.ACLs)),
		into(ctx, c, &e.Endpoints, "ec2:DescribeVpcEndpoints of "+vpc, forVPC(vpc, network.Endpoints)),
		into(ctx, c, &e.Groups, "ec2:DescribeSecurityGroups of "+vpc, forVPC(vpc, network.AllGroups)),
		into(ctx, c, &e.NATAddresses, "ec2:DescribeNatGateways of "+vpc, forVPC(vpc, network.NATAddresses)),
	)
}

func forVPC[T any](vpc string, f func(context.Context, string) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) { return f(ctx, vpc) }
}

// consoles reads the console output of running instances without a ready Node, at most maxConsoles per EC2NodeClass. If
// Kubernetes is queried, consoles skips instances without a NodeClaim. If Late is not nil, consoles reads only late
// instances.
func (c *collector) consoles(ctx context.Context) {
	ready := map[string]bool{}
	for _, n := range c.e.Nodes.Value {
		if n.Ready {
			ready[n.ProviderID[strings.LastIndexByte(n.ProviderID, '/')+1:]] = true
		}
	}
	read := map[string]int{} // number of instances by EC2NodeClass
	for i := range c.e.Instances.Value {
		instance := &c.e.Instances.Value[i]
		isForeign := instance.Claim == "" && c.Kube != nil
		isOnTime := c.Late != nil && !c.Late[instance.ID]
		if instance.State != "running" || ready[instance.ID] || isForeign || isOnTime || read[instance.Class] >= maxConsoles {
			continue
		}
		read[instance.Class]++
		instance.Console = ask(ctx, c, "ec2:GetConsoleOutput "+instance.ID, func(ctx context.Context) (string, error) {
			text, err := c.EC2.Console(ctx, instance.ID)
			return diagnosis.MaskTail(text, maxConsoleBytes), err
		})
	}
}

// dependentRequests calls controllerRole, and returns the requests that need names from results of earlier requests:
// those for roles, instance profiles and the controller's permission to pass roles.
func (c *collector) dependentRequests(ctx context.Context) []func() {
	if c.EKS == nil {
		return nil
	}
	c.controllerRole(ctx)
	var mu sync.Mutex // guards the maps Roles, Profiles and PassRole
	var out []func()
	for _, name := range c.roleNames() {
		out = append(out, func() { c.role(ctx, name, &mu) })
	}
	for _, class := range c.e.Classes.Value {
		name := class.Profile
		if name == "" {
			continue
		}
		out = append(out, func() { c.profile(ctx, name, &mu) })
		if caller, role := c.e.Controller.Value.Role, c.roleARN(class); caller != "" && role != "" {
			out = append(out, func() {
				item := ask(ctx, c, "iam:SimulatePrincipalPolicy "+caller,
					func(ctx context.Context) (bool, error) { return c.IAM.MayPass(ctx, caller, role) })
				mu.Lock()
				defer mu.Unlock()
				c.e.PassRole[role] = item
			})
		}
	}
	return out
}

func (c *collector) role(ctx context.Context, name string, mu *sync.Mutex) {
	item := ask(ctx, c, "iam:GetRole "+name, func(ctx context.Context) (diagnosis.Role, error) { return c.IAM.Role(ctx, name) })
	mu.Lock()
	defer mu.Unlock()
	c.e.Roles[name] = item
}

func (c *collector) profile(ctx context.Context, name string, mu *sync.Mutex) {
	item := ask(ctx, c, "iam:GetInstanceProfile "+name, func(ctx context.Context) (diagnosis.Profile, error) {
		p, err := c.IAM.Profile(ctx, name)
		return diagnosis.Profile{ARN: p.ARN, Role: p.RoleARN, Created: p.Created.UTC()}, err
	})
	mu.Lock()
	defer mu.Unlock()
	c.e.Profiles[name] = item
}

// roleARN returns the ARN of the role that an EC2NodeClass names, in the account and partition of the caller; empty if
// the class names no role or the account is unknown.
func (c *collector) roleARN(class diagnosis.Class) string {
	if class.Role == "" || c.e.Account == "" {
		return ""
	}
	partition := "aws"
	if parts := strings.Split(c.e.Caller.Value, ":"); len(parts) > 1 {
		partition = cmp.Or(parts[1], partition)
	}
	return "arn:" + partition + ":iam::" + c.e.Account + ":role/" + strings.TrimPrefix(class.Role, "/")
}

// controllerRole reads the controller's role from EKS, unless the annotation of the ServiceAccount names it.
func (c *collector) controllerRole(ctx context.Context) {
	controller := &c.e.Controller.Value
	if !c.e.Controller.Known() || controller.Role != "" || controller.ServiceAccount == "" {
		return
	}
	role := ask(ctx, c, "eks:ListPodIdentityAssociations",
		func(ctx context.Context) (string, error) {
			return c.EKS.PodRole(ctx, controller.Namespace, controller.ServiceAccount)
		})
	if role.Value != "" {
		controller.Role, controller.RoleSource = role.Value, "pod identity"
	}
}

// roleNames returns the names, without paths, of the roles of the controller, EC2NodeClasses, node mappings of
// aws-auth, access entries and Fargate profiles; at most 40. The roles of the controller and the classes come first,
// because a cluster may have hundreds of mappings. If it leaves out roles, it sets the Truncation of Entries.
func (c *collector) roleNames() []string {
	var names []string
	add := func(arn string) { // an ARN without /NAME, such as root's, names no role
		if name := arn[strings.LastIndexByte(arn, '/')+1:]; name != "" && !strings.Contains(name, ":") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(c.e.Controller.Value.Role)
	for _, class := range c.e.Classes.Value {
		add(class.Role)
	}
	for _, m := range c.e.AuthMap.Value.Roles {
		if slices.Contains(m.Groups, "system:nodes") {
			add(m.ARN)
		}
	}
	for _, e := range c.e.Entries.Value {
		if e.Type != "STANDARD" { // the entries of nodes have other types
			add(e.Principal)
		}
	}
	for _, p := range c.e.Fargate.Value {
		add(p.Role)
	}
	const most = 40
	if len(names) > most && c.e.Entries.Known() && c.e.Entries.Truncation == "" {
		c.e.Entries.Truncation = fmt.Sprintf("of %d roles that are mapped or named by EC2NodeClasses, %d were read", len(names), most)
	}
	return names[:min(len(names), most)]
}
