# The cluster.

variable "create" {
  description = "Whether to create any resources."
  type        = bool
  default     = true
}

variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string

  validation {
    condition     = can(regex("^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$", var.cluster_name))
    error_message = "The name of an EKS cluster has 1 to 100 letters, digits, hyphens and underscores."
  }
}

variable "cluster_uid" {
  description = "UID of the cluster's kube-system namespace. If set, IAM policies isolate two clusters with the same name in one account and region. Without it, only the controller checks the UID."
  type        = string
  default     = null

  validation {
    condition     = var.cluster_uid == null || can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", var.cluster_uid))
    error_message = "Must be a UID such as 11111111-2222-3333-4444-555555555555: kubectl get namespace kube-system -o jsonpath={.metadata.uid}"
  }
}

variable "cluster_ip_family" {
  description = "IP family of the cluster, ipv4 or ipv6. With ipv6 a policy AmazonEKS_CNI_IPv6_Policy must exist in the account."
  type        = string
  default     = "ipv4"

  validation {
    condition     = contains(["ipv4", "ipv6"], var.cluster_ip_family)
    error_message = "Must be ipv4 or ipv6."
  }
}

variable "region" {
  description = "Region of the cluster. By default, the region of the provider."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags for all resources."
  type        = map(string)
  default     = {}
}

# The controller's role.

variable "create_iam_role" {
  description = "Whether to create the controller's role."
  type        = bool
  default     = true
}

variable "iam_role_name" {
  description = "Name of the controller's role."
  type        = string
  default     = "KarpenterController"
}

variable "iam_role_use_name_prefix" {
  description = "Whether iam_role_name is a prefix, to which a random suffix is added."
  type        = bool
  default     = true
}

variable "iam_role_path" {
  description = "Path of the controller's role."
  type        = string
  default     = "/"
}

variable "iam_role_description" {
  description = "Description of the controller's role."
  type        = string
  default     = "Joiner controller"
}

variable "iam_role_max_session_duration" {
  description = "Maximum session duration of the controller's role, in seconds, from 3600 to 43200."
  type        = number
  default     = null
}

variable "iam_role_permissions_boundary_arn" {
  description = "ARN of the permissions boundary of the controller's role."
  type        = string
  default     = null
}

variable "iam_role_tags" {
  description = "Additional tags for the controller's role."
  type        = map(string)
  default     = {}
}

variable "iam_role_policies" {
  description = "Additional policies for the controller's role: a map from a name of your choice to the policy's ARN."
  type        = map(string)
  default     = {}
}

variable "iam_policy_name" {
  description = "Prefix of the names of the controller's policies."
  type        = string
  default     = "KarpenterController"
}

variable "iam_policy_use_name_prefix" {
  description = "Whether to add a random suffix to the names of the policies."
  type        = bool
  default     = true
}

variable "iam_policy_path" {
  description = "Path of the controller's policies."
  type        = string
  default     = "/"
}

variable "iam_policy_description" {
  description = "Description of the controller's policies."
  type        = string
  default     = "Joiner controller policy"
}

variable "ami_id_ssm_parameter_arns" {
  description = "ARNs of your own Systems Manager parameters by which EC2NodeClasses select images."
  type        = list(string)
  default     = []
}

# How pods get the role.

variable "namespace" {
  description = "Namespace that Joiner is installed in."
  type        = string
  default     = "kube-system"
}

variable "service_account" {
  description = "Service account of Joiner's pods."
  type        = string
  default     = "joiner"
}

variable "enable_pod_identity" {
  description = "Whether the role trusts EKS Pod Identity."
  type        = bool
  default     = true
}

variable "create_pod_identity_association" {
  description = "Whether to create the Pod Identity association between the role and the service account. Needs the add-on eks-pod-identity-agent; does not work on Fargate."
  type        = bool
  default     = true
}

variable "enable_irsa" {
  description = "Whether the role trusts the service account by the cluster's OIDC provider. Required on Fargate."
  type        = bool
  default     = false
}

variable "irsa_oidc_provider_arn" {
  description = "ARN of the cluster's OIDC provider, for enable_irsa."
  type        = string
  default     = ""
}

variable "irsa_namespace_service_accounts" {
  description = "Service accounts that may assume the role, as namespace:name. By default, only the service account of Joiner's pods."
  type        = list(string)
  default     = null
}

variable "irsa_assume_role_condition_test" {
  description = "Operator that compares the service account in the trust policy: StringEquals or StringLike."
  type        = string
  default     = "StringEquals"

  validation {
    condition     = contains(["StringEquals", "StringLike"], var.irsa_assume_role_condition_test)
    error_message = "Must be StringEquals or StringLike."
  }
}

# The interruption queue.

variable "enable_spot_termination" {
  description = "Whether to create a queue and event rules for interruption events: spot, health, capacity reservations and stopped instances."
  type        = bool
  default     = true
}

variable "queue_name" {
  description = "Name of the queue. By default, Karpenter-<cluster_name>. With enable_spot_termination = false, the name of an existing queue."
  type        = string
  default     = null
}

variable "queue_managed_sse_enabled" {
  description = "Whether SQS encrypts messages with SQS-managed keys if queue_kms_master_key_id is not set."
  type        = bool
  default     = true
}

variable "queue_kms_master_key_id" {
  description = "KMS key that encrypts messages. The key's policy must allow events.amazonaws.com and the controller's role to use it."
  type        = string
  default     = null
}

variable "queue_kms_data_key_reuse_period_seconds" {
  description = "How long SQS uses a data key before it asks KMS again, in seconds."
  type        = number
  default     = null
}

variable "rule_name_prefix" {
  description = "Prefix of the names of the event rules."
  type        = string
  default     = "Karpenter"
}

# The node role.

variable "create_node_iam_role" {
  description = "Whether to create the node role."
  type        = bool
  default     = true
}

variable "node_iam_role_arn" {
  description = "ARN of an existing node role, if create_node_iam_role is false."
  type        = string
  default     = null
}

variable "additional_node_iam_role_arns" {
  description = "ARNs of additional roles that EC2NodeClasses may name."
  type        = list(string)
  default     = []
}

variable "node_iam_role_name" {
  description = "Name of the node role. By default, Karpenter-<cluster_name>."
  type        = string
  default     = null
}

variable "node_iam_role_use_name_prefix" {
  description = "Whether node_iam_role_name is a prefix, to which a random suffix is added."
  type        = bool
  default     = true
}

variable "node_iam_role_path" {
  description = "Path of the node role."
  type        = string
  default     = "/"
}

variable "node_iam_role_description" {
  description = "Description of the node role."
  type        = string
  default     = null
}

variable "node_iam_role_max_session_duration" {
  description = "Maximum session duration of the node role, in seconds, from 3600 to 43200."
  type        = number
  default     = null
}

variable "node_iam_role_permissions_boundary" {
  description = "ARN of the permissions boundary of the node role."
  type        = string
  default     = null
}

variable "node_iam_role_attach_cni_policy" {
  description = "Whether to attach the policy for the VPC CNI to the node role. If false, give aws-node its own role, or nodes do not become ready."
  type        = bool
  default     = true
}

variable "node_iam_role_additional_policies" {
  description = "Additional policies for the node role: a map from a name of your choice to the policy's ARN."
  type        = map(string)
  default     = {}
}

variable "node_iam_role_tags" {
  description = "Additional tags for the node role."
  type        = map(string)
  default     = {}
}

variable "create_access_entry" {
  description = "Whether to create an access entry, with which nodes can join. Set false if the role has an access entry already, or if the cluster's authentication mode is CONFIG_MAP: see output aws_auth_roles."
  type        = bool
  default     = true
}

variable "access_entry_type" {
  description = "Type of the nodes' access entry: EC2_LINUX or EC2_WINDOWS."
  type        = string
  default     = "EC2_LINUX"

  validation {
    condition     = contains(["EC2_LINUX", "EC2_WINDOWS"], var.access_entry_type)
    error_message = "The type for nodes is EC2_LINUX or EC2_WINDOWS. The pod execution role has a separate entry: create_fargate_access_entry."
  }
}

variable "create_instance_profile" {
  description = "Whether to create an instance profile, for EC2NodeClasses that name one in spec.instanceProfile."
  type        = bool
  default     = false
}

# Fargate.

variable "create_fargate_profile" {
  description = "Whether to create a Fargate profile that runs Joiner's pods."
  type        = bool
  default     = false
}

variable "fargate_profile_name" {
  description = "Name of the Fargate profile."
  type        = string
  default     = "joiner"
}

variable "fargate_subnet_ids" {
  description = "Private subnets for the pods, with a route to ECR, STS, EC2, EKS, SSM and SQS."
  type        = list(string)
  default     = []
}

variable "fargate_selectors" {
  description = "Which pods the profile runs. By default, the pods in Joiner's namespace that have the label app.kubernetes.io/name: joiner."
  type = list(object({
    namespace = string
    labels    = optional(map(string))
  }))
  default = null
}

variable "create_fargate_iam_role" {
  description = "Whether to create the pod execution role."
  type        = bool
  default     = true
}

variable "fargate_iam_role_arn" {
  description = "ARN of an existing pod execution role, if create_fargate_iam_role is false. It must not be the node role."
  type        = string
  default     = null
}

variable "fargate_iam_role_name" {
  description = "Name of the pod execution role."
  type        = string
  default     = "JoinerFargate"
}

variable "fargate_iam_role_use_name_prefix" {
  description = "Whether fargate_iam_role_name is a prefix, to which a random suffix is added."
  type        = bool
  default     = true
}

variable "fargate_iam_role_permissions_boundary" {
  description = "ARN of the permissions boundary of the pod execution role."
  type        = string
  default     = null
}

variable "create_fargate_access_entry" {
  description = "Whether to create an access entry FARGATE_LINUX for the pod execution role. Set false if the role has one already, or if the authentication mode is CONFIG_MAP."
  type        = bool
  default     = true
}

# The chart.

variable "create_helm_release" {
  description = "Whether to install the chart. The helm provider must be configured for the cluster."
  type        = bool
  default     = false
}

variable "helm_chart" {
  description = "The chart: a folder, a file or a name. By default, the chart in the same checkout as this module."
  type        = string
  default     = null
}

variable "helm_repository" {
  description = "Repository of the chart, if helm_chart is a name."
  type        = string
  default     = null
}

variable "helm_version" {
  description = "Version of the chart, if it comes from a repository."
  type        = string
  default     = null
}

variable "helm_timeout" {
  description = "How long the installation waits for ready pods, in seconds. Nodes or Fargate may still be starting."
  type        = number
  default     = 600
}

variable "helm_values" {
  description = "Additional values, as YAML. They take precedence over the values that this module sets, and later items over earlier ones. Helm replaces lists and does not merge them."
  type        = list(string)
  default     = []
}
