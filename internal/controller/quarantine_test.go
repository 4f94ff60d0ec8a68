package controller

import (
	"maps"
	"strings"
	"testing"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// removeTags removes the tags with the keys; without keys, all.
func (r *rig) removeTags(t *testing.T, id string, keys ...string) {
	t.Helper()
	r.Do(func(w *world.World, now time.Time) {
		i, ok := w.Instance(id)
		if !ok {
			t.Fatalf("there is no instance %s", id)
		}
		if len(keys) == 0 {
			for key := range i.Tags {
				keys = append(keys, key)
			}
		}
		if err := r.estate.Region.Tag(now, []string{id}, nil, keys); err != nil {
			t.Fatal(err)
		}
	})
}

// TestInstanceThatLostItsTags: a deleted claim stays while its instance lacks the tags of this cluster, also after a
// restart. A condition names the instance, and an event also has the commands that fix the tags. The claim is removed
// when the tags are restored or the instance is terminated.
func TestInstanceThatLostItsTags(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"all tags":             nil,
		"the UID and the pool": {ec2.TagUID, ec2.TagNodePool},
		"the cluster's name":   {ec2.TagClusterName, ec2.TagClusterPrefix + testCluster},
		"all tags except the UID": {ec2.TagClusterName, ec2.TagClusterPrefix + testCluster, ec2.TagNodePool, ec2.TagNodeClass,
			ec2.TagNodeClaim},
		"all tags except the NodeClaim": {ec2.TagClusterName, ec2.TagClusterPrefix + testCluster, ec2.TagNodePool, ec2.TagNodeClass,
			ec2.TagUID},
	} {
		for _, how := range []string{"terminated by the user", "tags restored by the user"} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "t3.medium")
				claim := r.launchClaim(t)
				r.join(t)
				r.reconcileClaims(t)
				instance := r.instances()[0]
				tags := maps.Clone(instance.Tags)
				maps.DeleteFunc(tags, func(key, _ string) bool { return strings.HasPrefix(key, "aws:") })
				r.removeTags(t, instance.ID, keys...)
				r.ahead += 10 * time.Minute
				claim = *r.claim(t, claim.Name)
				if err := r.api.Delete(t.Context(), &claim); err != nil {
					t.Fatal(err)
				}
				for range 20 {
					r.ahead += r.reconcileClaims(t)
				}
				r.start(t) // a new process without memory
				r.reconcileClassAndPool(t)
				for range 5 {
					r.ahead += r.reconcileClaims(t)
				}
				c, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionInstanceTerminating)
				if c.Status != "False" || c.Reason != "InstanceTagsMissing" || !strings.Contains(c.Message, instance.ID) {
					t.Errorf("the condition InstanceTerminating of the claim is %+v, want False InstanceTagsMissing", c)
				}
				event := r.events.find("NodeClaim/InstanceTagsMissing", "aws ec2 create-tags --region us-east-1 --resources "+instance.ID,
					"aws ec2 terminate-instances --region us-east-1 --instance-ids "+instance.ID)
				if event == "" || len(keys) != 5 && !strings.Contains(event, "Key=") {
					t.Errorf("no event has the commands for the instance: %v", r.events.emitted)
				}
				if n := metricCount(t, r.Claims.Metrics.Untagged); n != 1 || len(r.instances()) != 1 ||
					!strings.Contains(r.log.String(), "has lost its tags") {
					t.Errorf("the metric Untagged is %d, and there are %d instances; want one each\n%s", n, len(r.instances()), r.log)
				}
				r.Do(func(_ *world.World, now time.Time) {
					if how == "tags restored by the user" {
						r.check(t, r.estate.Region.Tag(now, []string{instance.ID}, tags, nil))
					} else {
						_, _, err := r.estate.Region.Instances.Terminate(now, []string{instance.ID})
						r.check(t, err)
					}
				})
				r.finish(t)
				if n := metricCount(t, r.Claims.Metrics.Untagged); n != 0 || len(r.claims(t)) != 0 || len(r.instances()) != 0 {
					t.Errorf("the metric Untagged is %d, and there are %d claims and %d instances; want none\n%s",
						n, len(r.claims(t)), len(r.instances()), r.log)
				}
			})
		}
	}
}

func (r *rig) check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestInstanceOfAManagedNodeGroup: an instance with the tags of a managed node group is not terminated when a NodeClaim
// that names it is deleted.
func TestInstanceOfAManagedNodeGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.launchClaim(t)
	r.join(t)
	r.reconcileClaims(t)
	instance := r.instances()[0]
	r.removeTags(t, instance.ID)
	r.Do(func(_ *world.World, now time.Time) {
		r.check(t, r.estate.Region.Tag(now, []string{instance.ID}, map[string]string{
			ec2.TagClusterPrefix + testCluster: "owned", "eks:cluster-name": testCluster, "eks:nodegroup-name": "web",
		}, nil))
	})
	r.ahead += 10 * time.Minute
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	claim = *r.claim(t, claim.Name)
	if err := r.api.Delete(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
	if len(r.claims(t)) != 0 || len(r.instances()) != 1 || !strings.Contains(r.log.String(), "tags of another owner") {
		t.Errorf("%d claims and %d instances, want 0 and 1\n%s", len(r.claims(t)), len(r.instances()), r.log)
	}
}
