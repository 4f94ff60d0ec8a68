// Package ec2 serves the actions of EC2 from the emulated world.
//
// In: a call with its parameters as a struct.
// Out: the answer as a struct with the names of EC2's API, or EC2's error.
// Never: HTTP, or the state and the rules of EC2: package world has them.
package ec2

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
)

// Actions returns the actions of EC2.
func Actions() map[string]api.Action {
	return map[string]api.Action{
		"CreateFleet":                    api.OpWithDryRun(createFleet),
		"RunInstances":                   api.OpWithDryRun(runInstances),
		"DescribeInstances":              api.Op(describeInstances),
		"DescribeInstanceStatus":         api.Op(describeInstanceStatus),
		"TerminateInstances":             api.Op(terminateInstances),
		"GetConsoleOutput":               api.Op(getConsoleOutput),
		"CreateLaunchTemplate":           api.OpWithDryRun(createLaunchTemplate),
		"DescribeLaunchTemplates":        api.Op(describeLaunchTemplates),
		"DescribeLaunchTemplateVersions": api.Op(describeLaunchTemplateVersions),
		"DeleteLaunchTemplate":           api.Op(deleteLaunchTemplate),
		"DescribeInstanceTypes":          api.Op(describeInstanceTypes),
		"DescribeInstanceTypeOfferings":  api.Op(describeInstanceTypeOfferings),
		"DescribeSpotPriceHistory":       api.Op(describeSpotPriceHistory),
		"DescribeImages":                 api.Op(describeImages),
		"DescribeVpcs":                   api.Op(describeVpcs),
		"DescribeSubnets":                api.Op(describeSubnets),
		"DescribeSecurityGroups":         api.Op(describeSecurityGroups),
		"DescribeRouteTables":            api.Op(describeRouteTables),
		"DescribeVpcEndpoints":           api.Op(describeVpcEndpoints),
		"DescribeVpcAttribute":           api.Op(describeVpcAttribute),
		"ModifyVpcAttribute":             api.Op(modifyVpcAttribute),
		"CreateDhcpOptions":              api.Op(createDhcpOptions),
		"AssociateDhcpOptions":           api.Op(associateDhcpOptions),
		"DescribeNetworkAcls":            api.Op(describeNetworkAcls),
		"CreateNetworkAclEntry":          api.Op(createNetworkAclEntry),
		"DescribeNatGateways":            api.Op(describeNatGateways),
		"AuthorizeSecurityGroupEgress":   api.Op(authorizeEgress),
		"AuthorizeSecurityGroupIngress":  api.Op(authorizeIngress),
		"CreateRoute":                    api.Op(createRoute),
		"ReplaceRoute":                   api.Op(replaceRoute),
		"DescribeNetworkInterfaces":      api.Op(describeNetworkInterfaces),
		"DescribeVolumes":                api.Op(describeVolumes),
		"DescribeAvailabilityZones":      api.Op(describeAvailabilityZones),
		"DescribeRegions":                api.Op(describeRegions),
		"DescribeCapacityReservations":   api.Op(describeCapacityReservations),
		"DescribePlacementGroups":        api.Op(describePlacementGroups),
		"CreatePlacementGroup":           api.Op(createPlacementGroup),
		"DeletePlacementGroup":           api.Op(deletePlacementGroup),
		"CreateTags":                     api.Op(createTags),
		"DeleteTags":                     api.Op(deleteTags),
		"DescribeTags":                   api.Op(describeTags),
	}
}
