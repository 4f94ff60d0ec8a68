# The queue and the event rules for events about instances that AWS will interrupt, stop or retire.

locals {
  enable_spot_termination = var.create && var.enable_spot_termination
  queue_name              = coalesce(var.queue_name, "Karpenter-${var.cluster_name}")
  # Also true for an existing queue.
  uses_queue = var.enable_spot_termination || var.queue_name != null

  # The events that Joiner processes. hack/deploy tests that this list is complete.
  events = {
    health_event = {
      name        = "HealthEvent"
      description = "AWS Health: instances will be stopped, moved or retired"
      event_pattern = {
        source      = ["aws.health"]
        detail-type = ["AWS Health Event"]
        detail      = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
      }
    }
    spot_interrupt = {
      name        = "SpotInterrupt"
      description = "A spot instance will be interrupted in two minutes"
      event_pattern = {
        source      = ["aws.ec2"]
        detail-type = ["EC2 Spot Instance Interruption Warning"]
      }
    }
    instance_rebalance = {
      name        = "InstanceRebalance"
      description = "A spot instance has an elevated risk of interruption"
      event_pattern = {
        source      = ["aws.ec2"]
        detail-type = ["EC2 Instance Rebalance Recommendation"]
      }
    }
    instance_state_change = {
      name        = "InstanceStateChange"
      description = "An instance is stopping, stopped or terminated"
      event_pattern = {
        source      = ["aws.ec2"]
        detail-type = ["EC2 Instance State-change Notification"]
        detail      = { state = ["stopping", "stopped", "shutting-down", "terminated"] }
      }
    }
    reservation_interrupt = {
      name        = "ReservationInterrupt"
      description = "The owner of a capacity reservation reclaims an instance"
      event_pattern = {
        source = ["aws.ec2"]
        detail-type = [
          "EC2 Capacity Reservation Instance Interruption Warning",
          "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
        ]
      }
    }
    capacity_block = {
      name        = "CapacityBlock"
      description = "A capacity block will end"
      event_pattern = {
        source      = ["aws.ec2"]
        detail-type = ["Capacity Block Reservation Expiration Warning"]
      }
    }
  }
}

resource "aws_sqs_queue" "this" {
  count = local.enable_spot_termination ? 1 : 0

  region = var.region

  name = local.queue_name
  # Messages older than five minutes are useless: a spot instance is interrupted after two.
  message_retention_seconds         = 300
  sqs_managed_sse_enabled           = var.queue_kms_master_key_id == null && var.queue_managed_sse_enabled ? true : null
  kms_master_key_id                 = var.queue_kms_master_key_id
  kms_data_key_reuse_period_seconds = var.queue_kms_data_key_reuse_period_seconds

  tags = var.tags
}

resource "aws_sqs_queue_policy" "this" {
  count = local.enable_spot_termination ? 1 : 0

  region = var.region

  queue_url = aws_sqs_queue.this[0].url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "TakeOwnRulesEvents"
        Effect    = "Allow"
        Action    = "sqs:SendMessage"
        Principal = { Service = "events.amazonaws.com" }
        Resource  = aws_sqs_queue.this[0].arn
        Condition = { ArnEquals = { "aws:SourceArn" = [for rule in aws_cloudwatch_event_rule.this : rule.arn] } }
      },
      {
        Sid       = "RefuseWhatIsNotEncrypted"
        Effect    = "Deny"
        Action    = "sqs:*"
        Principal = "*"
        Resource  = aws_sqs_queue.this[0].arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = { for key, event in local.events : key => event if local.enable_spot_termination }

  region = var.region

  name_prefix   = "${var.rule_name_prefix}${each.value.name}-"
  description   = each.value.description
  event_pattern = jsonencode(each.value.event_pattern)

  tags = merge({ ClusterName = var.cluster_name }, var.tags)
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = { for key, event in local.events : key => event if local.enable_spot_termination }

  region = var.region

  rule = aws_cloudwatch_event_rule.this[each.key].name
  # The ID in Karpenter's submodule: with another ID, Terraform would replace the targets of an existing installation.
  target_id = "KarpenterInterruptionQueueTarget"
  arn       = aws_sqs_queue.this[0].arn
}
