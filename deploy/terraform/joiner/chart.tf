locals {
  create_helm_release = var.create && var.create_helm_release

  chart_values = {
    settings = {
      clusterName       = var.cluster_name
      interruptionQueue = local.uses_queue ? local.queue_name : ""
    }
    serviceAccount = {
      name        = var.service_account
      annotations = { for name, arn in { "eks.amazonaws.com/role-arn" = try(aws_iam_role.controller[0].arn, null) } : name => arn if var.enable_irsa && arn != null }
    }
    controller = {
      # The SDK would read the region from instance metadata, which Fargate does not have and which pods cannot reach if the hop limit is one.
      env = [{ name = "AWS_REGION", value = local.region }]
    }
    # The pods must not need cluster DNS, which may itself wait for a node that Joiner launches.
    dnsPolicy = "Default"
  }
}

resource "helm_release" "joiner" {
  count = local.create_helm_release ? 1 : 0

  name             = "joiner"
  namespace        = var.namespace
  create_namespace = var.namespace != "kube-system"

  chart      = coalesce(var.helm_chart, "${path.module}/../../charts/joiner")
  repository = var.helm_repository
  version    = var.helm_version
  timeout    = var.helm_timeout

  values = concat([yamlencode(local.chart_values)], var.helm_values)

  # A pod created before the Fargate profile is active never runs on Fargate. A pod created before its
  # association with the role has no permissions.
  depends_on = [
    aws_eks_access_entry.node,
    aws_eks_fargate_profile.this,
    aws_eks_pod_identity_association.controller,
    aws_iam_role_policy_attachment.controller,
    aws_iam_role_policy_attachment.controller_additional,
    aws_iam_role_policy_attachment.node,
    aws_sqs_queue_policy.this,
  ]
}
