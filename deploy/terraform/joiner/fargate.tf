# A Fargate profile for Joiner's own pods. They must not run on nodes that Joiner launches, so a cluster without other nodes needs Fargate.

locals {
  create_fargate_profile      = var.create && var.create_fargate_profile
  create_fargate_iam_role     = local.create_fargate_profile && var.create_fargate_iam_role
  create_fargate_access_entry = local.create_fargate_profile && var.create_fargate_access_entry

  fargate_iam_role_arn = var.create_fargate_iam_role ? try(aws_iam_role.fargate[0].arn, null) : var.fargate_iam_role_arn
  fargate_selectors = var.fargate_selectors != null ? var.fargate_selectors : [
    { namespace = var.namespace, labels = { "app.kubernetes.io/name" = "joiner" } },
  ]
}

# The role with which Fargate registers the pods' nodes. It must not be the node role.
resource "aws_iam_role" "fargate" {
  count = local.create_fargate_iam_role ? 1 : 0

  name        = var.fargate_iam_role_use_name_prefix ? null : var.fargate_iam_role_name
  name_prefix = var.fargate_iam_role_use_name_prefix ? "${var.fargate_iam_role_name}-" : null
  description = "Fargate runs Joiner's pods in cluster ${var.cluster_name}"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "FargatePods"
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "eks-fargate-pods.amazonaws.com" }
      Condition = {
        ArnLike = { "aws:SourceArn" = "arn:${local.partition}:eks:${local.region}:${local.account_id}:fargateprofile/${var.cluster_name}/*" }
      }
    }]
  })
  permissions_boundary  = var.fargate_iam_role_permissions_boundary
  force_detach_policies = true

  tags = var.tags
}

resource "aws_iam_role_policy_attachment" "fargate" {
  count = local.create_fargate_iam_role ? 1 : 0

  role       = aws_iam_role.fargate[0].name
  policy_arn = "${local.managed_policies}/AmazonEKSFargatePodExecutionRolePolicy"
}

# Without this entry, Fargate reports "Pod execution role is not found in auth config", and the pods stay Pending. EKS itself grants access
# only when it creates the profile. Terraform also restores a lost entry.
resource "aws_eks_access_entry" "fargate" {
  count = local.create_fargate_access_entry ? 1 : 0

  region = var.region

  cluster_name  = var.cluster_name
  principal_arn = local.fargate_iam_role_arn
  type          = "FARGATE_LINUX"

  tags = var.tags
}

resource "aws_eks_fargate_profile" "this" {
  count = local.create_fargate_profile ? 1 : 0

  region = var.region

  cluster_name           = var.cluster_name
  fargate_profile_name   = var.fargate_profile_name
  pod_execution_role_arn = local.fargate_iam_role_arn
  subnet_ids             = var.fargate_subnet_ids

  dynamic "selector" {
    for_each = local.fargate_selectors

    content {
      namespace = selector.value.namespace
      labels    = selector.value.labels
    }
  }

  tags = var.tags

  # The access entry is created first. Otherwise EKS creates an entry for the role, and the creation of this one fails.
  depends_on = [aws_eks_access_entry.fargate, aws_iam_role_policy_attachment.fargate]

  lifecycle {
    precondition {
      condition     = !local.create_iam_role || (var.enable_irsa && !var.create_pod_identity_association)
      error_message = "Pod Identity does not work on Fargate: set enable_irsa = true, irsa_oidc_provider_arn, and create_pod_identity_association = false."
    }
    precondition {
      condition     = length(var.fargate_subnet_ids) > 0
      error_message = "A Fargate profile needs private subnets: set fargate_subnet_ids."
    }
    precondition {
      condition     = var.create_fargate_iam_role || var.fargate_iam_role_arn != null
      error_message = "With create_fargate_iam_role = false, set fargate_iam_role_arn."
    }
  }
}
