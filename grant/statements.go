package grant

import "strings"

// The tags that conditions look at: those of packages ec2 and access.
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

// marked wants the tags of what the controller makes: in the request, or on the resource.
func (s Scope) marked(prefix string) Conditions {
	return Conditions{
		"StringEquals": {prefix + tagCluster + s.Cluster: {"owned"}, prefix + tagName: {s.Cluster}},
		"StringLike":   {prefix + tagNodePool: {"*"}, prefix + tagUID: {s.UID}},
	}
}

// launch is about EC2: what buys instances, and gives them back.
func (s Scope) launch() []Statement {
	tagging := s.marked(requestTag)
	tagging["StringEquals"]["ec2:CreateAction"] = []string{"CreateFleet", "CreateLaunchTemplate", "RunInstances"}
	made := s.ec2("fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume")
	out := []Statement{
		{
			Why:    "An instance is made of an image in a subnet with security groups, which belong to others; being used does not change them. RunInstances is what CreateFleet does in our name, and is asked about by a dry run.",
			Sid:    "UseWhatOthersMade",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:RunInstances"},
			Resource: s.ec2("capacity-reservation", "image", "placement-group", "security-group", "snapshot", "subnet"),
		},
		{
			Why:    "Instances are launched from the controller's own launch templates only.",
			Sid:    "UseOwnLaunchTemplates",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:RunInstances"},
			Resource: s.ec2("launch-template"), Condition: s.marked(resourceTag),
		},
		{
			Why:    "Whatever is made carries the cluster's tags from its first moment.",
			Sid:    "MakeWhatIsTagged",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"},
			Resource: made, Condition: s.marked(requestTag),
		},
		{
			Why:    "Tagging while making takes a permission of its own.",
			Sid:    "TagWhatIsMade",
			Effect: allow, Action: []string{"ec2:CreateTags"},
			Resource: made, Condition: tagging,
		},
		{
			Why:    "An instance whose Node has joined is named after it. No other tags of what is there already can be changed.",
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
			Why:    "Nodes are given back. Those that Karpenter bought, and that a NodeClaim of the cluster adopts, lack joiner.sh/cluster-uid.",
			Sid:    "EndOwnInstances",
			Effect: allow, Action: []string{"ec2:TerminateInstances"},
			Resource: s.ec2("instance"), Condition: Conditions{
				"StringEquals": {resourceTag + tagCluster + s.Cluster: {"owned"}},
				"StringLike":   {resourceTag + tagNodePool: {"*"}},
			},
		},
		{
			Why:    "Launch templates that nothing uses any more are deleted.",
			Sid:    "DeleteOwnLaunchTemplates",
			Effect: allow, Action: []string{"ec2:DeleteLaunchTemplate"},
			Resource: s.ec2("launch-template"), Condition: s.marked(resourceTag),
		},
	}
	if s.UID != anyUID {
		out = append(out, Statement{
			Why:    "What carries the UID of another cluster belongs to that cluster, be its name the same. This statement is there only where the UID was given.",
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

// profiles is about IAM: what gives instances their role.
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
	var roles []string
	for _, role := range s.NodeRoles {
		roles = append(roles, s.arn("iam", "", s.Account, "role/"+strings.TrimPrefix(role, "/")))
	}
	services := []string{"ec2.amazonaws.com"}
	if s.Partition == "aws-cn" {
		services = append(services, "ec2.amazonaws.com.cn")
	}
	return []Statement{
		{
			Why:    "Nodes get these roles, and no others.",
			Sid:    "PassNodeRoles",
			Effect: allow, Action: []string{"iam:PassRole"}, Resource: roles,
			Condition: Conditions{"StringEquals": {"iam:PassedToService": services}},
		},
		{
			Why:    "An EC2NodeClass that names a role gets an instance profile for it, under a path of the cluster's own. Tagging while making takes a permission of its own.",
			Sid:    "MakeInstanceProfiles",
			Effect: allow, Action: []string{"iam:CreateInstanceProfile", "iam:TagInstanceProfile"}, Resource: own,
			Condition: marked(requestTag),
		},
		{
			Why:    "The role goes into the profile; a profile that nothing uses any more is emptied and deleted.",
			Sid:    "ChangeOwnInstanceProfiles",
			Effect: allow, Action: []string{"iam:AddRoleToInstanceProfile", "iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"},
			Resource: own, Condition: marked(resourceTag),
		},
	}
}

// reading is what the controller looks at. None of it changes anything.
func (s Scope) reading() []Statement {
	parameters := []string{s.arn("ssm", s.Region, "", "parameter/aws/service/*")}
	for _, name := range s.Parameters {
		parameters = append(parameters, s.arn("ssm", s.Region, s.Account, "parameter/"+strings.TrimPrefix(name, "/")))
	}
	return []Statement{
		{
			Why:    "Types, zones, prices of spot, images, networks, reservations, and what the cluster has in the region. EC2 cannot restrict these by resource.",
			Sid:    "ReadRegion",
			Effect: allow,
			Action: []string{
				"ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
				"ec2:DescribeInstances", "ec2:DescribeLaunchTemplates", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory",
				"ec2:DescribeSubnets",
			},
			Resource: []string{"*"}, Condition: Conditions{"StringEquals": {"aws:RequestedRegion": {s.Region}}},
		},
		{
			Why:    "AWS publishes the ids of its images there. Own parameters that EC2NodeClasses name have to be added.",
			Sid:    "ReadImageParameters",
			Effect: allow, Action: []string{"ssm:GetParameter"}, Resource: parameters,
		},
		{
			Why:    "On-demand prices. The Price List has no resources.",
			Sid:    "ReadPrices",
			Effect: allow, Action: []string{"pricing:GetProducts"}, Resource: []string{"*"},
		},
		{
			Why:    "The API server's address, the version, the VPC and the range of services' addresses.",
			Sid:    "ReadCluster",
			Effect: allow, Action: []string{"eks:DescribeCluster"}, Resource: []string{s.arn("eks", s.Region, s.Account, "cluster/"+s.Cluster)},
		},
		{
			Why:    "Whether the profile that an EC2NodeClass names is there and has a role; IAM looks for what is not there by its name alone.",
			Sid:    "ReadInstanceProfiles",
			Effect: allow, Action: []string{"iam:GetInstanceProfile"}, Resource: []string{s.arn("iam", "", s.Account, "instance-profile/*")},
		},
		{
			Why:    "Profiles that were left behind are found by the cluster's path.",
			Sid:    "ListInstanceProfiles",
			Effect: allow, Action: []string{"iam:ListInstanceProfiles"}, Resource: []string{"*"},
		},
	}
}

// interruption is about the queue with EC2's notices.
func (s Scope) interruption() []Statement {
	return []Statement{{
		Why:    "Notices are read and deleted when they have been heeded. sqs:DeleteMessage stands for batches, too.",
		Sid:    "HeedInterruptions",
		Effect: allow, Action: []string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"},
		Resource: []string{s.arn("sqs", s.Region, s.Account, s.Queue)},
	}}
}
