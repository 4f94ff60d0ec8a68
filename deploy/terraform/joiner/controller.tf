# The role of Joiner's pods. It differs from the node role, and needs no access entry in the cluster.

locals {
  create_iam_role                 = var.create && var.create_iam_role
  create_pod_identity_association = local.create_iam_role && var.create_pod_identity_association

  # The part of the provider's ARN after oidc-provider/ is the issuer without https://.
  irsa_issuer           = try(split(":oidc-provider/", var.irsa_oidc_provider_arn)[1], "")
  irsa_service_accounts = var.irsa_namespace_service_accounts != null ? var.irsa_namespace_service_accounts : ["${var.namespace}:${var.service_account}"]

  pod_identity_trust = {
    Sid       = "PodIdentity"
    Effect    = "Allow"
    Action    = ["sts:AssumeRole", "sts:TagSession"]
    Principal = { Service = "pods.eks.amazonaws.com" }
    Condition = {
      StringEquals = {
        "aws:RequestTag/eks-cluster-arn"            = local.cluster_arn
        "aws:RequestTag/kubernetes-namespace"       = var.namespace
        "aws:RequestTag/kubernetes-service-account" = var.service_account
      }
    }
  }

  irsa_trust = {
    Sid       = "ServiceAccount"
    Effect    = "Allow"
    Action    = ["sts:AssumeRoleWithWebIdentity"]
    Principal = { Federated = var.irsa_oidc_provider_arn }
    Condition = {
      (var.irsa_assume_role_condition_test) = {
        "${local.irsa_issuer}:aud" = "sts.amazonaws.com"
        "${local.irsa_issuer}:sub" = [for account in local.irsa_service_accounts : "system:serviceaccount:${account}"]
      }
    }
  }
}

resource "aws_iam_role" "controller" {
  count = local.create_iam_role ? 1 : 0

  name        = var.iam_role_use_name_prefix ? null : var.iam_role_name
  name_prefix = var.iam_role_use_name_prefix ? "${var.iam_role_name}-" : null
  path        = var.iam_role_path
  description = var.iam_role_description

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [for trust in [local.pod_identity_trust] : trust if var.enable_pod_identity],
      [for trust in [local.irsa_trust] : trust if var.enable_irsa],
    )
  })
  max_session_duration  = var.iam_role_max_session_duration
  permissions_boundary  = var.iam_role_permissions_boundary_arn
  force_detach_policies = true

  tags = merge(var.tags, var.iam_role_tags)

  lifecycle {
    precondition {
      condition     = var.enable_irsa || var.enable_pod_identity
      error_message = "No pod could assume the controller's role: set enable_pod_identity or enable_irsa to true."
    }
    precondition {
      condition     = !var.enable_irsa || strcontains(var.irsa_oidc_provider_arn, ":oidc-provider/")
      error_message = "With enable_irsa, irsa_oidc_provider_arn must be the ARN of the cluster's OIDC provider, such as module.eks.oidc_provider_arn."
    }
  }
}

resource "aws_iam_policy" "controller" {
  for_each = toset([for name in keys(local.controller_policies) : name if local.create_iam_role && (name != "interruption" || local.uses_queue)])

  name        = var.iam_policy_use_name_prefix ? null : "${var.iam_policy_name}-${each.key}"
  name_prefix = var.iam_policy_use_name_prefix ? "${var.iam_policy_name}-${each.key}-" : null
  path        = var.iam_policy_path
  description = "${var.iam_policy_description}: ${each.key}"
  policy      = jsonencode(local.controller_policies[each.key])

  tags = var.tags

  lifecycle {
    precondition {
      condition     = length(local.node_role_arns) > 0
      error_message = "There is no node role: with create_node_iam_role = false, set node_iam_role_arn."
    }
  }
}

resource "aws_iam_role_policy_attachment" "controller" {
  for_each = aws_iam_policy.controller

  role       = aws_iam_role.controller[0].name
  policy_arn = each.value.arn
}

resource "aws_iam_role_policy_attachment" "controller_additional" {
  for_each = { for name, arn in var.iam_role_policies : name => arn if local.create_iam_role }

  role       = aws_iam_role.controller[0].name
  policy_arn = each.value
}

resource "aws_eks_pod_identity_association" "controller" {
  count = local.create_pod_identity_association ? 1 : 0

  region = var.region

  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller[0].arn

  tags = var.tags

  lifecycle {
    precondition {
      condition     = var.enable_pod_identity
      error_message = "A Pod Identity association has no effect for a role that does not trust Pod Identity: set create_pod_identity_association = false, or enable_pod_identity = true."
    }
  }
}

# Karpenter's submodule names the association karpenter. Without this block, Terraform would replace it.
moved {
  from = aws_eks_pod_identity_association.karpenter
  to   = aws_eks_pod_identity_association.controller
}
