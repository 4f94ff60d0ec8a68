# Written from package permissions: go test ./internal/permissions -run TestFiles -rewrite
# Each statement is explained in docs/guides/iam.md.

locals {
  controller_policies = {
    launch = {
      Version = "2012-10-17"
      Statement = [for statement in [
        # A launch uses an image, a subnet and security groups that other tools own; a launch does not change them. CreateFleet calls RunInstances on behalf of the controller, and a dry run of the controller calls it directly.
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
        # Instances are launched only from the controller's own launch templates.
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
        # Every new resource has the cluster's tags from its creation on.
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
        # Tagging a resource during its creation needs a separate permission.
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
        # An instance gets the name of its Node after the Node has joined. No other tags of existing instances can be changed.
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
        # The controller terminates its instances. Those that Karpenter launched have no tag joiner.sh/cluster-uid, so the statement does not require the tag.
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
        # The controller deletes its launch templates that are no longer used.
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
        # Resources with the UID of another cluster belong to that cluster, even if both clusters have the same name. The policy has this statement only if the UID was given.
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
        # Instances get only node roles. EC2's service name differs in China.
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
        # The controller creates an instance profile for the role of an EC2NodeClass, under the path of the cluster.
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
        # Tagging a profile during its creation needs a separate permission. Profiles with the tags of another cluster cannot be tagged.
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
        # The controller adds the role to the profile. It removes the role and deletes the profile when no EC2NodeClass uses the profile.
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
        # Optional: the controller checks whether instances can reach the API server, to explain why a node does not join. EC2 cannot restrict these actions to resources.
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
        # Optional: the controller reads the console output of the cluster's instances, to explain why a node does not join.
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
        # Optional: the controller reads which roles have access to the cluster, to report a missing role before a launch.
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
        # Optional: the controller reads the trust policies of the node roles and the names of their policies when nodes with these roles do not join.
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
        # The controller reads instance types, zones, spot prices, images, networks, reservations, placement groups, the cluster's launch templates, and its instances with their status. EC2 cannot restrict these actions to resources.
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
        # AWS publishes the IDs of its images in these parameters. Add your own parameters that an EC2NodeClass names.
        {
          Sid      = "ReadImageParameters"
          Effect   = "Allow"
          Action   = ["ssm:GetParameter"]
          Resource = concat(["arn:${local.partition}:ssm:${local.region}::parameter/aws/service/*"], var.ami_id_ssm_parameter_arns)
        },
        # The controller reads on-demand prices. The Price List API has no resources to restrict the statement to.
        {
          Sid      = "ReadPrices"
          Effect   = "Allow"
          Action   = ["pricing:GetProducts"]
          Resource = ["*"]
        },
        # The controller reads the API server's address, the Kubernetes version, the VPC and the address range of Services.
        {
          Sid      = "ReadCluster"
          Effect   = "Allow"
          Action   = ["eks:DescribeCluster"]
          Resource = ["arn:${local.partition}:eks:${local.region}:${local.account_id}:cluster/${var.cluster_name}"]
        },
        # With --enable-zonal-shift, the controller reads which zones have a zonal shift of the cluster. The action has no resources; its condition key restricts it to the cluster.
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
        # The controller checks whether the profile of an EC2NodeClass exists and has a role. For a missing profile, IAM does not know the path, so the statement allows all paths.
        {
          Sid      = "ReadInstanceProfiles"
          Effect   = "Allow"
          Action   = ["iam:GetInstanceProfile"]
          Resource = ["arn:${local.partition}:iam::${local.account_id}:instance-profile/*"]
        },
        # The controller finds unused profiles under the cluster's path.
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
        # The controller reads, processes and deletes interruption messages. sqs:DeleteMessage also allows batches.
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
