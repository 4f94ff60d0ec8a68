package permissions

import "strings"

// Tags in conditions. They must be those of the packages aws/ec2 and aws/iam.
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

// tagConditions returns conditions that require the tags of the controller's resources. prefix is requestTag for tags
// in the request, and resourceTag for tags on the resource.
func (s Scope) tagConditions(prefix string) Conditions {
	return Conditions{
		"StringEquals": {prefix + tagCluster + s.Cluster: {"owned"}, prefix + tagName: {s.Cluster}},
		"StringLike":   {prefix + tagNodePool: {"*"}, prefix + tagUID: {s.UID}},
	}
}

// launch returns the statements for launching and terminating instances.
func (s Scope) launch() []Statement {
	atCreation := s.tagConditions(requestTag)
	atCreation["StringEquals"]["ec2:CreateAction"] = []string{"CreateFleet", "CreateLaunchTemplate", "RunInstances"}
	newResources := s.ec2("fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume")
	out := []Statement{
		{
			Why:    "A launch uses an image, a subnet and security groups that other tools own; a launch does not change them. CreateFleet calls RunInstances on behalf of the controller, and a dry run of the controller calls it directly.",
			Worst:  "A launch can use any image, subnet and security group of the region that the account can use. The new instance still needs the cluster's tags, and can only have a node role.",
			Sid:    "UseWhatOthersMade",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:RunInstances"},
			Resource: s.ec2("capacity-reservation", "image", "placement-group", "security-group", "snapshot", "subnet"),
		},
		{
			Why:    "Instances are launched only from the controller's own launch templates.",
			Worst:  "Instances cost money, up to the account's quotas.",
			Sid:    "UseOwnLaunchTemplates",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:RunInstances"},
			Resource: s.ec2("launch-template"), Condition: s.tagConditions(resourceTag),
		},
		{
			Why:    "Every new resource has the cluster's tags from its creation on.",
			Worst:  "Instances of any type and number that the account's quotas allow. They run any user data, so the holder can do what nodes can do.",
			Sid:    "MakeWhatIsTagged",
			Effect: allow, Action: []string{"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"},
			Resource: newResources, Condition: s.tagConditions(requestTag),
		},
		{
			Why:    "Tagging a resource during its creation needs a separate permission.",
			Worst:  "New resources can have additional tags with any value. Existing resources cannot be tagged.",
			Sid:    "TagWhatIsMade",
			Effect: allow, Action: []string{"ec2:CreateTags"},
			Resource: newResources, Condition: atCreation,
		},
		{
			Why:    "An instance gets the name of its Node after the Node has joined. No other tags of existing instances can be changed.",
			Worst:  "The tags Name and karpenter.sh/nodeclaim of an instance of the cluster can get wrong values.",
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
			Why:    "The controller terminates its instances. Those that Karpenter launched have no tag joiner.sh/cluster-uid, so the statement does not require the tag.",
			Worst:  "All instances of the cluster can be terminated; without LeaveNamesakesAlone, also the instances of a cluster with the same name. No other instance of the account can be terminated.",
			Sid:    "EndOwnInstances",
			Effect: allow, Action: []string{"ec2:TerminateInstances"},
			Resource: s.ec2("instance"), Condition: s.nodes(),
		},
		{
			Why:    "The controller deletes its launch templates that are no longer used.",
			Worst:  "Launches that use the template fail until the controller has created it again.",
			Sid:    "DeleteOwnLaunchTemplates",
			Effect: allow, Action: []string{"ec2:DeleteLaunchTemplate"},
			Resource: s.ec2("launch-template"), Condition: s.tagConditions(resourceTag),
		},
	}
	if s.UID != anyUID {
		out = append(out, Statement{
			Why:    "Resources with the UID of another cluster belong to that cluster, even if both clusters have the same name. The policy has this statement only if the UID was given.",
			Worst:  "Nothing: the statement only denies.",
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
	ownProfiles := []string{s.arn("iam", "", s.Account, "instance-profile/karpenter/"+s.Region+"/"+s.Cluster+"/*")}
	profileTags := func(prefix string) Conditions {
		return Conditions{
			"StringEquals": {
				prefix + tagCluster + s.Cluster: {"owned"}, prefix + tagName: {s.Cluster}, prefix + tagRegion: {s.Region},
			},
			"StringLike": {prefix + tagNodeClass: {"*"}, prefix + tagUID: {s.UID}},
		}
	}
	return []Statement{
		{
			Why:    "Instances get only node roles. EC2's service name differs in China.",
			Worst:  "Instances can do whatever these roles allow. Give a node role only the permissions that nodes need, and give pods separate roles.",
			Sid:    "PassNodeRoles",
			Effect: allow, Action: []string{"iam:PassRole"}, Resource: s.nodeRoles(),
			Condition: Conditions{"StringEquals": {"iam:PassedToService": {"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}},
		},
		{
			Why:    "The controller creates an instance profile for the role of an EC2NodeClass, under the path of the cluster.",
			Worst:  "The account's quota of instance profiles can be used up.",
			Sid:    "MakeInstanceProfiles",
			Effect: allow, Action: []string{"iam:CreateInstanceProfile"}, Resource: ownProfiles,
			Condition: profileTags(requestTag),
		},
		{
			Why:    "Tagging a profile during its creation needs a separate permission. Profiles with the tags of another cluster cannot be tagged.",
			Worst:  "A profile under the cluster's path that has no cluster's tags can get the tags of this cluster.",
			Sid:    "TagInstanceProfiles",
			Effect: allow, Action: []string{"iam:TagInstanceProfile"}, Resource: ownProfiles,
			Condition: s.taggable(profileTags(requestTag)),
		},
		{
			Why:    "The controller adds the role to the profile. It removes the role and deletes the profile when no EC2NodeClass uses the profile.",
			Worst:  "New instances of the cluster have no role and do not join until the controller has fixed the profile.",
			Sid:    "ChangeOwnInstanceProfiles",
			Effect: allow, Action: []string{"iam:AddRoleToInstanceProfile", "iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"},
			Resource: ownProfiles, Condition: profileTags(resourceTag),
		},
	}
}

// taggable adds conditions to c that require that the resource has the tags of this cluster or of no cluster. It
// changes and returns c.
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

func (s Scope) nodeRoles() []string {
	var roles []string
	for _, role := range s.NodeRoles {
		roles = append(roles, s.arn("iam", "", s.Account, "role/"+strings.TrimPrefix(role, "/")))
	}
	return roles
}

func (s Scope) reading() []Statement {
	parameters := []string{s.arn("ssm", s.Region, "", "parameter/aws/service/*")}
	for _, name := range s.Parameters {
		parameters = append(parameters, s.arn("ssm", s.Region, s.Account, "parameter/"+strings.TrimPrefix(name, "/")))
	}
	return append(s.diagnosis(), []Statement{
		{
			Why:    "The controller reads instance types, zones, spot prices, images, networks, reservations, placement groups, the cluster's launch templates, and its instances with their status. EC2 cannot restrict these actions to resources.",
			Worst:  "The holder can read the region's instances, images and networks with their tags, but not user data or disks.",
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
			Why:    "AWS publishes the IDs of its images in these parameters. Add your own parameters that an EC2NodeClass names.",
			Worst:  "The holder can read the values of these parameters. AWS's parameters are public. Do not add a parameter of yours that contains a secret.",
			Sid:    "ReadImageParameters",
			Effect: allow, Action: []string{"ssm:GetParameter"}, Resource: parameters,
		},
		{
			Why:    "The controller reads on-demand prices. The Price List API has no resources to restrict the statement to.",
			Worst:  "Nothing: prices are public.",
			Sid:    "ReadPrices",
			Effect: allow, Action: []string{"pricing:GetProducts"}, Resource: []string{"*"},
		},
		{
			Why:    "The controller reads the API server's address, the Kubernetes version, the VPC and the address range of Services.",
			Worst:  "The holder can read the API server's address and the cluster's settings. This gives no access to Kubernetes.",
			Sid:    "ReadCluster",
			Effect: allow, Action: []string{"eks:DescribeCluster"}, Resource: []string{s.arn("eks", s.Region, s.Account, "cluster/"+s.Cluster)},
		},
		{
			Why:    "With --enable-zonal-shift, the controller reads which zones have a zonal shift of the cluster. The action has no resources; its condition key restricts it to the cluster.",
			Worst:  "The holder can read when the cluster has a zonal shift.",
			Sid:    "ReadZonalShifts",
			Effect: allow, Action: []string{"arc-zonal-shift:GetManagedResource"}, Resource: []string{"*"},
			Condition: Conditions{"StringEquals": {"arc-zonal-shift:ResourceIdentifier": {s.arn("eks", s.Region, s.Account, "cluster/"+s.Cluster)}}},
		},
		{
			Why:    "The controller checks whether the profile of an EC2NodeClass exists and has a role. For a missing profile, IAM does not know the path, so the statement allows all paths.",
			Worst:  "The holder can read the role of any profile whose name the holder knows.",
			Sid:    "ReadInstanceProfiles",
			Effect: allow, Action: []string{"iam:GetInstanceProfile"}, Resource: []string{s.arn("iam", "", s.Account, "instance-profile/*")},
		},
		{
			Why:    "The controller finds unused profiles under the cluster's path.",
			Worst:  "The holder can read the names of the account's instance profiles and of their roles.",
			Sid:    "ListInstanceProfiles",
			Effect: allow, Action: []string{"iam:ListInstanceProfiles"}, Resource: []string{"*"},
		},
	}...)
}

// diagnosis returns the statements for explaining why nodes do not join. All are optional: without one, the diagnosis
// reports the missing permission instead of the cause.
func (s Scope) diagnosis() []Statement {
	arnOf := func(kind string) string { return s.arn("eks", s.Region, s.Account, kind+"/"+s.Cluster) }
	return []Statement{
		{
			Why:    "Optional: the controller checks whether instances can reach the API server, to explain why a node does not join. EC2 cannot restrict these actions to resources.",
			Worst:  "The holder can read the region's routes, gateways and endpoints.",
			Sid:    "LookWhyNodesDoNotJoin",
			Effect: allow,
			Action: []string{
				"ec2:DescribeNatGateways", "ec2:DescribeRouteTables", "ec2:DescribeVpcAttribute", "ec2:DescribeVpcEndpoints",
			},
			Resource: []string{"*"}, Condition: Conditions{"StringEquals": {"aws:RequestedRegion": {s.Region}}},
		},
		{
			Why:    "Optional: the controller reads the console output of the cluster's instances, to explain why a node does not join.",
			Worst:  "The holder can read the console output of the cluster's instances, and of no other instance.",
			Sid:    "ReadOwnConsoles",
			Effect: allow, Action: []string{"ec2:GetConsoleOutput"},
			Resource: s.ec2("instance"), Condition: s.nodes(),
		},
		{
			Why:    "Optional: the controller reads which roles have access to the cluster, to report a missing role before a launch.",
			Worst:  "The holder can read the names of the roles and users that have access to the cluster.",
			Sid:    "LookWhoMayJoin",
			Effect: allow, Action: []string{"eks:DescribeAccessEntry", "eks:ListAccessEntries"},
			Resource: []string{arnOf("cluster"), arnOf("access-entry") + "/*"},
		},
		{
			Why:    "Optional: the controller reads the trust policies of the node roles and the names of their policies when nodes with these roles do not join.",
			Worst:  "The holder can read the trust policies of the node roles and the names of their policies, but not those of other roles.",
			Sid:    "LookAtNodeRoles",
			Effect: allow, Action: []string{"iam:GetRole", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies"},
			Resource: s.nodeRoles(),
		},
	}
}

func (s Scope) interruption() []Statement {
	return []Statement{{
		Why:    "The controller reads, processes and deletes interruption messages. sqs:DeleteMessage also allows batches.",
		Worst:  "Interruption messages can be deleted. Instances that AWS reclaims are then not drained.",
		Sid:    "HeedInterruptions",
		Effect: allow, Action: []string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"},
		Resource: []string{s.arn("sqs", s.Region, s.Account, s.Queue)},
	}}
}
