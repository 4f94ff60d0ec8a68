package gc

import (
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
)

// TestFindings: each open breaker, each other cluster with our name, and the instances without a cluster UID are one
// finding with a hint.
func TestFindings(t *testing.T) {
	t.Parallel()
	tagged := func(id, uid, pool, claim string) ec2.Instance {
		return ec2.Instance{ID: id, VPC: "vpc-9", Profile: "arn:aws:iam::111122223333:instance-profile/them/NodesOfThem",
			Tags: map[string]string{ec2.TagUID: uid, ec2.TagNodePool: pool, ec2.TagNodeClaim: claim}}
	}
	result := SweepResult{ // two instances of the cluster uid-b result in one finding
		Held: []openBreaker{{"instance", 40, 90}},
		SameName: []ec2.Instance{tagged("i-3", "uid-b", "web", "web-1"), tagged("i-2", "uid-c", "db", "db-1"),
			tagged("i-1", "uid-b", "api", "api-1")},
		Legacy: []ec2.Instance{{ID: "i-9", Tags: map[string]string{ec2.TagNodePool: "old"}}},
	}
	all := findingsOf(result, "prod")
	want := [][]string{ // the key, then parts of the message
		{"breaker instance", "40 of 90 instances of this cluster have no counterpart", "so none is removed"},
		{"same name uid-b", `another cluster has our name, "prod": its uid is uid-b, and it has 2 instances here: i-1, NodePool api, NodeClaim api-1, VPC vpc-9, instance profile NodesOfThem`, "does not touch them"},
		{"same name uid-c", "its uid is uid-c, and it has 1 instance here: i-2"},
		{"legacy i-9", `an instance has our cluster's name, "prod", no cluster UID`,
			"another cluster's Karpenter may have our name: i-9, NodePool old", "does not touch them"},
	}
	if len(all) != len(want) {
		t.Fatalf("%d findings, want %d: %+v", len(all), len(want), all)
	}
	for i, parts := range want {
		if all[i].key != parts[0] || all[i].hint == "" {
			t.Errorf("finding %d has the key %q and the hint %q, want the key %q and a hint", i, all[i].key, all[i].hint, parts[0])
		}
		for _, part := range parts[1:] {
			if !strings.Contains(all[i].message, part) {
				t.Errorf("the message %q does not contain %q", all[i].message, part)
			}
		}
	}
	if got := findingsOf(SweepResult{}, "prod"); len(got) > 0 {
		t.Errorf("an empty result has the findings %+v, want none", got)
	}
}
