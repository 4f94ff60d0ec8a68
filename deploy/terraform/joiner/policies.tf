# Written from package permissions: go test ./internal/permissions -run TestFiles -rewrite
# Each statement is explained in docs/guides/iam.md.

locals {
  controller_policies = {
    launch = {
      Version = "2012-10-17"
      Statement = [for statement in [
        # An instance is made of an image in a subnet with security groups, which belong to others; being used does not change them. RunInstances is what CreateFleet does in our name, and is asked about by a dry run.
        {
          Sid    = "UseWhatOthersMade"
          Effect = "Allow"
          Action = [
            "ec2:CreateFleet",
            "ec2:RunInstances",
          ]
          Resource = [
            "arn:${local.partition}:ec2:${local.region}:*:capacity-reservation/*",
            "arn:${local.partition}:ec2:${local.region}:*:image/*",
            "arn:${local.partition}:ec2:${local.region}:*:placement-group/*",
            "arn:${local.partition}:ec2:${local.region}:*:security-group/*",
            "arn:${local.partition}:ec2:${local.region}:*:snapshot/*",
            "arn:${local.partition}:ec2:${local.region}:*:subnet/*",
          ]
        },
        # Instances are launched from the controller's own launch templates only.
        {
          Sid    = "UseOwnLaunchTemplates"
          Effect = "Allow"
          Action = [
            "ec2:CreateFleet",
            "ec2:RunInstances",
          ]
          Resource = ["arn:${local.partition}:ec2:${local.region}:*:launch-template/*"]
          Condition = {
            StringEquals = {
              "aws:ResourceTag/eks:eks-cluster-name"                      = [var.cluster_name]
              "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
            }
            StringLike = {
              "aws:ResourceTag/joiner.sh/cluster-uid" = [local.cluster_uid]
              "aws:ResourceTag/karpenter.sh/nodepool" = ["*"]
            }
          }
        },
        # Whatever is made carries the cluster's tags from its first moment.
        {
          Sid    = "MakeWhatIsTagged"
          Effect = "Allow"
          Action = [
            "ec2:CreateFleet",
            "ec2:CreateLaunchTemplate",
            "ec2:RunInstances",
          ]
          Resource = [
            "arn:${local.partition}:ec2:${local.region}:*:fleet/*",
            "arn:${local.partition}:ec2:${local.region}:*:instance/*",
            "arn:${local.partition}:ec2:${local.region}:*:launch-template/*",
            "arn:${local.partition}:ec2:${local.region}:*:network-interface/*",
            "arn:${local.partition}:ec2:${local.region}:*:spot-instances-request/*",
            "arn:${local.partition}:ec2:${local.region}:*:volume/*",
          ]
          Condition = {
            StringEquals = {
              "aws:RequestTag/eks:eks-cluster-name"                      = [var.cluster_name]
              "aws:RequestTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
            }
            StringLike = {
              "aws:RequestTag/joiner.sh/cluster-uid" = [local.cluster_uid]
              "aws:RequestTag/karpenter.sh/nodepool" = ["*"]
            }
          }
        },
        # Tagging while making takes a permission of its own.
        {
          Sid    = "TagWhatIsMade"
          Effect = "Allow"
          Action = ["ec2:CreateTags"]
          Resource = [
            "arn:${local.partition}:ec2:${local.region}:*:fleet/*",
            "arn:${local.partition}:ec2:${local.region}:*:instance/*",
            "arn:${local.partition}:ec2:${local.region}:*:launch-template/*",
            "arn:${local.partition}:ec2:${local.region}:*:network-interface/*",
            "arn:${local.partition}:ec2:${local.region}:*:spot-instances-request/*",
            "arn:${local.partition}:ec2:${local.region}:*:volume/*",
          ]
          Condition = {
            StringEquals = {
              "aws:RequestTag/eks:eks-cluster-name"                      = [var.cluster_name]
              "aws:RequestTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
              "ec2:CreateAction"                                         = ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]
            }
            StringLike = {
              "aws:RequestTag/joiner.sh/cluster-uid" = [local.cluster_uid]
              "aws:RequestTag/karpenter.sh/nodepool" = ["*"]
            }
          }
        },
        # An instance whose Node has joined is named after it. No other tags of what is there already can be changed.
        {
          Sid      = "NameOwnInstances"
          Effect   = "Allow"
          Action   = ["ec2:CreateTags"]
          Resource = ["arn:${local.partition}:ec2:${local.region}:*:instance/*"]
          Condition = {
            "ForAllValues:StringEquals" = {
              "aws:TagKeys" = ["Name", "eks:eks-cluster-name", "karpenter.sh/nodeclaim"]
            }
            StringEquals = {
              "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
            }
            StringEqualsIfExists = {
              "aws:RequestTag/eks:eks-cluster-name" = [var.cluster_name]
            }
            StringLike = {
              "aws:ResourceTag/karpenter.sh/nodepool" = ["*"]
            }
          }
        },
        # Instances are terminated. Those that Karpenter launched, and that a NodeClaim of the cluster adopts, lack joiner.sh/cluster-uid.
        {
          Sid      = "EndOwnInstances"
          Effect   = "Allow"
          Action   = ["ec2:TerminateInstances"]
          Resource = ["arn:${local.partition}:ec2:${local.region}:*:instance/*"]
          Condition = {
            StringEquals = {
              "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
            }
            StringLike = {
              "aws:ResourceTag/karpenter.sh/nodepool" = ["*"]
            }
          }
        },
        # Launch templates that nothing uses any more are deleted.
        {
          Sid      = "DeleteOwnLaunchTemplates"
          Effect   = "Allow"
          Action   = ["ec2:DeleteLaunchTemplate"]
          Resource = ["arn:${local.partition}:ec2:${local.region}:*:launch-template/*"]
          Condition = {
            StringEquals = {
              "aws:ResourceTag/eks:eks-cluster-name"                      = [var.cluster_name]
              "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
            }
            StringLike = {
              "aws:ResourceTag/joiner.sh/cluster-uid" = [local.cluster_uid]
              "aws:ResourceTag/karpenter.sh/nodepool" = ["*"]
            }
          }
        },
        # What carries the UID of another cluster belongs to that cluster, be its name the same. This statement is there only where the UID was given.
        {
          Sid    = "LeaveNamesakesAlone"
          Effect = "Deny"
          Action = [
            "ec2:CreateTags",
            "ec2:TerminateInstances",
          ]
          Resource = ["arn:${local.partition}:ec2:${local.region}:*:instance/*"]
          Condition = {
            Null = {
              "aws:ResourceTag/joiner.sh/cluster-uid" = ["false"]
            }
            StringNotEquals = {
              "aws:ResourceTag/joiner.sh/cluster-uid" = [local.cluster_uid]
            }
          }
        },
      ] : statement if var.cluster_uid != null || !contains(["LeaveNamesakesAlone"], statement.Sid)]
    }

    profiles = {
      Version = "2012-10-17"
      Statement = [
        # Nodes get these roles, and no others. EC2 goes by another name in China.
        {
          Sid      = "PassNodeRoles"
          Effect   = "Allow"
          Action   = ["iam:PassRole"]
          Resource = local.node_role_arns
          Condition = {
            StringEquals = {
              "iam:PassedToService" = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
            }
          }
        },
        # An EC2NodeClass that names a role gets an instance profile for it, under a path of the cluster's own.
        {
          Sid      = "MakeInstanceProfiles"
          Effect   = "Allow"
          Action   = ["iam:CreateInstanceProfile"]
          Resource = ["arn:${local.partition}:iam::${local.account_id}:instance-profile/karpenter/${local.region}/${var.cluster_name}/*"]
          Condition = {
            StringEquals = {
              "aws:RequestTag/eks:eks-cluster-name"                      = [var.cluster_name]
              "aws:RequestTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
              "aws:RequestTag/topology.kubernetes.io/region"             = [local.region]
            }
            StringLike = {
              "aws:RequestTag/joiner.sh/cluster-uid"          = [local.cluster_uid]
              "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass" = ["*"]
            }
          }
        },
        # Tagging a profile while it is created takes a permission of its own. A profile with the tags of another cluster is not tagged.
        {
          Sid      = "TagInstanceProfiles"
          Effect   = "Allow"
          Action   = ["iam:TagInstanceProfile"]
          Resource = ["arn:${local.partition}:iam::${local.account_id}:instance-profile/karpenter/${local.region}/${var.cluster_name}/*"]
          Condition = {
            StringEquals = {
              "aws:RequestTag/eks:eks-cluster-name"                      = [var.cluster_name]
              "aws:RequestTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
              "aws:RequestTag/topology.kubernetes.io/region"             = [local.region]
            }
            StringEqualsIfExists = {
              "aws:ResourceTag/eks:eks-cluster-name"                      = [var.cluster_name]
              "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
              "aws:ResourceTag/topology.kubernetes.io/region"             = [local.region]
            }
            StringLike = {
              "aws:RequestTag/joiner.sh/cluster-uid"          = [local.cluster_uid]
              "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass" = ["*"]
            }
            StringLikeIfExists = {
              "aws:ResourceTag/joiner.sh/cluster-uid" = [local.cluster_uid]
            }
          }
        },
        # The role goes into the profile; a profile that nothing uses any more is emptied and deleted.
        {
          Sid    = "ChangeOwnInstanceProfiles"
          Effect = "Allow"
          Action = [
            "iam:AddRoleToInstanceProfile",
            "iam:DeleteInstanceProfile",
            "iam:RemoveRoleFromInstanceProfile",
          ]
          Resource = ["arn:${local.partition}:iam::${local.account_id}:instance-profile/karpenter/${local.region}/${var.cluster_name}/*"]
          Condition = {
            StringEquals = {
              "aws:ResourceTag/eks:eks-cluster-name"                      = [var.cluster_name]
              "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
              "aws:ResourceTag/topology.kubernetes.io/region"             = [local.region]
            }
            StringLike = {
              "aws:ResourceTag/joiner.sh/cluster-uid"          = [local.cluster_uid]
              "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass" = ["*"]
            }
          }
        },
      ]
    }

    reading = {
      Version = "2012-10-17"
      Statement = [
        # Optional: whether instances can reach the API server, to explain why a node does not join. EC2 cannot restrict these by resource.
        {
          Sid    = "LookWhyNodesDoNotJoin"
          Effect = "Allow"
          Action = [
            "ec2:DescribeNatGateways",
            "ec2:DescribeRouteTables",
            "ec2:DescribeVpcAttribute",
            "ec2:DescribeVpcEndpoints",
          ]
          Resource = ["*"]
          Condition = {
            StringEquals = {
              "aws:RequestedRegion" = [local.region]
            }
          }
        },
        # Optional: what the cluster's own instances print while they boot, to explain why a node does not join.
        {
          Sid      = "ReadOwnConsoles"
          Effect   = "Allow"
          Action   = ["ec2:GetConsoleOutput"]
          Resource = ["arn:${local.partition}:ec2:${local.region}:*:instance/*"]
          Condition = {
            StringEquals = {
              "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = ["owned"]
            }
            StringLike = {
              "aws:ResourceTag/karpenter.sh/nodepool" = ["*"]
            }
          }
        },
        # Optional: which roles the cluster authorizes, to report a missing one before an instance is launched.
        {
          Sid    = "LookWhoMayJoin"
          Effect = "Allow"
          Action = [
            "eks:DescribeAccessEntry",
            "eks:ListAccessEntries",
          ]
          Resource = [
            "arn:${local.partition}:eks:${local.region}:${local.account_id}:cluster/${var.cluster_name}",
            "arn:${local.partition}:eks:${local.region}:${local.account_id}:access-entry/${var.cluster_name}/*",
          ]
        },
        # Optional: whom the roles of nodes trust, and which policies they have, where nodes that have them do not join.
        {
          Sid    = "LookAtNodeRoles"
          Effect = "Allow"
          Action = [
            "iam:GetRole",
            "iam:ListAttachedRolePolicies",
            "iam:ListRolePolicies",
          ]
          Resource = local.node_role_arns
        },
        # Types, zones, prices of spot, images, networks, reservations, placement groups, what the cluster has in the region, and what is wrong with it. EC2 cannot restrict these by resource.
        {
          Sid    = "ReadRegion"
          Effect = "Allow"
          Action = [
            "ec2:DescribeCapacityReservations",
            "ec2:DescribeImages",
            "ec2:DescribeInstanceStatus",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribePlacementGroups",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSpotPriceHistory",
            "ec2:DescribeSubnets",
          ]
          Resource = ["*"]
          Condition = {
            StringEquals = {
              "aws:RequestedRegion" = [local.region]
            }
          }
        },
        # AWS publishes the ids of its images there. Own parameters that EC2NodeClasses name have to be added.
        {
          Sid      = "ReadImageParameters"
          Effect   = "Allow"
          Action   = ["ssm:GetParameter"]
          Resource = concat(["arn:${local.partition}:ssm:${local.region}::parameter/aws/service/*"], var.ami_id_ssm_parameter_arns)
        },
        # On-demand prices. The Price List has no resources.
        {
          Sid      = "ReadPrices"
          Effect   = "Allow"
          Action   = ["pricing:GetProducts"]
          Resource = ["*"]
        },
        # The API server's address, the version, the VPC and the range of services' addresses.
        {
          Sid      = "ReadCluster"
          Effect   = "Allow"
          Action   = ["eks:DescribeCluster"]
          Resource = ["arn:${local.partition}:eks:${local.region}:${local.account_id}:cluster/${var.cluster_name}"]
        },
        # From which zones the cluster's traffic is shifted away: with --enable-zonal-shift. The action has no resources, and a condition of its own.
        {
          Sid      = "ReadZonalShifts"
          Effect   = "Allow"
          Action   = ["arc-zonal-shift:GetManagedResource"]
          Resource = ["*"]
          Condition = {
            StringEquals = {
              "arc-zonal-shift:ResourceIdentifier" = ["arn:${local.partition}:eks:${local.region}:${local.account_id}:cluster/${var.cluster_name}"]
            }
          }
        },
        # Whether the profile that an EC2NodeClass names is there and has a role; IAM looks for what is not there by its name alone.
        {
          Sid      = "ReadInstanceProfiles"
          Effect   = "Allow"
          Action   = ["iam:GetInstanceProfile"]
          Resource = ["arn:${local.partition}:iam::${local.account_id}:instance-profile/*"]
        },
        # Profiles that were left behind are found by the cluster's path.
        {
          Sid      = "ListInstanceProfiles"
          Effect   = "Allow"
          Action   = ["iam:ListInstanceProfiles"]
          Resource = ["*"]
        },
      ]
    }

    interruption = {
      Version = "2012-10-17"
      Statement = [
        # Interruption messages are read, processed and deleted. sqs:DeleteMessage covers batches, too.
        {
          Sid    = "HeedInterruptions"
          Effect = "Allow"
          Action = [
            "sqs:DeleteMessage",
            "sqs:GetQueueUrl",
            "sqs:ReceiveMessage",
          ]
          Resource = ["arn:${local.partition}:sqs:${local.region}:${local.account_id}:${local.queue_name}"]
        },
      ]
    }
  }
}
