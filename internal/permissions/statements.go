package permissions

import "strings"

// Tags in conditions. They must be those of packages ec2 and access.
const (
	tagCluster   = "kubernetes.io/cluster/" // + name = "owned"
	tagName      = "eks:eks-cluster-name"
	tagNodePool  = "karpenter.sh/nodepool"
	tagNodeClaim = "karpenter.sh/nodeclaim"
	tagNodeClass = "karpenter.k8s.aws/ec2nodeclass"
	tagRegion    = "topology.kubernetes.io/region"
	tagUID       = "joiner.sh/cluster-uid"
)

// Prefixes of condition keys.
const (
	requestTag  = "aws:RequestTag/"
	resourceTag = "aws:ResourceTag/"
)

// marked returns conditions that require the tags of the controller's resources: in the request or on the resource, by prefix.
func (s Scope) marked(prefix string) Conditions {
	return Conditions{
		"StringEquals": {prefix + tagCluster + s.Cluster: {"owned"}, prefix + tagName: {s.Cluster}},
		"StringLike":   {prefix + tagNodePool: {"*"}, prefix + tagUID: {s.UID}},
	}
}

// launch returns the statements for launching and terminating instances.
func (s Scope) launch() []Statement {
	tagging := s.marked(requestTag)
	tagging["StringEquals"]["ec2:CreateAction"] = []string{"CreateFleet", "CreateLaunchTemplate", "RunInstances"}
	made := s.ec2("fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume")
	out := []Statement{
		{
			Why:    "An instance is made of an image in a subnet with security groups, which belong to others; being used does not change them. RunInstances is what CreateFleet does in our name, and is asked about by a dry run.",
			Worst:  "A launch can name any image, subnet and security group of the region that the account may use; what is launched still needs the cluster's tags and gets a node role at most.",
			Sid:    "UseWhatOthersMade",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:RunInstances"},
			Resource: s.ec2("capacity-reservation", "image", "placement-group", "security-group", "snapshot", "subnet"),
		},
		{
			Why:    "Instances are launched from the controller's own launch templates only.",
			Worst:  "Instances cost money, up to the account's quotas.",
			Sid:    "UseOwnLaunchTemplates",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:RunInstances"},
			Resource: s.ec2("launch-template"), Condition: s.marked(resourceTag),
		},
		{
			Why:    "Whatever is made carries the cluster's tags from its first moment.",
			Worst:  "Instances of any type and number that the account's quotas allow. They run any user data, so the holder can do what nodes can do.",
			Sid:    "MakeWhatIsTagged",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"},
			Resource: made, Condition: s.marked(requestTag),
		},
		{
			Why:    "Tagging while making takes a permission of its own.",
			Worst:  "What is made anew carries more tags than the cluster's, of any value. Nothing that is there already is tagged.",
			Sid:    "TagWhatIsMade",
			Effect: allow, Action: []string{"ec2:CreateTags"},
			Resource: made, Condition: tagging,
		},
		{
			Why:    "An instance whose Node has joined is named after it. No other tags of what is there already can be changed.",
			Worst:  "An instance of the cluster has a wrong Name or NodeClaim.",
			Sid:    "NameOwnInstances",
			Effect: allow, Action: []string{"ec2:CreateTags"},
			Resource: s.ec2("instance"), Condition: Conditions{
				"StringEquals":              {resourceTag + tagCluster + s.Cluster: {"owned"}},
				"StringLike":                {resourceTag + tagNodePool: {"*"}},
				"StringEqualsIfExists":      {requestTag + tagName: {s.Cluster}},
				"ForAllValues:StringEquals": {"aws:TagKeys": {"Name", tagName, tagNodeClaim}},
			},
		},
		{
			Why:    "Instances are terminated. Those that Karpenter launched, and that a NodeClaim of the cluster adopts, lack joiner.sh/cluster-uid.",
			Worst:  "All nodes launched for the cluster can be terminated, and without LeaveNamesakesAlone those of a cluster with the same name. No other instance of the account can.",
			Sid:    "EndOwnInstances",
			Effect: allow, Action: []string{"ec2:TerminateInstances"},
			Resource: s.ec2("instance"), Condition: s.nodes(),
		},
		{
			Why:    "Launch templates that nothing uses any more are deleted.",
			Worst:  "Launches that use the template fail; the controller makes it anew.",
			Sid:    "DeleteOwnLaunchTemplates",
			Effect: allow, Action: []string{"ec2:DeleteLaunchTemplate"},
			Resource: s.ec2("launch-template"), Condition: s.marked(resourceTag),
		},
	}
	if s.UID != anyUID {
		out = append(out, Statement{
			Why:    "What carries the UID of another cluster belongs to that cluster, be its name the same. This statement is there only where the UID was given.",
			Worst:  "Nothing: it only takes away.",
			Sid:    "LeaveNamesakesAlone",
			Effect: deny, Action: []string{"ec2:CreateTags", "ec2:TerminateInstances"},
			Resource: s.ec2("instance"), Condition: Conditions{
				"StringNotEquals": {resourceTag + tagUID: {s.UID}},
				"Null":            {resourceTag + tagUID: {"false"}},
			},
		})
	}
	return out
}

// profiles returns the statements for instance profiles, which give instances their role.
func (s Scope) profiles() []Statement {
	own := []string{s.arn("iam", "", s.Account, "instance-profile/karpenter/"+s.Region+"/"+s.Cluster+"/*")}
	marked := func(prefix string) Conditions {
		return Conditions{
			"StringEquals": {
				prefix + tagCluster + s.Cluster: {"owned"}, prefix + tagName: {s.Cluster}, prefix + tagRegion: {s.Region},
			},
			"StringLike": {prefix + tagNodeClass: {"*"}, prefix + tagUID: {s.UID}},
		}
	}
	return []Statement{
		{
			Why:    "Nodes get these roles, and no others. EC2 goes by another name in China.",
			Worst:  "Instances do what these roles allow. Give a node role what nodes need, and pods roles of their own.",
			Sid:    "PassNodeRoles",
			Effect: allow, Action: []string{"iam:PassRole"}, Resource: s.nodeRoles(),
			Condition: Conditions{"StringEquals": {"iam:PassedToService": {"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}},
		},
		{
			Why:    "An EC2NodeClass that names a role gets an instance profile for it, under a path of the cluster's own.",
			Worst:  "The account's quota of instance profiles is used up.",
			Sid:    "MakeInstanceProfiles",
			Effect: allow, Action: []string{"iam:CreateInstanceProfile"}, Resource: own,
			Condition: marked(requestTag),
		},
		{
			Why:    "Tagging a profile while it is created takes a permission of its own. A profile with the tags of another cluster is not tagged.",
			Worst:  "A profile under the cluster's path that has no tags of a cluster gets those of this one.",
			Sid:    "TagInstanceProfiles",
			Effect: allow, Action: []string{"iam:TagInstanceProfile"}, Resource: own,
			Condition: s.taggable(marked(requestTag)),
		},
		{
			Why:    "The role goes into the profile; a profile that nothing uses any more is emptied and deleted.",
			Worst:  "New nodes of the cluster have no role and do not join, until the controller has fixed the profile.",
			Sid:    "ChangeOwnInstanceProfiles",
			Effect: allow, Action: []string{"iam:AddRoleToInstanceProfile", "iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"},
			Resource: own, Condition: marked(resourceTag),
		},
	}
}

// taggable adds conditions to c that require that the resource has the tags of this cluster or of no cluster. It changes and returns c.
func (s Scope) taggable(c Conditions) Conditions {
	c["StringEqualsIfExists"] = map[string][]string{resourceTag + tagCluster + s.Cluster: {"owned"},
		resourceTag + tagName: {s.Cluster}, resourceTag + tagRegion: {s.Region}}
	c["StringLikeIfExists"] = map[string][]string{resourceTag + tagUID: {s.UID}}
	return c
}

// nodes returns conditions that match instances launched for this cluster, by Joiner or by Karpenter.
func (s Scope) nodes() Conditions {
	return Conditions{
		"StringEquals": {resourceTag + tagCluster + s.Cluster: {"owned"}},
		"StringLike":   {resourceTag + tagNodePool: {"*"}},
	}
}

// nodeRoles returns the ARNs of the node roles.
func (s Scope) nodeRoles() []string {
	var roles []string
	for _, role := range s.NodeRoles {
		roles = append(roles, s.arn("iam", "", s.Account, "role/"+strings.TrimPrefix(role, "/")))
	}
	return roles
}

// reading returns the statements for reading AWS.
func (s Scope) reading() []Statement {
	parameters := []string{s.arn("ssm", s.Region, "", "parameter/aws/service/*")}
	for _, name := range s.Parameters {
		parameters = append(parameters, s.arn("ssm", s.Region, s.Account, "parameter/"+strings.TrimPrefix(name, "/")))
	}
	return append(s.diagnosis(), []Statement{
		{
			Why:    "Types, zones, prices of spot, images, networks, reservations, placement groups, what the cluster has in the region, and what is wrong with it. EC2 cannot restrict these by resource.",
			Worst:  "The holder sees the region's instances, images and networks, with their tags; neither user data nor disks.",
			Sid:    "ReadRegion",
			Effect: allow,
			Action: []string{
				"ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceStatus", "ec2:DescribeInstanceTypeOfferings",
				"ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeLaunchTemplates", "ec2:DescribePlacementGroups",
				"ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets",
			},
			Resource: []string{"*"}, Condition: Conditions{"StringEquals": {"aws:RequestedRegion": {s.Region}}},
		},
		{
			Why:    "AWS publishes the ids of its images there. Own parameters that EC2NodeClasses name have to be added.",
			Worst:  "The values of these parameters are read. AWS's parameters are public. Name none of your own that holds a secret.",
			Sid:    "ReadImageParameters",
			Effect: allow, Action: []string{"ssm:GetParameter"}, Resource: parameters,
		},
		{
			Why:    "On-demand prices. The Price List has no resources.",
			Worst:  "Nothing: prices are public.",
			Sid:    "ReadPrices",
			Effect: allow, Action: []string{"pricing:GetProducts"}, Resource: []string{"*"},
		},
		{
			Why:    "The API server's address, the version, the VPC and the range of services' addresses.",
			Worst:  "The API server's address and the cluster's settings are known. This is no access to Kubernetes.",
			Sid:    "ReadCluster",
			Effect: allow, Action: []string{"eks:DescribeCluster"}, Resource: []string{s.arn("eks", s.Region, s.Account, "cluster/"+s.Cluster)},
		},
		{
			Why:    "From which zones the cluster's traffic is shifted away: with --enable-zonal-shift. The action has no resources, and a condition of its own.",
			Worst:  "The holder knows when the cluster has a zonal shift.",
			Sid:    "ReadZonalShifts",
			Effect: allow, Action: []string{"arc-zonal-shift:GetManagedResource"}, Resource: []string{"*"},
			Condition: Conditions{"StringEquals": {"arc-zonal-shift:ResourceIdentifier": {s.arn("eks", s.Region, s.Account, "cluster/"+s.Cluster)}}},
		},
		{
			Why:    "Whether the profile that an EC2NodeClass names is there and has a role; IAM looks for what is not there by its name alone.",
			Worst:  "The holder can read the role of a profile whose name is known.",
			Sid:    "ReadInstanceProfiles",
			Effect: allow, Action: []string{"iam:GetInstanceProfile"}, Resource: []string{s.arn("iam", "", s.Account, "instance-profile/*")},
		},
		{
			Why:    "Profiles that were left behind are found by the cluster's path.",
			Worst:  "The names of the account's instance profiles and of their roles are known.",
			Sid:    "ListInstanceProfiles",
			Effect: allow, Action: []string{"iam:ListInstanceProfiles"}, Resource: []string{"*"},
		},
	}...)
}

// diagnosis returns the statements for explaining why nodes do not join. All are optional: without one, the diagnosis reports the missing
// permission instead of the cause.
func (s Scope) diagnosis() []Statement {
	cluster := func(kind string) string { return s.arn("eks", s.Region, s.Account, kind+"/"+s.Cluster) }
	return []Statement{
		{
			Why:    "Optional: whether instances can reach the API server, to explain why a node does not join. EC2 cannot restrict these by resource.",
			Worst:  "The holder can read the region's routes, gateways and endpoints.",
			Sid:    "LookWhyNodesDoNotJoin",
			Effect: allow,
			Action: []string{
				"ec2:DescribeNatGateways", "ec2:DescribeRouteTables", "ec2:DescribeVpcAttribute", "ec2:DescribeVpcEndpoints",
			},
			Resource: []string{"*"}, Condition: Conditions{"StringEquals": {"aws:RequestedRegion": {s.Region}}},
		},
		{
			Why:    "Optional: what the cluster's own instances print while they boot, to explain why a node does not join.",
			Worst:  "The holder can read the console output of the cluster's instances, and of no other instance.",
			Sid:    "ReadOwnConsoles",
			Effect: allow, Action: []string{"ec2:GetConsoleOutput"},
			Resource: s.ec2("instance"), Condition: s.nodes(),
		},
		{
			Why:    "Optional: which roles the cluster authorizes, to report a missing one before an instance is launched.",
			Worst:  "The names of the roles and users that have access to the cluster are known.",
			Sid:    "LookWhoMayJoin",
			Effect: allow, Action: []string{"eks:DescribeAccessEntry", "eks:ListAccessEntries"},
			Resource: []string{cluster("cluster"), cluster("access-entry") + "/*"},
		},
		{
			Why:    "Optional: whom the roles of nodes trust, and which policies they have, where nodes that have them do not join.",
			Worst:  "The holder can read the trust policies of node roles and the names of their policies, and no other role of the account.",
			Sid:    "LookAtNodeRoles",
			Effect: allow, Action: []string{"iam:GetRole", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies"},
			Resource: s.nodeRoles(),
		},
	}
}

// interruption returns the statements for the interruption queue.
func (s Scope) interruption() []Statement {
	return []Statement{{
		Why:    "Interruption messages are read, processed and deleted. sqs:DeleteMessage covers batches, too.",
		Worst:  "Interruption messages can be lost: instances that AWS reclaims then end without a drain.",
		Sid:    "HeedInterruptions",
		Effect: allow, Action: []string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"},
		Resource: []string{s.arn("sqs", s.Region, s.Account, s.Queue)},
	}}
}
