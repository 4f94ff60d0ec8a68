package controller

import (
	"testing"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestLateTags: once the Node of an instance has joined, the instance's tag Name has the Node's name, unless the tags
// of the class set Name. Missing tags are restored. An instance of another cluster with the same name is never tagged.
func TestLateTags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user   map[string]string                             // tags of the class
		before func(add map[string]string, remove *[]string) // changes tags before the sweep

		want   string // the tag Name; "node": the name of the Node; "claim": the name of the NodeClaim
		tagged bool   // the claim has the annotations of a tagged instance
	}{
		"as launched":         {want: "node", tagged: true},
		"the user's own name": {user: map[string]string{"Name": "mine"}, want: "mine", tagged: true},
		"launched by Karpenter": {before: func(_ map[string]string, remove *[]string) {
			*remove = []string{ec2.TagUID, ec2.TagNodeClaim, ec2.TagName}
		},
			want: "node", tagged: true},
		"of a cluster with the same name": {before: func(add map[string]string, _ *[]string) { add[ec2.TagUID] = "another" }, want: "claim"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			class := r.class(t)
			class.Spec.Tags = c.user
			if err := r.api.Update(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			r.reconcileClassAndPool(t)
			r.addPendingPod(t, "web", "500m", "512Mi")
			r.plan(t)
			r.reconcileClaims(t)
			pass := func() {
				if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
					t.Fatal(err)
				}
			}
			pass()
			claim := r.claims(t)[0]
			if claim.Annotations[awsv1.AnnotationTagged] != "" {
				t.Fatal("the claim has the annotation of a tagged instance before its Node has joined")
			}
			r.join(t)
			r.reconcileClaims(t)
			id := r.instances()[0].ID
			if c.before != nil {
				add, remove := map[string]string{}, []string{}
				c.before(add, &remove)
				r.Do(func(_ *world.World, now time.Time) {
					if err := r.estate.Region.Tag(now, []string{id}, add, remove); err != nil {
						t.Error(err)
					}
				})
			}
			pass()
			claim = r.claims(t)[0]
			want := map[string]string{"node": claim.Status.NodeName, "claim": claim.Name}[c.want]
			if want == "" {
				want = c.want
			}
			tags := r.instances()[0].Tags
			if tags[ec2.TagName] != want || tags[ec2.TagNodeClaim] != claim.Name || tags[ec2.TagClusterName] != testCluster {
				t.Errorf("tags are %v, want Name=%s\n%s", tags, want, r.log)
			}
			for _, key := range []string{awsv1.AnnotationTagged, awsv1.AnnotationClusterNameTagged} {
				if got := claim.Annotations[key] == "true"; got != c.tagged {
					t.Errorf("annotation %s is %q, want true only for an instance of this cluster", key, claim.Annotations[key])
				}
			}
		})
	}
}
