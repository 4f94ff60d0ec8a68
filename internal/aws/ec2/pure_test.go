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
	us := Cluster{Name: "prod", UID: "1111"}
	them := Cluster{Name: "prod", UID: "2222"}
	for name, c := range map[string]struct {
		tags map[string]string
		want Ownership
	}{
		"ours":                            {us.Tags(nil, "apps", "default", "apps-1"), Ours},
		"of a cluster with the same name": {them.Tags(nil, "apps", "default", "apps-1"), SameName},
		"another cluster's":               {Cluster{Name: "test", UID: "1111"}.Tags(nil, "apps", "default", "apps-1"), Foreign},
		"Karpenter's": {map[string]string{TagClusterName: "prod", TagClusterPrefix + "prod": "owned",
			TagNodePool: "apps"}, Legacy},
		"Karpenter's, old":  {map[string]string{TagClusterPrefix + "prod": "owned", TagNodePool: "apps"}, Legacy},
		"shared, not owned": {map[string]string{TagClusterPrefix + "prod": "shared"}, Unmarked},
		"an empty uid":      {map[string]string{TagClusterName: "prod", TagUID: ""}, SameName},
		"our uid, no name":  {map[string]string{TagUID: "1111"}, Unmarked},
		"our uid, other name": {map[string]string{TagUID: "1111", TagClusterName: "test",
			TagClusterPrefix + "prod": "owned"}, Foreign},
		"nothing": {nil, Unmarked},
		"no pool": {map[string]string{TagClusterName: "prod", TagClusterPrefix + "prod": "owned"}, Unmarked},
		"a node group's": {map[string]string{TagClusterPrefix + "prod": "owned",
			"eks:cluster-name": "prod", "eks:nodegroup-name": "web"}, Foreign},
		"a node group's, labelled as a pool's": {map[string]string{TagClusterName: "prod", TagNodePool: "apps",
			"eks:nodegroup-name": "web"}, Foreign},
		"an Auto Scaling group's": {map[string]string{TagClusterPrefix + "prod": "owned", TagNodePool: "apps",
			"aws:autoscaling:groupName": "web"}, Foreign},
		"two clusters'": {map[string]string{TagClusterPrefix + "prod": "owned",
			TagClusterPrefix + "test": "owned", TagNodePool: "apps"}, Foreign},
		"uid in the wrong case ": {map[string]string{TagClusterName: "prod", TagUID: "111A"}, SameName},
	} {
		if got := us.Owner(c.tags); got != c.want {
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
		if mine := key == "Name" || key == "team"; ReservedTag(key) == mine {
			t.Errorf("ReservedTag(%q) = %t", key, !mine)
		}
	}
}

func TestMayChange(t *testing.T) {
	t.Parallel()
	d := &Client{cluster: Cluster{Name: "prod", UID: "1111"}}
	for name, c := range map[string]struct {
		owner Ownership
		proof Proof
		want  bool
	}{
		"ours":                            {Ours, ByTags, true},
		"legacy":                          {Legacy, ByTags, false},
		"legacy, carried":                 {Legacy, Carried, true},
		"of a cluster with the same name": {SameName, ByTags, false},
		"same name, carried":              {SameName, Carried, false}, // a NodeClaim may have been restored from the other cluster
		"a stranger's":                    {Foreign, Carried, false},
		"unknown owner":                   {"", Carried, false},
	} {
		if err := d.mayChange("TerminateInstances", Instance{ID: "i-1", Owner: c.owner}, c.proof); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGather(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls [][]string
	g := newGather(20*time.Millisecond, 100, func(_ context.Context, keys []string) (map[string]int, map[string]error, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, keys)
		values := map[string]int{}
		for _, k := range keys {
			if k != "missing" {
				values[k] = len(k)
			}
		}
		return values, map[string]error{"bad": errors.New("bad one")}, nil
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
			v, ok, err := g.ask(t.Context(), key)
			if (err != nil) != (key == "bad") || ok == (key == "bad" || key == "missing") || ok && v != len(key) {
				t.Errorf("%s: %d, %t, %v", key, v, ok, err)
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
		t.Errorf("100 requests made %d calls with %d keys", len(calls), total)
	}
}

// TestGatherOutlivesItsFirst: the caller that opened the round may stop waiting; the other callers get their answer.
func TestGatherOutlivesItsFirst(t *testing.T) {
	t.Parallel()
	first, leave := context.WithCancel(t.Context())
	joined := make(chan struct{})
	g := newGather(time.Hour, 100, func(ctx context.Context, keys []string) (map[string]int, map[string]error, error) {
		return map[string]int{"b": len(keys)}, nil, ctx.Err()
	})
	var all sync.WaitGroup
	all.Go(func() { _, _, _ = g.ask(first, "a") })
	all.Go(func() {
		for {
			g.mu.Lock()
			open := g.waiting != nil
			g.mu.Unlock()
			if open {
				break
			}
		}
		close(joined)
		v, ok, err := g.ask(t.Context(), "b")
		if err != nil || !ok || v != 2 {
			t.Errorf("the second caller got %d, %t, %v", v, ok, err)
		}
	})
	<-joined
	for {
		g.mu.Lock()
		both := g.waiting != nil && len(g.waiting.keys) == 2
		g.mu.Unlock()
		if both {
			break
		}
	}
	leave()
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

func TestTokenAndName(t *testing.T) {
	t.Parallel()
	r := LaunchRequest{ClaimUID: "u", Attempt: 1}
	seen := map[string]bool{}
	for _, other := range []LaunchRequest{r, {ClaimUID: "u", Attempt: 2}, {ClaimUID: "v", Attempt: 1}, {ClaimUID: "u", Attempt: 11}} {
		token := other.token()
		if seen[token] || len(token) > 64 || token != other.token() {
			t.Errorf("token %q of %+v is not unique", token, other)
		}
		seen[token] = true
	}
	d := &Client{cluster: Cluster{Name: "prod", UID: "1"}}
	twin := &Client{cluster: Cluster{Name: "prod", UID: "2"}}
	base := Blueprint{ImageID: "ami-1", UserData: []byte("x"), Disks: []Disk{{Device: "/dev/xvda", GiB: 20}}}
	other := base
	other.Disks = []Disk{{Device: "/dev/xvda", GiB: 21}}
	names := map[string]bool{}
	for _, build := range []func() (string, error){
		func() (string, error) { return d.name(base, nil) },
		func() (string, error) { return d.name(other, nil) },
		func() (string, error) { return d.name(base, map[string]string{"a": "b"}) },
		func() (string, error) { return twin.name(base, nil) },
	} {
		name, err := build()
		again, _ := build()
		if err != nil || name != again || names[name] || len(name) > 128 {
			t.Errorf("name %q, then %q, %v", name, again, err)
		}
		names[name] = true
	}
}
