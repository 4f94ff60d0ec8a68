package emulator

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// ec2Actions returns the actions of EC2.
func ec2Actions() map[string]action {
	return map[string]action{
		"CreateFleet":                    checkedOp(createFleet),
		"RunInstances":                   checkedOp(runInstances),
		"DescribeInstances":              op(describeInstances),
		"DescribeInstanceStatus":         op(describeInstanceStatus),
		"TerminateInstances":             op(terminateInstances),
		"GetConsoleOutput":               op(getConsoleOutput),
		"CreateLaunchTemplate":           checkedOp(createLaunchTemplate),
		"DescribeLaunchTemplates":        op(describeLaunchTemplates),
		"DescribeLaunchTemplateVersions": op(describeLaunchTemplateVersions),
		"DeleteLaunchTemplate":           op(deleteLaunchTemplate),
		"DescribeInstanceTypes":          op(describeInstanceTypes),
		"DescribeInstanceTypeOfferings":  op(describeInstanceTypeOfferings),
		"DescribeSpotPriceHistory":       op(describeSpotPriceHistory),
		"DescribeImages":                 op(describeImages),
		"DescribeVpcs":                   op(describeVpcs),
		"DescribeSubnets":                op(describeSubnets),
		"DescribeSecurityGroups":         op(describeSecurityGroups),
		"DescribeRouteTables":            op(describeRouteTables),
		"DescribeVpcEndpoints":           op(describeVpcEndpoints),
		"DescribeVpcAttribute":           op(describeVpcAttribute),
		"ModifyVpcAttribute":             op(modifyVpcAttribute),
		"CreateDhcpOptions":              op(createDhcpOptions),
		"AssociateDhcpOptions":           op(associateDhcpOptions),
		"DescribeNetworkAcls":            op(describeNetworkAcls),
		"CreateNetworkAclEntry":          op(createNetworkAclEntry),
		"DescribeNatGateways":            op(describeNatGateways),
		"AuthorizeSecurityGroupEgress":   op(authorizeEgress),
		"AuthorizeSecurityGroupIngress":  op(authorizeIngress),
		"CreateRoute":                    op(createRoute),
		"ReplaceRoute":                   op(replaceRoute),
		"DescribeNetworkInterfaces":      op(describeNetworkInterfaces),
		"DescribeVolumes":                op(describeVolumes),
		"DescribeAvailabilityZones":      op(describeAvailabilityZones),
		"DescribeRegions":                op(describeRegions),
		"DescribeCapacityReservations":   op(describeCapacityReservations),
		"DescribePlacementGroups":        op(describePlacementGroups),
		"CreatePlacementGroup":           op(createPlacementGroup),
		"DeletePlacementGroup":           op(deletePlacementGroup),
		"CreateTags":                     op(createTags),
		"DeleteTags":                     op(deleteTags),
		"DescribeTags":                   op(describeTags),
	}
}

// tagging sorts the tags of a request by the kind of resource.
func tagging(specs []world.TagSpecification) (world.Tagging, error) {
	out := world.Tagging{}
	for _, s := range specs {
		if s.Resource == "" {
			return nil, &world.Error{Code: "MissingParameter", Message: "The request must contain the parameter TagSpecification.ResourceType"}
		}
		if out[s.Resource] == nil {
			out[s.Resource] = map[string]string{}
		}
		for _, t := range s.Tags {
			if strings.HasPrefix(t.Key, "aws:") {
				return nil, &world.Error{Code: "InvalidParameterValue", Message: "Tag keys starting with 'aws:' are reserved for internal use"}
			}
			out[s.Resource][t.Key] = t.Value
		}
	}
	return out, nil
}

// tagList writes tags as a list, sorted by key.
func tagList(tags map[string]string) []world.Tag {
	out := make([]world.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, world.Tag{Key: k, Value: tags[k]})
	}
	return out
}

// fingerprint returns a hash of the request's parameters, independent of their order.
func (c *call) fingerprint() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.form)) {
		if strings.HasPrefix(name, "X-Amz-") {
			continue
		}
		h.Write([]byte(name + "=" + strings.Join(c.form[name], ",") + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// or returns the text, or another one if it is empty.
func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// yesNo writes a condition as filters compare it.
func yesNo(b bool) []string {
	if b {
		return []string{"true"}
	}
	return []string{"false"}
}
