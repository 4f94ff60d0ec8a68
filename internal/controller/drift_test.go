package controller

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// runDriftLoop runs the drift loop once, with a new list of EC2's instances.
func (r *rig) runDriftLoop(t *testing.T) {
	t.Helper()
	r.ahead += driftcheck.MaxListAge
	if err := r.Drift.Pass(t.Context(), r.now()); err != nil {
		t.Fatalf("%v\n%s", err, r.log)
	}
}

func (r *rig) editPool(t *testing.T, change func(*karpv1.NodePool)) {
	t.Helper()
	pool := r.pool(t)
	change(pool)
	pool.Generation++
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) editClass(t *testing.T, change func(*awsv1.EC2NodeClass)) {
	t.Helper()
	class := r.class(t)
	change(class)
	class.Generation++
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
}

// conditionTexts returns, by name of claim, "reason: message" of the given condition. It omits claims on which the
// condition is not true.
func (r *rig) conditionTexts(t *testing.T, condition string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range r.claims(t) {
		if found, ok := c.StatusConditions().Find(condition); ok && found.Status == metav1.ConditionTrue {
			out[c.Name] = found.Reason + ": " + found.Message
		}
	}
	return out
}

// TestDriftFollowsEdits: a change of a pool or class field that nodes are made from is reported on the nodes' claims,
// with the field's name, until the user reverts the change.
func TestDriftFollowsEdits(t *testing.T) {
	t.Parallel()
	text := "echo hello"
	for name, c := range map[string]struct {
		pool  func(*karpv1.NodePool)
		class func(*awsv1.EC2NodeClass)
		want  []string // parts of the condition Drifted; none: the claim does not drift
	}{
		"nothing": {},
		"a label": {pool: func(p *karpv1.NodePool) { p.Spec.Template.Labels = map[string]string{"team": "b"} },
			want: []string{"NodePoolDrifted: ", "labels: the node has team=a, the current value is team=b"}},
		"a taint": {pool: func(p *karpv1.NodePool) { p.Spec.Template.Spec.Taints = nil },
			want: []string{"NodePoolDrifted: ", "taints: the node has team=a:NoSchedule, the current value is none"}},
		"another capacity type": {pool: func(p *karpv1.NodePool) { p.Spec.Template.Spec.Requirements[0].Values = []string{"spot"} },
			want: []string{"RequirementsDrifted: ", "karpenter.sh/capacity-type=on-demand", "spot"}},
		"the weight":     {pool: func(p *karpv1.NodePool) { w := int32(7); p.Spec.Weight = &w }},
		"a wider choice": {pool: func(p *karpv1.NodePool) { p.Spec.Template.Spec.Requirements[0].Values = []string{"spot", "on-demand"} }},
		"user data": {class: func(c *awsv1.EC2NodeClass) { c.Spec.UserData = &text },
			want: []string{"NodeClassDrift: ", "userData has changed"}},
		"a setting that Karpenter does not know": {class: func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{}
			if err := c.Spec.Kubelet.UnmarshalJSON([]byte(`{"registryPullQPS":10}`)); err != nil {
				panic(err)
			}
		}, want: []string{"NodeClassDrift: ", "kubelet has changed"}},
		"the AMI family only from the alias": {class: func(c *awsv1.EC2NodeClass) { c.Spec.AMIFamily = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			claim := r.createServing(t, "web")[0].Name
			r.runDriftLoop(t)
			if got := r.conditionTexts(t, karpv1.ConditionDrifted); len(got) > 0 {
				t.Fatalf("claims drift without a change: %v", got)
			}
			if a := r.claim(t, claim).Annotations; a[karpv1.AnnotationNodePoolHash] != r.pool(t).Annotations[karpv1.AnnotationNodePoolHash] ||
				a[awsv1.AnnotationHash] != r.class(t).Annotations[awsv1.AnnotationHash] || a[awsv1.AnnotationHash] == "" {
				t.Errorf("the hashes of the claim are not those of its pool and class: %v", a)
			}
			pool, class := r.pool(t), r.class(t)
			if c.pool != nil {
				r.editPool(t, c.pool)
			}
			if c.class != nil {
				r.editClass(t, c.class)
			}
			r.runDriftLoop(t)
			got := r.conditionTexts(t, karpv1.ConditionDrifted)[claim]
			for _, part := range c.want {
				if !strings.Contains(got, part) {
					t.Errorf("the condition of the claim is %q, want %q in it", got, part)
				}
			}
			if len(c.want) == 0 && got != "" {
				t.Errorf("the claim drifts, want no drift: %s", got)
			}
			r.editPool(t, func(p *karpv1.NodePool) { p.Spec = pool.Spec })
			r.editClass(t, func(c *awsv1.EC2NodeClass) { c.Spec = class.Spec })
			r.runDriftLoop(t)
			if got := r.conditionTexts(t, karpv1.ConditionDrifted); len(got) > 0 {
				t.Errorf("claims drift although the change was reverted: %v", got)
			}
		})
	}
}

// TestDriftSettingsOfAPool: a pool may request that drift is only reported, or that a field is ignored.
func TestDriftSettingsOfAPool(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.createServing(t, "web")[0].Name
	r.runDriftLoop(t)
	r.editClass(t, func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"cost": "1"} })
	annotate := func(key, value string) {
		t.Helper()
		r.editPool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, key, value) })
		r.runDriftLoop(t)
	}
	annotate(karpv1.AnnotationDrift, "observe")
	if got := r.conditionTexts(t, karpv1.ConditionDriftObserved)[claim]; !strings.Contains(got, "tags has changed") ||
		len(r.conditionTexts(t, karpv1.ConditionDrifted)) > 0 {
		t.Errorf("DriftObserved is %q, want the tags; Drifted is %v, want none", got, r.conditionTexts(t, karpv1.ConditionDrifted))
	}
	if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) > 0 {
		t.Errorf("%v may be replaced although drift is only observed", allowed)
	}
	annotate(karpv1.AnnotationDrift, "")
	node := r.claim(t, claim).Status.NodeName
	if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) != 1 || allowed[0] != node ||
		r.conditionTexts(t, karpv1.ConditionDrifted)[claim] == "" {
		t.Errorf("%v may be replaced, want %s", allowed, node)
	}
	annotate(karpv1.AnnotationDriftIgnore, "userData, spec.tags")
	if got := r.conditionTexts(t, karpv1.ConditionDrifted); len(got) > 0 {
		t.Errorf("claims drift although the field is ignored: %v", got)
	}
	if n := metricCount(t, r.Drift.Metrics.Drifted, "apps", "NodeClassDrift", "ignored"); n != 1 {
		t.Errorf("the metrics count %v ignored drifts, want 1", n)
	}
}

// TestInvalidDriftSettings: a drift setting that cannot be parsed is reported on the pool, and blocks all replacements.
// Drift is still reported, and the parts of the setting that can be parsed have their effect.
func TestInvalidDriftSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key, value string
		want       string // part of the pool's condition
		wantDrift  bool   // whether the claim's condition Drifted is true
	}{
		"one unknown and one known field": {karpv1.AnnotationDriftIgnore, "spec.tags, amiSelector",
			`"amiSelector" (did you mean amiSelectorTerms?) is not a field`, false},
		"a field of another object": {karpv1.AnnotationDriftIgnore, "spec.template.spec.tags",
			`"spec.template.spec.tags" (did you mean tags?) is not a field`, true},
		"a field that never drifts": {karpv1.AnnotationDriftIgnore, "ipPrefixCount", `"ipPrefixCount" is not a field`, true},
		"an incomplete value":       {karpv1.AnnotationDrift, "observ", `"observ" is not observe or replace`, true},
		"a word as wave":            {karpv1.AnnotationDriftWave, "many", "neither a number", true},
		"a canary of 0":             {karpv1.AnnotationDriftCanary, "0", "above 0", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			claim := r.createServing(t, "web")[0].Name
			r.runDriftLoop(t)
			r.editClass(t, func(class *awsv1.EC2NodeClass) { class.Spec.Tags = map[string]string{"cost": "1"} })
			r.editPool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, c.key, c.value) })
			r.reconcileClassAndPool(t)
			r.runDriftLoop(t)
			valid, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionDisruptionPolicyValid)
			if valid.Status != metav1.ConditionFalse || !strings.Contains(valid.Message, c.key+": ") || !strings.Contains(valid.Message, c.want) {
				t.Errorf("the condition of the pool is %q, want %q in it", valid.Message, c.want)
			}
			if got := r.conditionTexts(t, karpv1.ConditionDrifted)[claim]; (got != "") != c.wantDrift {
				t.Errorf("the condition Drifted is %q, want drift: %t", got, c.wantDrift)
			}
			allowed, stays := r.Drift.Waves("apps", nil, nil)
			if len(allowed) > 0 {
				t.Errorf("%v may be replaced despite the invalid setting", allowed)
			}
			for node, why := range stays {
				if !strings.Contains(why, c.want) {
					t.Errorf("%s stays because of %q, want the invalid setting", node, why)
				}
			}
			if c.wantDrift && len(stays) != 1 {
				t.Errorf("%v stay, want the drifted node alone", stays)
			}
			if ready := r.pool(t).StatusConditions().IsReady(); !ready {
				t.Error("the pool is not ready, and launches no nodes")
			}
		})
	}
}

// TestFieldsOfDriftAreThoseOfTheAPI: the fields that an annotation can ignore are exactly those that can drift. Each is
// accepted by its path.
func TestFieldsOfDriftAreThoseOfTheAPI(t *testing.T) {
	t.Parallel()
	want := map[string]string{ // field → its path without its name
		drift.FieldType: "", drift.FieldAuthority: "", "labels": "spec.template.metadata.", "annotations": "spec.template.metadata."}
	selectors := []string{
		drift.FieldRequirements, drift.FieldImages, drift.FieldGroups, drift.FieldSubnets, drift.FieldReservations, "amiFamily",
	} // fields that are not part of a hash: drift compares what they select
	for path, object := range map[string]reflect.Type{
		"spec.template.spec.": reflect.TypeFor[karpv1.NodeClaimTemplateSpec](), "spec.": reflect.TypeFor[awsv1.EC2NodeClassSpec](),
	} {
		for field := range object.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Tag.Get("hash") != "ignore" || slices.Contains(selectors, name) {
				want[name] = path
			}
		}
	}
	if got := drift.Fields(); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("the fields are %v, want %v", got, slices.Sorted(maps.Keys(want)))
	}
	for name, path := range want {
		if got, ok := drift.FieldOf(path + name); !ok || got != name {
			t.Errorf("%s%s is read as field %q, want %s", path, name, got, name)
		}
	}
}

// TestHashesOfAnotherVersion: claims with hashes of another version get hashes of the current version, and do not drift
// by this. A claim that drifted before still drifts.
func TestHashesOfAnotherVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claims := r.createServing(t, "web", "api")
	r.runDriftLoop(t)
	r.editPool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, karpv1.AnnotationNodePoolHashVersion, "v2") })
	for i, c := range claims {
		claim := r.claim(t, c.Name)
		claim.Annotations[karpv1.AnnotationNodePoolHash], claim.Annotations[karpv1.AnnotationNodePoolHashVersion] = "17", "v2"
		delete(claim.Annotations, conversion.AnnotationPoolParts)
		if err := r.api.Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if i > 0 { // only the first claim drifted before
			continue
		}
		claim = r.claim(t, c.Name)
		claim.StatusConditions().Set(r.now(), metav1.Condition{Type: karpv1.ConditionDrifted, Status: "True", Reason: "NodePoolDrifted"})
		if err := r.api.Status().Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	r.runDriftLoop(t)
	r.runDriftLoop(t)
	got := r.conditionTexts(t, karpv1.ConditionDrifted)
	if len(got) != 1 || !strings.HasPrefix(got[claims[0].Name], "NodePoolDrifted") {
		t.Errorf("%v drift, want %s alone", got, claims[0].Name)
	}
	for _, c := range r.claims(t) {
		if c.Annotations[karpv1.AnnotationNodePoolHashVersion] != "v3" {
			t.Errorf("%s has a hash of version %s, want v3", c.Name, c.Annotations[karpv1.AnnotationNodePoolHashVersion])
		}
	}
}

func podNames(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("web-%03d", i))
	}
	return out
}

// addTaggedGroup adds a security group that the class selects, as if a user tagged a group of another cluster by
// mistake.
func (r *rig) addTaggedGroup(t *testing.T, name string) string {
	t.Helper()
	var id string
	r.Do(func(*world.World, time.Time) {
		g, err := r.estate.Region.Network.CreateSecurityGroup(r.estate.VPC.ID, name, "of another cluster",
			map[string]string{"karpenter.sh/discovery": testCluster})
		if err != nil {
			t.Fatal(err)
		}
		id = g.ID
	})
	r.reconcileClassAndPool(t)
	return id
}

// TestMassDriftWaitsForTheUser: a security group that is tagged by mistake makes all nodes drift at once. None of them
// is replaced before the user allows this drift. Drift by a user's change of the class is not held.
func TestMassDriftWaitsForTheUser(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.createServing(t, podNames(6)...)
	r.runDriftLoop(t)
	r.runDriftLoop(t)
	before := r.class(t).Spec
	group := r.addTaggedGroup(t, "theirs")
	r.runDriftLoop(t)
	for name, text := range r.conditionTexts(t, karpv1.ConditionDrifted) {
		if !strings.Contains(text, "SecurityGroupDrift: ") || !strings.Contains(text, "it lacks "+group) {
			t.Errorf("the condition of %s is %q, want the group in it", name, text)
		}
	}
	held := func() (metav1.Condition, bool) { return r.pool(t).StatusConditions().Find(karpv1.ConditionDriftHeld) }
	c, ok := held()
	if !ok || c.Reason != karpv1.ReasonMassDriftHeld || !strings.Contains(c.Message, "6 of 6 nodes") || !strings.Contains(c.Message, group) {
		t.Fatalf("the condition of the pool is %+v, want 6 of 6 nodes and the group in it\n%s", c, r.log)
	}
	allowed, stays := r.Drift.Waves("apps", nil, nil)
	if len(allowed) > 0 || len(stays) != 6 {
		t.Errorf("%v may be replaced and %d stay, want none and 6", allowed, len(stays))
	}
	r.start(t) // a process with an empty memory
	if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) > 0 {
		t.Errorf("%v may be replaced before the first pass", allowed)
	}
	r.runDriftLoop(t)
	if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) > 0 {
		t.Errorf("%v may be replaced after a restart", allowed)
	}

	_, command, _ := strings.Cut(c.Message, nodestate.AnnotationDriftAllow+"=")
	token, _, _ := strings.Cut(command, " ")
	r.editPool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, nodestate.AnnotationDriftAllow, "00000000") })
	r.runDriftLoop(t)
	if c, _ := held(); !strings.Contains(c.Message, nodestate.AnnotationDriftAllow+"="+token) ||
		!strings.Contains(c.Message, "=00000000 approves another change") {
		t.Errorf("with the approval of another change, the condition of the pool is %q, want the right token in it", c.Message)
	}
	if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) > 0 {
		t.Errorf("%v may be replaced with the approval of another change", allowed)
	}
	r.editPool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, nodestate.AnnotationDriftAllow, token) })
	r.runDriftLoop(t)
	if allowed, stays = r.Drift.Waves("apps", nil, nil); len(allowed) != 1 || len(stays) != 5 {
		t.Errorf("after the approval, %v may be replaced and %v stay; want one replaced first", allowed, stays)
	}
	if _, ok := held(); ok {
		t.Error("the pool has the condition DriftHeld, although the user has allowed the drift")
	}

	// The user changes the class: it also selects the group by ID.
	r.editPool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, nodestate.AnnotationDriftAllow, "") })
	r.editClass(t, func(c *awsv1.EC2NodeClass) {
		c.Spec.SecurityGroupSelectorTerms = append(c.Spec.SecurityGroupSelectorTerms, awsv1.SecurityGroupSelectorTerm{ID: group})
	})
	r.runDriftLoop(t)
	r.runDriftLoop(t)
	if c, ok := held(); ok {
		t.Errorf("the user's change of the class is held: %s", c.Message)
	}

	// The user removes the tag and reverts the change of the class: no node drifts.
	r.Do(func(_ *world.World, now time.Time) {
		if err := r.estate.Region.Tag(now, []string{group}, nil, []string{"karpenter.sh/discovery"}); err != nil {
			t.Fatal(err)
		}
	})
	r.editClass(t, func(c *awsv1.EC2NodeClass) { c.Spec = before })
	r.runDriftLoop(t)
	if got := r.conditionTexts(t, karpv1.ConditionDrifted); len(got) > 0 {
		t.Errorf("claims drift although the configuration is as before: %v", got)
	}
}

// TestMassDriftStaysHeld: a mass drift that waits for approval stays held, and none of its nodes is replaced, when:
//   - nodes are removed, and too few are left to open the breaker
//   - the controller restarts while EC2 does not answer
//   - one more security group gets the tag
//
// The hold ends when no node drifts.
func TestMassDriftStaysHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claims := r.createServing(t, podNames(6)...)
	r.runDriftLoop(t)
	r.runDriftLoop(t)
	group := r.addTaggedGroup(t, "theirs")
	r.runDriftLoop(t)
	for i := range claims[2:] { // as consolidation does
		if err := r.api.Delete(t.Context(), &claims[2+i]); err != nil {
			t.Fatal(err)
		}
	}
	wantHeld := func(when, part string) {
		t.Helper()
		if c, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionDriftHeld); c.Reason != karpv1.ReasonMassDriftHeld ||
			!strings.Contains(c.Message, part) {
			t.Errorf("%s the pool has the condition %+v, want %q in it", when, c, part)
		}
		if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) > 0 {
			t.Errorf("%s %v may be replaced, want none", when, allowed)
		}
	}
	r.runDriftLoop(t)
	wantHeld("after four claims were deleted,", "2 of 2 nodes drift")

	r.start(t)
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "ec2:DescribeInstances"}} })
	if err := r.Drift.Pass(t.Context(), r.now()); err == nil {
		t.Error("EC2 does not answer, but the pass returns no error")
	}
	wantHeld("while EC2 does not answer,", "2 of 2 nodes drift")
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = nil })
	r.runDriftLoop(t)
	wantHeld("when EC2 answers again,", "2 of 2 nodes drift")
	another := r.addTaggedGroup(t, "another's")
	r.runDriftLoop(t)
	wantHeld("when one more group has the tag,", another)

	r.Do(func(_ *world.World, now time.Time) {
		if err := r.estate.Region.Tag(now, []string{group, another}, nil, []string{"karpenter.sh/discovery"}); err != nil {
			t.Fatal(err)
		}
	})
	r.reconcileClassAndPool(t)
	r.runDriftLoop(t)
	if c, ok := r.pool(t).StatusConditions().Find(karpv1.ConditionDriftHeld); ok {
		t.Errorf("the tags are as before, but the pool has the condition %s", c.Message)
	}
}

// TestGroupThatIsNoLongerSelected: an instance has a security group that the class no longer selects. The condition of
// its claim names the group, and the node may be replaced, because the drift of one node does not open the breaker.
func TestGroupThatIsNoLongerSelected(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	group := r.addTaggedGroup(t, "theirs")
	r.createServing(t, "web")
	r.runDriftLoop(t)
	r.Do(func(_ *world.World, now time.Time) {
		if err := r.estate.Region.Tag(now, []string{group}, nil, []string{"karpenter.sh/discovery"}); err != nil {
			t.Fatal(err)
		}
	})
	r.reconcileClassAndPool(t)
	r.runDriftLoop(t)
	for name, text := range r.conditionTexts(t, karpv1.ConditionDrifted) {
		if !strings.Contains(text, "it has "+group+", which the class does not select") {
			t.Errorf("the condition of %s is %q, want the group in it", name, text)
		}
	}
	if c, ok := r.pool(t).StatusConditions().Find(karpv1.ConditionDriftHeld); ok {
		t.Errorf("one drifted node opens the breaker: %s", c.Message)
	}
	if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) != 1 {
		t.Errorf("%v may be replaced, want the one node", allowed)
	}
}

// TestDriftStaysWhileOfferingsAreUnknown: until AWS has reported the offerings after a start, a node that drifted by
// its instance type stays drifted, so that its replacement continues. Once the offerings are known, they decide.
func TestDriftStaysWhileOfferingsAreUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.createServing(t, "web")[0]
	claim.StatusConditions().Set(r.now(), metav1.Condition{
		Type: karpv1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: string(drift.TypeNotFound),
		Message: "the node is t3.medium, which cannot be launched any more"})
	if err := r.api.Status().Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	drifts := func() bool {
		if err := r.Drift.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
		return r.claim(t, claim.Name).StatusConditions().IsTrue(karpv1.ConditionDrifted)
	}
	known := r.Market.Offered
	r.Market.Offered = ec2.Market{}
	if !drifts() {
		t.Error("the claim no longer drifts, although the offerings are not known")
	}
	r.Market.Offered = known
	if drifts() {
		t.Error("the claim still drifts, although its type can be launched")
	}
}
