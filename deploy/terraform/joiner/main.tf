data "aws_caller_identity" "current" {
  count = var.create ? 1 : 0
}

data "aws_partition" "current" {
  count = var.create ? 1 : 0
}

data "aws_region" "current" {
  count = var.create ? 1 : 0

  region = var.region
}

locals {
  account_id = try(data.aws_caller_identity.current[0].account_id, "")
  partition  = try(data.aws_partition.current[0].partition, "")
  dns_suffix = try(data.aws_partition.current[0].dns_suffix, "")
  region     = try(data.aws_region.current[0].region, "")

  cluster_arn = "arn:${local.partition}:eks:${local.region}:${local.account_id}:cluster/${var.cluster_name}"
  # Without a UID, the policies require the tag joiner.sh/cluster-uid with any value.
  cluster_uid = coalesce(var.cluster_uid, "*")

  managed_policies = "arn:${local.partition}:iam::aws:policy"
}
