package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/permissions"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// Patterns of names that AWS and Kubernetes accept. They exclude * and ?, because these are wildcards in an IAM policy
// and would allow more than one name.
var (
	clusterPattern   = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)
	accountPattern   = regexp.MustCompile(`^[0-9]{12}$`)
	regionPattern    = regexp.MustCompile(`^[a-z]{2,5}(-[a-z]+)+-[0-9]{1,2}$`)
	uidPattern       = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	roleARNPattern   = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$`)
	rolePattern      = regexp.MustCompile(`^/?([\w+=,.@-]+/)*[\w+=,.@-]{1,64}$`)
	queuePattern     = regexp.MustCompile(`^[\w-]{1,80}$`)
	parameterPattern = regexp.MustCompile(`^/?([\w.-]+/)*[\w.-]+$`)
)

// scopeProblem returns an error about the first invalid value of a scope; nil if all are valid. The error names the
// flag of the value.
func scopeProblem(s permissions.Scope) error {
	switch {
	case s.Cluster == "":
		return errors.New("name the cluster: --cluster-name NAME")
	case !accountPattern.MatchString(s.Account):
		return invalidAccount(s.Account)
	case s.Region == "":
		return errors.New("name the region: --region REGION")
	}
	for _, flag := range []struct {
		name    string
		values  []string
		pattern *regexp.Regexp
		want    string
	}{
		{"cluster-name", []string{s.Cluster}, clusterPattern, "the name of one EKS cluster: letters, digits, - and _"},
		{"region", []string{s.Region}, regionPattern, "one region, for instance eu-west-1"},
		{"cluster-uid", asList(s.UID), uidPattern, "the UID of one cluster: kubectl get namespace kube-system -o jsonpath={.metadata.uid}"},
		{"node-role", s.NodeRoles, rolePattern, "the name of one role (no ARN, no wildcard), with its path in front, for instance /nodes/prod"},
		{"interruption-queue", asList(s.Queue), queuePattern, "the name of one queue (no ARN, no URL, no wildcard): letters, digits, - and _"},
		{"ssm-parameter", s.Parameters, parameterPattern, "the name of one parameter (no ARN, no wildcard), for instance /images/nodes"},
	} {
		for _, value := range flag.values {
			if !flag.pattern.MatchString(value) {
				return fmt.Errorf("--%s %q: want %s", flag.name, value, flag.want)
			}
		}
	}
	return partitionProblem(s)
}

func invalidAccount(id string) error {
	return fmt.Errorf("--account %q: want the 12 digits of the AWS account: aws sts get-caller-identity --query Account --output text", id)
}

func asList(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// partitionProblem returns an error if the partition is set and the region belongs to another partition.
func partitionProblem(s permissions.Scope) error {
	actual := permissions.PartitionOf(s.Region)
	switch {
	case s.Partition == "" || s.Partition == actual:
		return nil
	case !slices.Contains(permissions.Partitions(), s.Partition):
		return fmt.Errorf("--partition %q: want one of %s%s", s.Partition, strings.Join(permissions.Partitions(), ", "),
			suggest.Hint(s.Partition, permissions.Partitions()))
	}
	return fmt.Errorf("--partition %s: region %s belongs to %s; leave --partition out, or correct --region", s.Partition, s.Region, actual)
}
