package world_test

import (
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// TestFargateProfile: a profile becomes active after Timing.Profile. Its role gets an access entry unless the
// authentication mode is CONFIG_MAP.
func TestFargateProfile(t *testing.T) {
	t.Parallel()
	now := noon()
	const role = "arn:aws:iam::" + account + ":role/execution"
	for mode, wantEntries := range map[string]int{ekscluster.AuthConfigMap: 0, ekscluster.AuthBoth: 1, ekscluster.AuthAPI: 1} {
		w := &world.World{Timing: site.Timing{Profile: time.Minute}}
		r := w.Region(account, region)
		c, err := r.EKS.CreateCluster(now, ekscluster.Cluster{Name: "demo", AuthMode: mode, SubnetIDs: []string{"subnet-1"}})
		if err != nil {
			t.Fatal(err)
		}
		profile, err := r.EKS.CreateFargateProfile(now, "demo",
			ekscluster.FargateProfile{Name: "system", Role: role, Selectors: []ekscluster.FargateSelector{{Namespace: "kube-system"}}})
		if err != nil {
			t.Fatal(err)
		}
		if profile.Status != ekscluster.ProfileCreating || len(profile.SubnetIDs) != 1 {
			t.Errorf("%s: the new profile is %+v, want CREATING with the cluster's subnet", mode, profile)
		}
		w.Advance(now.Add(59 * time.Second))
		if profile.Status != ekscluster.ProfileCreating {
			t.Errorf("%s: %s after 59 s, want CREATING", mode, profile.Status)
		}
		w.Advance(now.Add(time.Minute))
		if profile.Status != ekscluster.ProfileActive {
			t.Errorf("%s: %s after 60 s, want ACTIVE", mode, profile.Status)
		}
		got := c.AccessEntries()
		if len(got) != wantEntries || wantEntries == 1 && (got[0].Kind != ekscluster.EntryFargateLinux || got[0].Principal != role) {
			t.Errorf("%s: access entries %+v, want %d", mode, got, wantEntries)
		}
		if _, err := r.EKS.CreateFargateProfile(now, "demo",
			ekscluster.FargateProfile{Name: "more", Role: role, Selectors: profile.Selectors}); err != nil {
			t.Errorf("%s: a second profile, whose role has an access entry already: %v", mode, err)
		}
	}
}

// TestFargateSelects: a selector matches pods in its namespace that have all of its labels. Namespace and values can be patterns.
func TestFargateSelects(t *testing.T) {
	t.Parallel()
	p := ekscluster.FargateProfile{Selectors: []ekscluster.FargateSelector{
		{Namespace: "kube-system", Labels: map[string]string{"app": "joiner", "tier": "*"}},
		{Namespace: "team-?"},
		{Namespace: "["}, // an invalid pattern, which matches no pod
	}}
	for _, c := range []struct {
		namespace string
		labels    map[string]string
		want      bool
	}{
		{"kube-system", map[string]string{"app": "joiner", "tier": "system"}, true},
		{"kube-system", map[string]string{"app": "joiner"}, false},
		{"kube-system", map[string]string{"app": "other", "tier": ""}, false}, // "*" matches "", but app differs
		{"team-a", nil, true},
		{"team-ab", nil, false},
		{"default", map[string]string{"app": "joiner", "tier": "system"}, false},
	} {
		if got := p.Selects(c.namespace, c.labels); got != c.want {
			t.Errorf("a pod in %s with labels %v: selected %t, want %t", c.namespace, c.labels, got, c.want)
		}
	}
}

// TestFargatePlaces: the host of a Fargate pod takes an address of the first usable subnet, until it is released.
func TestFargatePlaces(t *testing.T) {
	t.Parallel()
	_, estate := newClusterWorld(t)
	s := estate.PrivateSubnets[0]
	free := s.Free
	p, err := estate.Region.Network.TakeFargatePlace([]string{"subnet-gone", s.ID})
	if err != nil || p.SubnetID != s.ID || s.Free != free-1 || p.Name == "" {
		t.Fatalf("got %+v, %v; %d addresses are free, want %d, and a name in %s", p, err, s.Free, free-1, s.ID)
	}
	estate.Region.Network.ReleaseFargatePlace(p)
	if s.Free != free {
		t.Errorf("%d addresses are free after the release, want %d", s.Free, free)
	}
	s.Free = 0
	if p, err := estate.Region.Network.TakeFargatePlace([]string{s.ID}); err == nil {
		t.Errorf("a full subnet assigned %+v, want an error", p)
	}
}
