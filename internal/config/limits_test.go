package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/permissions"
)

// TestGrantedActionsMayHaveLimits: every EC2 action of the IAM policies may have a limit.
func TestGrantedActionsMayHaveLimits(t *testing.T) {
	t.Parallel()
	policies, err := permissions.Policies(permissions.Scope{Account: "111122223333", Region: "us-east-1", Cluster: "c",
		UID: "u", NodeRoles: []string{"n"}, Queue: "q"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, action := range permissions.Actions(policies) {
		if name, isEC2 := strings.CutPrefix(action, "ec2:"); isEC2 {
			n++
			if !slices.Contains(ec2Actions(), name) {
				t.Errorf("the IAM policies grant %s, which ec2Actions lacks", action)
			}
		}
	}
	if n < 15 || // otherwise the loop above compared too little
		!slices.IsSorted(ec2Actions()) {
		t.Errorf("the IAM policies grant %d EC2 actions, want at least 15; ec2Actions is sorted: %t, want true",
			n, slices.IsSorted(ec2Actions()))
	}
}
