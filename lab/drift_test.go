package lab_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/world"
)

// TestCaseSameNameTags is case-3 by its tags: another cluster's security group gets the tag by which ours finds its own. All nodes drift
// at once, the pool says why none of them is replaced and how that is allowed, and none is; when the tag is taken away, nothing drifts.
func TestCaseSameNameTags(t *testing.T) {
	const name, nodes = "sharedtags", 6
	l := beside(t, lab.Options{})
	restart(t, l, "SUBNET_REFRESH_INTERVAL=1s", "AMI_REFRESH_INTERVAL=1s")
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"), pool(name, "", "{key: karpenter.k8s.aws/instance-cpu, operator: In, values: ['4']}"),
		deployment("default", name, nodes, "2500m", "256Mi", "test: "+name))
	var before []string
	within(t, l, 3*time.Minute, "the nodes to be ready, with hashes", func(context.Context) (bool, error) {
		before = nil
		for _, c := range claimsNow(t, l, name) {
			if c.StatusConditions().IsReady() && c.Annotations[karpenterv1.AnnotationNodePoolHash] != "" {
				before = append(before, string(c.UID))
			}
		}
		return len(before) == nodes, nil
	})
	group := shareGroup(t, l)
	held := func() (string, bool) {
		var p karpenterv1.NodePool
		if err := l.Client.Get(t.Context(), client.ObjectKey{Name: name}, &p); err != nil {
			t.Fatal(err)
		}
		c, ok := p.StatusConditions().Find(karpenterv1.ConditionDriftHeld)
		return c.Reason + ": " + c.Message, ok
	}
	within(t, l, 2*time.Minute, "the pool to say that a mass drift is held", func(context.Context) (bool, error) {
		says, ok := held()
		return ok && strings.Contains(says, karpenterv1.ReasonMassDriftHeld) && strings.Contains(says, group) &&
			strings.Contains(says, "kubectl annotate nodepool "+name+" joiner.sh/drift-allow="), nil
	})
	toldPool(t, l, name, "DriftHeld", "6 of 6 nodes drift at once", group)
	for range 20 { // the loops go round several times in it
		var now []string
		for _, c := range claimsNow(t, l, name) {
			if d, ok := c.StatusConditions().Find(karpenterv1.ConditionDrifted); !ok || d.Reason != "SecurityGroupDrift" || !strings.Contains(d.Message, "it lacks "+group) {
				t.Errorf("%s says %q", c.Name, d.Message)
			}
			if c.DeletionTimestamp == nil {
				now = append(now, string(c.UID))
			}
		}
		if slices.Sort(now); !slices.Equal(now, slices.Sorted(slices.Values(before))) {
			t.Fatalf("the claims were %v and are %v", before, now)
		}
		time.Sleep(time.Second)
	}
	l.Emulator.Do(func(_ *world.World, now time.Time) {
		if err := l.Estate.Region.Tag(now, []string{group}, nil, []string{"karpenter.sh/discovery"}); err != nil {
			t.Error(err)
		}
	})
	within(t, l, 2*time.Minute, "nothing to drift any more", func(context.Context) (bool, error) {
		_, isHeld := held()
		return !isHeld && !slices.ContainsFunc(claimsNow(t, l, name), func(c karpenterv1.NodeClaim) bool {
			return c.StatusConditions().IsTrue(karpenterv1.ConditionDrifted)
		}), nil
	})
}

// shareGroup makes a security group of another cluster that carries our discovery tag.
func shareGroup(t *testing.T, l *lab.Lab) string {
	t.Helper()
	var id string
	l.Emulator.Do(func(*world.World, time.Time) {
		g, err := l.Estate.Region.CreateSecurityGroup(l.Estate.VPC.ID, "theirs", "of another cluster", map[string]string{"karpenter.sh/discovery": l.Cluster})
		if err != nil {
			t.Error(err)
			return
		}
		id = g.ID
	})
	return id
}

func claimsNow(t *testing.T, l *lab.Lab, pool string) []karpenterv1.NodeClaim {
	t.Helper()
	claims, _ := claimsOf(t, l, pool)
	return claims
}
