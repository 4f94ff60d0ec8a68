package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// ec2Actions returns the EC2 actions that Joiner calls. The user may set a rate limit for each.
func ec2Actions() []string {
	return []string{
		"CreateFleet", "CreateLaunchTemplate", "CreateTags", "DeleteLaunchTemplate", "DeleteTags", "DescribeCapacityReservations",
		"DescribeImages",
		"DescribeInstanceStatus", "DescribeInstanceTypeOfferings", "DescribeInstanceTypes", "DescribeInstances", "DescribeLaunchTemplates",
		"DescribeNatGateways", "DescribeNetworkAcls", "DescribePlacementGroups", "DescribeRouteTables", "DescribeSecurityGroups",
		"DescribeSpotPriceHistory", "DescribeSubnets", "DescribeVpcAttribute", "DescribeVpcEndpoints", "GetConsoleOutput", "RunInstances",
		"TerminateInstances",
	}
}

// rates returns a parser of rate limits: ACTION=BURST:RATE_PER_SECOND, separated by commas. ACTION may be a pattern of
// path.Match. A limit that matches no action of ec2Actions is an error.
func rates(to *map[string]Rate) func(string) error {
	return func(s string) error {
		out := map[string]Rate{}
		for _, limit := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) {
			action, numbers, _ := strings.Cut(strings.TrimSpace(limit), "=")
			burst, perSecond, _ := strings.Cut(numbers, ":")
			var r Rate
			if _, err := path.Match(action, ""); err != nil || action == "" ||
				rate(&r.Burst)(burst) != nil || r.Burst < 1 || rate(&r.PerSecond)(perSecond) != nil {
				return fmt.Errorf("want ACTION=BURST:RATE_PER_SECOND in place of %q, for instance CreateFleet=100:20", limit)
			}
			matches := func(name string) bool { ok, _ := path.Match(action, name); return ok }
			if !slices.ContainsFunc(ec2Actions(), matches) {
				return fmt.Errorf("no EC2 action of Joiner matches %s%s", action, suggest.Hint(action, ec2Actions()))
			}
			if before, isListed := out[action]; isListed && before != r {
				return fmt.Errorf("%s is listed twice with different limits: remove one", action)
			}
			out[action] = r
		}
		*to = out
		return nil
	}
}
