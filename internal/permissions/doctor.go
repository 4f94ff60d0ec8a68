package permissions

// Doctor returns the policy of joiner doctor, for a user or for the controller's role. It only allows reading, and no access to
// contents: no S3 objects, no secrets, no user data.
func Doctor(s Scope) ([]Policy, error) {
	s, err := s.complete()
	if err != nil {
		return nil, err
	}
	return []Policy{{Name: "doctor", Statements: s.doctor()}}, nil
}

func (s Scope) doctor() []Statement {
	cluster := func(kind string) string { return s.arn("eks", s.Region, s.Account, kind+"/"+s.Cluster) }
	return []Statement{
		{
			Why:    "The cluster's networks, its images and its instances. EC2 cannot restrict these by resource.",
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
			Why:    "What the cluster's own instances print while they boot.",
			Sid:    "ReadOwnConsoles",
			Effect: allow, Action: []string{"ec2:GetConsoleOutput"},
			Resource: s.ec2("instance"), Condition: s.nodes(),
		},
		{
			Why:    "Who is let into the cluster, and what else of it runs where.",
			Sid:    "LookAtCluster",
			Effect: allow,
			Action: []string{
				"eks:DescribeAccessEntry", "eks:DescribeCluster", "eks:DescribeFargateProfile", "eks:DescribeNodegroup",
				"eks:DescribePodIdentityAssociation",
				"eks:ListAccessEntries", "eks:ListFargateProfiles", "eks:ListNodegroups", "eks:ListPodIdentityAssociations",
			},
			Resource: []string{
				cluster("cluster"), cluster("access-entry") + "/*", cluster("fargateprofile") + "/*", cluster("nodegroup") + "/*",
				cluster("podidentityassociation") + "/*",
			},
		},
		{
			Why:    "Whom the roles of nodes, of Fargate and of the controller trust, which policies they have, and whether the controller may pass the nodes'.",
			Sid:    "LookAtRoles",
			Effect: allow,
			Action: []string{
				"iam:GetInstanceProfile", "iam:GetRole", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies", "iam:SimulatePrincipalPolicy",
			},
			Resource: []string{s.arn("iam", "", s.Account, "instance-profile/*"), s.arn("iam", "", s.Account, "role/*")},
		},
	}
}
