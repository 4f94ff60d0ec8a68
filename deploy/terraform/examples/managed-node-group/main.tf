# A cluster with a small node group, on which Joiner runs. Joiner launches all other nodes.

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

variable "name" {
  description = "Name of the cluster and of its resources."
  type        = string
  default     = "joiner-example"
}

variable "region" {
  description = "Region of the cluster."
  type        = string
  default     = "eu-west-1"
}

variable "cluster_uid" {
  description = "UID of the kube-system namespace. It is known after the first apply: apply a second time with it."
  type        = string
  default     = null
}

provider "aws" {
  region = var.region
}

provider "helm" {
  kubernetes = {
    host                   = module.eks.cluster_endpoint
    cluster_ca_certificate = base64decode(module.eks.cluster_certificate_authority_data)
    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = "aws"
      args        = ["eks", "get-token", "--cluster-name", module.eks.cluster_name, "--region", var.region]
    }
  }
}

module "vpc" {
  source  = "terraform-aws-modules/vpc/aws"
  version = "~> 6.0"

  name = var.name
  cidr = "10.0.0.0/16"

  azs             = ["${var.region}a", "${var.region}b", "${var.region}c"]
  private_subnets = ["10.0.0.0/18", "10.0.64.0/18", "10.0.128.0/18"]
  public_subnets  = ["10.0.192.0/24", "10.0.193.0/24", "10.0.194.0/24"]

  enable_nat_gateway = true
  single_nat_gateway = true

  # EC2NodeClasses select the subnets by this tag.
  private_subnet_tags = { "karpenter.sh/discovery" = var.name }
}

module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 21.0"

  name               = var.name
  kubernetes_version = "1.33"

  vpc_id     = module.vpc.vpc_id
  subnet_ids = module.vpc.private_subnets

  endpoint_public_access                   = true
  enable_cluster_creator_admin_permissions = true

  addons = {
    coredns    = {}
    kube-proxy = {}
    vpc-cni    = { before_compute = true }
    # The agent that gives pods their roles.
    eks-pod-identity-agent = { before_compute = true }
  }

  eks_managed_node_groups = {
    system = {
      instance_types = ["m7g.large"]
      ami_type       = "AL2023_ARM_64_STANDARD"
      min_size       = 2
      max_size       = 2
      desired_size   = 2
    }
  }

  node_security_group_tags = { "karpenter.sh/discovery" = var.name }
}

module "joiner" {
  source = "../../joiner"

  cluster_name = module.eks.cluster_name
  cluster_uid  = var.cluster_uid

  node_iam_role_additional_policies = {
    # Allows a shell on nodes with Session Manager, without an SSH key or an open port.
    AmazonSSMManagedInstanceCore = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
  }

  create_helm_release = true
}

# To apply them: terraform output -raw manifests | kubectl apply -f -
output "manifests" {
  description = "An EC2NodeClass and a NodePool, as YAML."
  value = join("---\n", [
    yamlencode({
      apiVersion = "karpenter.k8s.aws/v1"
      kind       = "EC2NodeClass"
      metadata   = { name = "default" }
      spec = {
        role                       = module.joiner.node_iam_role_name
        amiSelectorTerms           = [{ alias = "al2023@latest" }]
        subnetSelectorTerms        = [{ tags = { "karpenter.sh/discovery" = var.name } }]
        securityGroupSelectorTerms = [{ tags = { "karpenter.sh/discovery" = var.name } }]
      }
    }),
    yamlencode({
      apiVersion = "karpenter.sh/v1"
      kind       = "NodePool"
      metadata   = { name = "default" }
      spec = {
        template = {
          spec = {
            nodeClassRef = { group = "karpenter.k8s.aws", kind = "EC2NodeClass", name = "default" }
            requirements = [
              { key = "karpenter.sh/capacity-type", operator = "In", values = ["spot", "on-demand"] },
              { key = "kubernetes.io/arch", operator = "In", values = ["amd64", "arm64"] },
              { key = "kubernetes.io/os", operator = "In", values = ["linux"] },
            ]
          }
        }
        limits = { cpu = "100" }
      }
    }),
  ])
}
