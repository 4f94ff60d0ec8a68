package deploy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// schema is the schema of a resource type, from the provider's documentation:
// https://registry.terraform.io/providers/hashicorp/aws/latest/docs.
type schema struct {
	required, optional string            // names of arguments and blocks, separated by spaces
	computed           map[string]string // attributes that AWS or the provider sets: name → pattern of the value
}

// account is the AWS account in the identifiers that AWS would assign.
const account = "111122223333"

// schemas returns the schemas of the resource types that the modules use, by type. In computed attributes, {name}
// stands for the resource's name, {path} for its path and {address} for its Terraform address.
func schemas() map[string]schema {
	iam := func(kind string) string { return "arn:aws:iam::" + account + ":" + kind + "{path}{name}" }
	const entry = "arn:aws:eks:us-east-1:" + account + ":access-entry/{address}"
	return map[string]schema{
		"aws_cloudwatch_event_rule": {
			optional: "region name name_prefix schedule_expression event_bus_name event_pattern force_destroy description role_arn state tags",
			computed: map[string]string{"arn": "arn:aws:events:us-east-1:" + account + ":rule/{name}"},
		},
		"aws_cloudwatch_event_target": {required: "rule arn", optional: "region target_id event_bus_name input input_path role_arn"},
		"aws_ec2_tag":                 {required: "key resource_id value", optional: "region"},
		"aws_eks_access_entry": {
			required: "cluster_name principal_arn",
			optional: "region kubernetes_groups tags type user_name",
			computed: map[string]string{"access_entry_arn": entry},
		},
		"aws_eks_addon": {
			required: "addon_name cluster_name",
			optional: "region addon_version configuration_values pod_identity_association preserve resolve_conflicts_on_create resolve_conflicts_on_update service_account_role_arn tags",
		},
		"aws_eks_fargate_profile": {
			required: "cluster_name fargate_profile_name pod_execution_role_arn selector subnet_ids", optional: "region tags timeouts",
			computed: map[string]string{"arn": "arn:aws:eks:us-east-1:" + account + ":fargateprofile/{address}"},
		},
		"aws_eks_pod_identity_association": {
			required: "cluster_name namespace role_arn service_account", optional: "region disable_session_tags tags target_role_arn",
			computed: map[string]string{"association_id": "a-{address}"},
		},
		"aws_iam_instance_profile": {
			optional: "name name_prefix path role tags",
			computed: map[string]string{"arn": iam("instance-profile"), "id": "{name}", "unique_id": "AIPA-{address}"},
		},
		"aws_iam_policy": {
			required: "policy",
			optional: "delay_after_policy_creation_in_ms description name name_prefix path tags",
			computed: map[string]string{"arn": iam("policy")},
		},
		"aws_iam_role": {
			required: "assume_role_policy", optional: "description force_detach_policies max_session_duration name name_prefix path permissions_boundary tags",
			computed: map[string]string{"arn": iam("role"), "unique_id": "AROA-{address}"},
		},
		"aws_iam_role_policy_attachment": {required: "role policy_arn"},
		"aws_sqs_queue": {
			optional: "region name name_prefix message_retention_seconds visibility_timeout_seconds sqs_managed_sse_enabled kms_master_key_id kms_data_key_reuse_period_seconds policy tags",
			computed: map[string]string{
				"arn": "arn:aws:sqs:us-east-1:" + account + ":{name}",
				"url": "https://sqs.us-east-1.amazonaws.com/" + account + "/{name}",
			},
		},
		"aws_sqs_queue_policy": {required: "policy queue_url", optional: "region"},
		"helm_release": {
			required: "name chart",
			optional: "atomic create_namespace description max_history namespace repository skip_crds timeout upgrade_install values version wait set set_list set_sensitive",
		},
	}
}

// newResource checks the arguments of a resource, adds the computed attributes to arguments, and returns all of them.
func newResource(typ, address string, arguments map[string]cty.Value) (cty.Value, error) {
	s, ok := schemas()[typ]
	if !ok {
		return cty.NilVal, fmt.Errorf("hack/deploy/provider.go has no schema for type %s", typ)
	}
	required := strings.Fields(s.required)
	known := append(strings.Fields(s.optional), required...)
	for name := range arguments {
		if !slices.Contains(known, name) {
			return cty.NilVal, fmt.Errorf("an argument named %q is not expected", name)
		}
	}
	for _, name := range required {
		if v, ok := arguments[name]; !ok || v.IsNull() {
			return cty.NilVal, fmt.Errorf("the argument %q is required", name)
		}
	}
	text := func(name, fallback string) string {
		if v, ok := arguments[name]; ok && !v.IsNull() && v.Type() == cty.String {
			return v.AsString()
		}
		return fallback
	}
	if slices.Contains(known, "name_prefix") {
		name, prefix := text("name", ""), text("name_prefix", "")
		if (name == "") == (prefix == "") {
			return cty.NilVal, fmt.Errorf("name %q and name_prefix %q: set exactly one of them", name, prefix)
		}
		if name == "" {
			arguments["name"] = cty.StringVal(prefix + "2026") // 2026 stands for the time that the provider appends
		}
	}
	replacer := strings.NewReplacer("{name}", text("name", ""), "{path}", text("path", "/"), "{address}", address)
	for name, pattern := range s.computed {
		arguments[name] = cty.StringVal(replacer.Replace(pattern))
	}
	return cty.ObjectVal(arguments), nil
}
