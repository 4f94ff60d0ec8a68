package faults

import (
	"strings"
	"testing"
)

// TestUserDataFaultsWithAnyClusterName checks that the faults that change the cluster's name in the user data work with
// any name.
func TestUserDataFaultsWithAnyClusterName(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{"lab", "prod", "Team_A-1", "b"} {
		text := "#!/bin/bash\n/etc/eks/bootstrap.sh " + cluster + " --b64-cluster-ca x\n"
		if got, want := withoutCluster(text), "#!/bin/bash\n/etc/eks/bootstrap.sh --b64-cluster-ca x\n"; got != want {
			t.Errorf("%s: without the cluster's name: %q, want %q", cluster, got, want)
		}
		if got := withOtherCluster(text); got == text || strings.Contains(got, "bootstrap.sh "+cluster+" ") {
			t.Errorf("%s: want user data with the name of another cluster, got %q", cluster, got)
		}
	}
}

// TestNamesAreNeutral checks that the name of a scene's objects does not reveal the fault.
func TestNamesAreNeutral(t *testing.T) {
	t.Parallel()
	name := sceneName(7)
	for _, f := range All() {
		for _, word := range strings.FieldsFunc(strings.ToLower(f.Name+"-"+f.Check), func(r rune) bool { return r == '-' }) {
			// Shorter words, such as the number of a check, can also be in a neutral name.
			if len(word) > 2 && strings.Contains(name, word) {
				t.Errorf("the name %s contains a word of the fault %s", name, f.Name)
			}
		}
	}
	if sceneName(8) == name {
		t.Error("two scenes have the same name, want different names")
	}
}
