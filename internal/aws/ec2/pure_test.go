package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOwner(t *testing.T) {
	t.Parallel()
	ours := Cluster{Name: "prod", UID: "1111"}
	sameName := Cluster{Name: "prod", UID: "2222"}
	for name, c := range map[string]struct {
		tags map[string]string
		want Ownership
	}{
		"ours":                            {ours.Tags(nil, "apps", "default", "apps-1"), Ours},
		"of a cluster with the same name": {sameName.Tags(nil, "apps", "default", "apps-1"), SameName},
		"another cluster's":               {Cluster{Name: "test", UID: "1111"}.Tags(nil, "apps", "default", "apps-1"), Foreign},
		"Karpenter's": {map[string]string{TagClusterName: "prod", TagClusterPrefix + "prod": "owned",
			TagNodePool: "apps"}, Legacy},
		"Karpenter's, no name tag": {map[string]string{TagClusterPrefix + "prod": "owned", TagNodePool: "apps"}, Legacy},
		"shared, not owned":        {map[string]string{TagClusterPrefix + "prod": "shared"}, Untagged},
		"an empty uid":             {map[string]string{TagClusterName: "prod", TagUID: ""}, SameName},
		"our uid, no name":         {map[string]string{TagUID: "1111"}, Untagged},
		"our uid, other name": {map[string]string{TagUID: "1111", TagClusterName: "test",
			TagClusterPrefix + "prod": "owned"}, Foreign},
		"no tags": {nil, Untagged},
		"no pool": {map[string]string{TagClusterName: "prod", TagClusterPrefix + "prod": "owned"}, Untagged},
		"a node group's": {map[string]string{TagClusterPrefix + "prod": "owned",
			"eks:cluster-name": "prod", "eks:nodegroup-name": "web"}, Foreign},
		"a node group's, labelled as a pool's": {map[string]string{TagClusterName: "prod", TagNodePool: "apps",
			"eks:nodegroup-name": "web"}, Foreign},
		"an Auto Scaling group's": {map[string]string{TagClusterPrefix + "prod": "owned", TagNodePool: "apps",
			"aws:autoscaling:groupName": "web"}, Foreign},
		"two clusters'": {map[string]string{TagClusterPrefix + "prod": "owned",
			TagClusterPrefix + "test": "owned", TagNodePool: "apps"}, Foreign},
		"a similar uid": {map[string]string{TagClusterName: "prod", TagUID: "111A"}, SameName},
	} {
		if got := ours.Owner(c.tags); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	c := Cluster{Name: "prod", UID: "1111"}
	got := c.Tags(map[string]string{"Name": "mine", "team": "a", TagUID: "2222"}, "apps", "default", "apps-1")
	want := map[string]string{
		"Name": "mine", "team": "a", "kubernetes.io/cluster/prod": "owned", "eks:eks-cluster-name": "prod",
		"karpenter.sh/nodepool": "apps", "karpenter.sh/nodeclaim": "apps-1", "karpenter.k8s.aws/ec2nodeclass": "default",
		"joiner.sh/cluster-uid": "1111",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if shared := c.Tags(nil, "apps", "default", ""); shared[TagName] != "" || shared[TagNodeClaim] != "" {
		t.Errorf("tags of a shared resource name a claim: %v", shared)
	}
	for key := range want {
		if isUsers := key == "Name" || key == "team"; ReservedTag(key) == isUsers {
			t.Errorf("ReservedTag(%q) is %t, want %t", key, isUsers, !isUsers)
		}
	}
}

// TestCheckOwnership: Joiner changes its own instances and, with the proof ByProviderID, those without UID tag.
func TestCheckOwnership(t *testing.T) {
	t.Parallel()
	d := &Client{cluster: Cluster{Name: "prod", UID: "1111"}}
	for name, c := range map[string]struct {
		owner Ownership
		proof Proof
		want  bool
	}{
		"ours":                            {Ours, ByTags, true},
		"legacy":                          {Legacy, ByTags, false},
		"legacy, by provider ID":          {Legacy, ByProviderID, true},
		"of a cluster with the same name": {SameName, ByTags, false},
		"same name, by provider ID":       {SameName, ByProviderID, false}, // a NodeClaim may have been restored from the other cluster
		"another owner's":                 {Foreign, ByProviderID, false},
		"unknown owner":                   {"", ByProviderID, false},
	} {
		if err := d.checkOwnership("TerminateInstances", Instance{ID: "i-1", Owner: c.owner}, c.proof); (err == nil) != c.want {
			t.Errorf("%s: %v, want success: %t", name, err, c.want)
		}
	}
}

// TestMerger: 100 concurrent requests for 50 keys make few calls. The error of one key does not affect other keys.
func TestMerger(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls [][]string
	m := newMerger(20*time.Millisecond, 100, func(_ context.Context, keys []string) (map[string]int, map[string]error, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, keys)
		values := map[string]int{}
		for _, k := range keys {
			if k != "missing" {
				values[k] = len(k)
			}
		}
		return values, map[string]error{"bad": errors.New("bad key")}, nil
	})
	var all sync.WaitGroup
	for i := range 100 {
		key := fmt.Sprint("key", i%50)
		switch i {
		case 7:
			key = "bad"
		case 8:
			key = "missing"
		}
		all.Go(func() {
			v, ok, err := m.get(t.Context(), key)
			wantErr := key == "bad"
			wantValue := !wantErr && key != "missing"
			if (err != nil) != wantErr || ok != wantValue || ok && v != len(key) {
				t.Errorf("%s: %d, %t, %v; want the length, no value for missing, an error for bad", key, v, ok, err)
			}
		})
	}
	all.Wait()
	total := 0
	for _, keys := range calls {
		total += len(keys)
		if !slices.IsSorted(keys) {
			t.Errorf("keys of a call are not sorted: %v", keys)
		}
	}
	if len(calls) > 10 {
		t.Errorf("100 requests made %d calls with %d keys in total, want at most 10 calls", len(calls), total)
	}
}

// TestMergerFirstCallerLeaves: if the first caller stops waiting, the merged call is made at once, without waiting for
// the end of the window, which is an hour. Its value for "b" is the number of keys.
func TestMergerFirstCallerLeaves(t *testing.T) {
	t.Parallel()
	firstCtx, cancelFirst := context.WithCancel(t.Context())
	joined := make(chan struct{})
	m := newMerger(time.Hour, 100, func(ctx context.Context, keys []string) (map[string]int, map[string]error, error) {
		return map[string]int{"b": len(keys)}, nil, ctx.Err()
	})
	var all sync.WaitGroup
	all.Go(func() { _, _, _ = m.get(firstCtx, "a") })
	all.Go(func() {
		for {
			m.mu.Lock()
			isWaiting := m.waiting != nil
			m.mu.Unlock()
			if isWaiting {
				break
			}
		}
		close(joined)
		v, ok, err := m.get(t.Context(), "b")
		if err != nil || !ok || v != 2 {
			t.Errorf("the second caller got %d, %t, %v; want 2, true, nil", v, ok, err)
		}
	})
	<-joined
	for {
		m.mu.Lock()
		haveBothJoined := m.waiting != nil && len(m.waiting.keys) == 2
		m.mu.Unlock()
		if haveBothJoined {
			break
		}
	}
	cancelFirst()
	all.Wait()
}

func TestParseProviderID(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"aws:///us-east-1a/i-0123": "i-0123", "aws:///us-east-1a/x": "", "aws://i-0123": "", "kwok://x/y": "", "": "", "aws:///i-0123": "",
	} {
		id, ok := ParseProviderID(text)
		if ok != (want != "") || ok && id != want {
			t.Errorf("%q: %q, %t; want %q", text, id, ok, want)
		}
	}
}

// TestTokenAndName: tokens differ by claim and attempt; template names differ by content, tags and cluster UID.
func TestTokenAndName(t *testing.T) {
	t.Parallel()
	r := LaunchRequest{ClaimUID: "u", Attempt: 1}
	seen := map[string]bool{}
	for _, request := range []LaunchRequest{r, {ClaimUID: "u", Attempt: 2}, {ClaimUID: "v", Attempt: 1}, {ClaimUID: "u", Attempt: 11}} {
		token := request.token()
		if seen[token] || len(token) > 64 || token != request.token() {
			t.Errorf("token %q of %+v is not unique, too long or not deterministic", token, request)
		}
		seen[token] = true
	}
	d := &Client{cluster: Cluster{Name: "prod", UID: "1"}}
	sameName := &Client{cluster: Cluster{Name: "prod", UID: "2"}}
	base := Blueprint{ImageID: "ami-1", UserData: []byte("x"), Disks: []Disk{{Device: "/dev/xvda", GiB: 20}}}
	other := base
	other.Disks = []Disk{{Device: "/dev/xvda", GiB: 21}}
	names := map[string]bool{}
	for _, nameOf := range []func() (string, error){
		func() (string, error) { return d.templateName(base, nil) },
		func() (string, error) { return d.templateName(other, nil) },
		func() (string, error) { return d.templateName(base, map[string]string{"a": "b"}) },
		func() (string, error) { return sameName.templateName(base, nil) },
	} {
		name, err := nameOf()
		again, _ := nameOf()
		if err != nil || name != again || names[name] || len(name) > 128 {
			t.Errorf("name %q, then %q, %v; want a unique name of at most 128 characters", name, again, err)
		}
		names[name] = true
	}
}
