# A cluster in which Karpenter was installed with terraform-aws-modules/eks/aws//modules/karpenter. The block "karpenter" is your existing block,
# with the changes of deploy/terraform/README.md.

terraform {
  required_version = ">= 1.5.7"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0"
    }
  }
}

variable "cluster_name" {
  description = "Name of the cluster that has Karpenter."
  type        = string
}

variable "cluster_endpoint" {
  description = "URL of the cluster's API server."
  type        = string
}

variable "cluster_certificate_authority_data" {
  description = "Certificate authority of the cluster's API server, in base64."
  type        = string
}

variable "install" {
  description = "Whether to install Joiner. Set true after Karpenter is scaled to zero, and false before you go back to Karpenter."
  type        = bool
  default     = false
}

provider "helm" {
  kubernetes = {
    host                   = var.cluster_endpoint
    cluster_ca_certificate = base64decode(var.cluster_certificate_authority_data)
    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = "aws"
      args        = ["eks", "get-token", "--cluster-name", var.cluster_name]
    }
  }
}

module "karpenter" {
  # Before: source = "terraform-aws-modules/eks/aws//modules/karpenter", with a version.
  source = "../../joiner"

  cluster_name = var.cluster_name

  # As in your existing block: Karpenter's pods keep their role, so you can go back.
  service_account = "karpenter"
  node_iam_role_additional_policies = {
    AmazonSSMManagedInstanceCore = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
  }

  create_helm_release = var.install
  helm_values = [yamlencode({
    serviceAccount = { create = false }
  })]
}

output "node_iam_role_name" {
  description = "The role that EC2NodeClasses name. It is unchanged by the migration."
  value       = module.karpenter.node_iam_role_name
}

output "queue_name" {
  description = "The name of the queue. It is unchanged by the migration."
  value       = module.karpenter.queue_name
}
