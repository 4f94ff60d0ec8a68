package gc

import (
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
)

// TestSightings: a finding names the instances and a fix.
func TestSightings(t *testing.T) {
	t.Parallel()
	tagged := func(id, uid, pool, claim string) ec2.Instance {
		return ec2.Instance{ID: id, VPC: "vpc-9", Profile: "arn:aws:iam::111122223333:instance-profile/them/NodesOfThem",
			Tags: map[string]string{ec2.TagUID: uid, ec2.TagNodePool: pool, ec2.TagNodeClaim: claim}}
	}
	seen := SweepResult{
		Held: []open{{"instance", 40, 90}},
		SameName: []ec2.Instance{tagged("i-3", "uid-b", "web", "web-1"), tagged("i-2", "uid-c", "db", "db-1"),
			tagged("i-1", "uid-b", "api", "api-1")},
		Legacy: []ec2.Instance{{ID: "i-9", Tags: map[string]string{ec2.TagNodePool: "old"}}},
	}
	all := sightings(seen, "prod")
	want := [][]string{
		{"breaker instance", "40 of 90 instances of this cluster have no counterpart", "so none is removed"},
		{"namesake uid-b", `another cluster has our name, "prod": its uid is uid-b, and it has 2 instances here: i-1, NodePool api, NodeClaim api-1, VPC vpc-9, instance profile NodesOfThem`, "does not touch them"},
		{"namesake uid-c", "its uid is uid-c, and it has 1 instance here: i-2"},
		{"legacy i-9", `an instance has our cluster's name, "prod", no cluster UID`,
			"another cluster's Karpenter may have our name: i-9, NodePool old", "does not touch them"},
	}
	if len(all) != len(want) {
		t.Fatalf("%d sightings: %+v", len(all), all)
	}
	for i, words := range want {
		if all[i].key != words[0] || all[i].hint == "" {
			t.Errorf("%d is about %q, with the hint %q", i, all[i].key, all[i].hint)
		}
		for _, w := range words[1:] {
			if !strings.Contains(all[i].message, w) {
				t.Errorf("%q does not say %q", all[i].message, w)
			}
		}
	}
	if got := sightings(SweepResult{}, "prod"); len(got) > 0 {
		t.Errorf("of nothing: %+v", got)
	}
}
