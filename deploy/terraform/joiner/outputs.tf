# The controller.

output "iam_role_name" {
  description = "Name of the controller's role."
  value       = try(aws_iam_role.controller[0].name, null)
}

output "iam_role_arn" {
  description = "ARN of the controller's role."
  value       = try(aws_iam_role.controller[0].arn, null)
}

output "iam_role_unique_id" {
  description = "Unique ID of the controller's role."
  value       = try(aws_iam_role.controller[0].unique_id, null)
}

output "namespace" {
  description = "Namespace that Joiner is installed in."
  value       = var.namespace
}

output "service_account" {
  description = "Service account of Joiner's pods."
  value       = var.service_account
}

output "chart_values" {
  description = "Values of the chart, as YAML, for an installation without create_helm_release."
  value       = yamlencode(local.chart_values)
}

# The interruption queue.

output "queue_arn" {
  description = "ARN of the queue."
  value       = try(aws_sqs_queue.this[0].arn, null)
}

output "queue_name" {
  description = "Name of the queue, for the chart's settings.interruptionQueue."
  value       = try(aws_sqs_queue.this[0].name, null)
}

output "queue_url" {
  description = "URL of the queue."
  value       = try(aws_sqs_queue.this[0].url, null)
}

output "event_rules" {
  description = "The event rules, with all their attributes."
  value       = aws_cloudwatch_event_rule.this
}

# The nodes.

output "node_iam_role_name" {
  description = "Name of the node role, for spec.role of EC2NodeClasses."
  value       = try(aws_iam_role.node[0].name, null)
}

output "node_iam_role_arn" {
  description = "ARN of the node role."
  value       = try(aws_iam_role.node[0].arn, var.node_iam_role_arn)
}

output "node_iam_role_unique_id" {
  description = "Unique ID of the node role."
  value       = try(aws_iam_role.node[0].unique_id, null)
}

output "node_access_entry_arn" {
  description = "ARN of the nodes' access entry."
  value       = try(aws_eks_access_entry.node[0].access_entry_arn, null)
}

output "instance_profile_arn" {
  description = "ARN of the instance profile."
  value       = try(aws_iam_instance_profile.this[0].arn, null)
}

output "instance_profile_id" {
  description = "ID of the instance profile."
  value       = try(aws_iam_instance_profile.this[0].id, null)
}

output "instance_profile_name" {
  description = "Name of the instance profile, for spec.instanceProfile of EC2NodeClasses."
  value       = try(aws_iam_instance_profile.this[0].name, null)
}

output "instance_profile_unique" {
  description = "Unique ID of the instance profile."
  value       = try(aws_iam_instance_profile.this[0].unique_id, null)
}

# Fargate.

output "fargate_profile_arn" {
  description = "ARN of the Fargate profile."
  value       = try(aws_eks_fargate_profile.this[0].arn, null)
}

output "fargate_iam_role_arn" {
  description = "ARN of the pod execution role."
  value       = local.create_fargate_profile ? local.fargate_iam_role_arn : null
}

output "fargate_access_entry_arn" {
  description = "ARN of the pod execution role's access entry."
  value       = try(aws_eks_access_entry.fargate[0].access_entry_arn, null)
}

# For clusters without access entries. In aws-auth, an ARN with a path never matches, so these ARNs have none.

locals {
  aws_auth_names = {
    nodes   = try(aws_iam_role.node[0].name, reverse(split("/", var.node_iam_role_arn))[0], null)
    fargate = local.create_fargate_profile ? try(reverse(split("/", local.fargate_iam_role_arn))[0], null) : null
  }
  aws_auth_identities = {
    nodes = {
      username = "system:node:{{EC2PrivateDNSName}}"
      groups = concat(
        ["system:bootstrappers", "system:nodes"],
        var.access_entry_type == "EC2_WINDOWS" ? ["eks:kube-proxy-windows"] : [],
      )
    }
    fargate = {
      username = "system:node:{{SessionName}}"
      groups   = ["system:bootstrappers", "system:nodes", "system:node-proxier"]
    }
  }
}

output "aws_auth_roles" {
  description = "Items for mapRoles of kube-system/aws-auth, if the cluster's authentication mode is CONFIG_MAP. Add them where you manage that list; this module does not write it, because that would delete other items."
  value = [for kind, name in local.aws_auth_names : merge(
    { rolearn = "arn:${local.partition}:iam::${local.account_id}:role/${name}" }, local.aws_auth_identities[kind],
  ) if name != null]
}
