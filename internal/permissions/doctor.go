package permissions

// Doctor returns the policy of joiner doctor, for a user or for the controller's role. It allows reading only, and not
// the contents of S3 objects, secrets or user data.
func Doctor(s Scope) ([]Policy, error) {
	s, err := s.complete()
	if err != nil {
		return nil, err
	}
	return []Policy{{Name: "doctor", Statements: s.doctor()}}, nil
}

func (s Scope) doctor() []Statement {
	arnOf := func(kind string) string { return s.arn("eks", s.Region, s.Account, kind+"/"+s.Cluster) }
	return []Statement{
		{
			Why:    "The cluster's networks, images and instances. EC2 cannot restrict these actions to resources.",
			Sid:    "LookAtRegion",
			Effect: allow,
			Action: []string{
				"ec2:DescribeImages", "ec2:DescribeInstanceStatus", "ec2:DescribeInstances", "ec2:DescribeNatGateways",
				"ec2:DescribeNetworkAcls", "ec2:DescribeRouteTables", "ec2:DescribeSecurityGroups",
				"ec2:DescribeSubnets", "ec2:DescribeVpcAttribute", "ec2:DescribeVpcEndpoints",
			},
			Resource: []string{"*"}, Condition: Conditions{"StringEquals": {"aws:RequestedRegion": {s.Region}}},
		},
		{
			Why:    "The console output of the cluster's instances.",
			Sid:    "ReadOwnConsoles",
			Effect: allow, Action: []string{"ec2:GetConsoleOutput"},
			Resource: s.ec2("instance"), Condition: s.nodes(),
		},
		{
			Why:    "The cluster's settings, access entries, node groups, Fargate profiles and pod identity associations.",
			Sid:    "LookAtCluster",
			Effect: allow,
			Action: []string{
				"eks:DescribeAccessEntry", "eks:DescribeCluster", "eks:DescribeFargateProfile", "eks:DescribeNodegroup",
				"eks:DescribePodIdentityAssociation",
				"eks:ListAccessEntries", "eks:ListFargateProfiles", "eks:ListNodegroups", "eks:ListPodIdentityAssociations",
			},
			Resource: []string{
				arnOf("cluster"), arnOf("access-entry") + "/*", arnOf("fargateprofile") + "/*", arnOf("nodegroup") + "/*",
				arnOf("podidentityassociation") + "/*",
			},
		},
		{
			Why:    "The trust policies of the roles of nodes, of Fargate and of the controller, the names of their policies, and whether the controller may pass the node roles.",
			Sid:    "LookAtRoles",
			Effect: allow,
			Action: []string{
				"iam:GetInstanceProfile", "iam:GetRole", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies", "iam:SimulatePrincipalPolicy",
			},
			Resource: []string{s.arn("iam", "", s.Account, "instance-profile/*"), s.arn("iam", "", s.Account, "role/*")},
		},
	}
}
