package driftcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// maxStoredFailures is the maximum number of failed targets that are stored on a pool.
const maxStoredFailures = 5

// ImageHistoryOf returns the image records in an annotation of the class; the zero value if they cannot be read.
func ImageHistoryOf(class *awsv1.EC2NodeClass) drift.ImageHistory {
	var out drift.ImageHistory
	if err := json.Unmarshal([]byte(class.Annotations[kubeclient.AnnotationImages]), &out); err != nil {
		return drift.ImageHistory{}
	}
	return out
}

// FailuresOf returns the failures that are stored on a pool, by target. A target identifies the configuration with
// which replacements are launched.
func FailuresOf(pool *karpv1.NodePool) map[string]drift.Failure {
	var list []drift.Failure
	out := map[string]drift.Failure{}
	if err := json.Unmarshal([]byte(pool.Annotations[kubeclient.AnnotationFailed]), &list); err != nil {
		return out
	}
	for _, f := range list {
		out[f.Target] = f
	}
	return out
}

// MaxCacheLag is longer than any lag of the cache. A recorded failure counts for MaxCacheLag even if the cache does not
// show it. If the cache does not show it later, a user has removed it to request another try.
const MaxCacheLag = 30 * time.Second

// CurrentFailures returns the failures of a pool by target. They include failures that this process has just written, and
// that the cache may not show yet.
func (d *Reconciler) CurrentFailures(pool *karpv1.NodePool, now time.Time) map[string]drift.Failure {
	out := FailuresOf(pool)
	d.mu.Lock()
	defer d.mu.Unlock()
	for target, f := range d.fresh[pool.Name] {
		// The cache shows the failure, or MaxCacheLag has passed and a user has removed it.
		if len(out[target].Claims) >= len(f.Claims) || now.Sub(f.At) >= MaxCacheLag {
			delete(d.fresh[pool.Name], target)
			continue
		}
		out[target] = f
	}
	return out
}

// noteFailure takes a failure into account at once, so that no further replacement with the same target starts before
// the next pass.
func (d *Reconciler) noteFailure(pool string, f drift.Failure, isProven bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fresh == nil {
		d.fresh = map[string]map[string]drift.Failure{}
	}
	if d.fresh[pool] == nil {
		d.fresh[pool] = map[string]drift.Failure{}
	}
	d.fresh[pool][f.Target] = f
	last, known := d.last[pool]
	if !known {
		return
	}
	last.failed, last.proven = maps.Clone(last.failed), maps.Clone(last.proven)
	last.failed[f.Target], last.proven[f.Target] = f, isProven
	d.last = maps.Clone(d.last) // the pass that stored the map still reads it
	d.last[pool] = last
}

// storeJSON stores the value as JSON in an annotation. It removes the annotation if isEmpty is true.
func storeJSON(o client.Object, key string, value any, isEmpty bool) {
	text, err := json.Marshal(value)
	if err != nil || isEmpty { // err is always nil: strings, numbers and times can be encoded
		Annotate(o, key, "")
		return
	}
	Annotate(o, key, string(text))
}

// StoreImages writes the images whose nodes became fit or failed into an annotation of the class.
func StoreImages(class *awsv1.EC2NodeClass, m drift.ImageHistory) {
	storeJSON(class, kubeclient.AnnotationImages, m, len(m.Good) == 0 && len(m.Bad) == 0)
}

// storeFailures writes the latest failures into an annotation of the pool.
func storeFailures(pool *karpv1.NodePool, byTarget map[string]drift.Failure) {
	list := slices.SortedFunc(maps.Values(byTarget), func(a, b drift.Failure) int { return b.At.Compare(a.At) })
	storeJSON(pool, kubeclient.AnnotationFailed, list[:min(len(list), maxStoredFailures)], len(list) == 0)
}

// SlotOf returns the slot of an image: the requirements of the image on instance types, as text. Images with the same
// slot replace each other.
func SlotOf(ofImage []requirements.Requirement) string {
	var out []string
	for _, r := range ofImage {
		out = append(out, r.Key+" "+string(r.Operator)+" "+strings.Join(r.Values, ","))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// ImagesIn returns the images that a class uses.
func ImagesIn(class *awsv1.EC2NodeClass) []drift.Image {
	var out []drift.Image
	for _, i := range offerings.ImagesOf(class) {
		out = append(out, drift.Image{ID: i.ID, Name: i.Name, Slot: SlotOf(i.Requirements)})
	}
	return out
}

// writeClasses stores on each class the objects that its selectors find, and the good images: those with nodes that are
// fit for pods.
func (d *Reconciler) writeClasses(ctx context.Context, seen driftInput, pools map[string]poolDrift) error {
	for _, name := range slices.Sorted(maps.Keys(seen.classes)) {
		class := seen.classes[name]
		if class.DeletionTimestamp != nil {
			continue
		}
		drifting := map[string]bool{} // selectors because of which nodes drift: Settle keeps their stored objects
		stored, history := storedSelections(class), ImageHistoryOf(class)
		next := history
		for _, pool := range seen.pools {
			for _, n := range pools[pool.Name].nodes {
				if n.claim.Spec.NodeClassRef.Name != name {
					continue
				}
				n.addFields(drifting)
				next = recordGoodImage(next, class, n)
			}
		}
		settled := stored.Settle(currentSelections(class), drifting)
		if settled.Equal(stored) && sameHistory(next, history) {
			continue
		}
		_, err := d.Objects.PatchClass(ctx, class, func(c *awsv1.EC2NodeClass) {
			storeJSON(c, kubeclient.AnnotationSelected, settled, len(settled) == 0)
			StoreImages(c, next)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addFields adds to drifting the selector fields because of which the node drifts, or may drift.
func (n nodeDrift) addFields(drifting map[string]bool) {
	if n.isUnknown {
		drifting[drift.FieldGroups], drifting[drift.FieldSubnets] = true, true
	}
	for _, v := range n.verdicts {
		for _, f := range v.Fields {
			drifting[f] = true
		}
	}
}

// recordGoodImage records the image of the node as good if the node is fit for pods, and returns the new history. The
// image that the class uses now replaces an earlier good image. An older image is recorded only if no image of the slot
// is known as good.
func recordGoodImage(m drift.ImageHistory, class *awsv1.EC2NodeClass, n nodeDrift) drift.ImageHistory {
	inUse, ok := ami.For(offerings.ImagesOf(class), n.claim.Labels)
	if !n.isFit || !ok || n.claim.Status.ImageID == "" {
		return m
	}
	slot := SlotOf(inUse.Requirements)
	good, known := m.GoodOf(slot)
	switch {
	case n.claim.Status.ImageID == inUse.ID && good.ID != inUse.ID:
		return m.WithGood(drift.Image{ID: inUse.ID, Name: inUse.Name, Slot: slot})
	case !known:
		return m.WithGood(drift.Image{ID: n.claim.Status.ImageID, Slot: slot})
	}
	return m
}

func sameHistory(a, b drift.ImageHistory) bool {
	return slices.Equal(a.Good, b.Good) && slices.Equal(a.Bad, b.Bad)
}

// RecordFailure records that the claim's instance did not become a node that is fit for pods, and why. It must be
// called before the claim is changed or deleted. It stores the failure on the pool. If the target has more fit nodes
// than failed nodes, the failure has no further effect. Otherwise no more nodes are replaced with that target, and the
// class marks the image as bad if an earlier image was good. On a nil receiver RecordFailure does nothing.
func (d *Reconciler) RecordFailure(ctx context.Context, claim *karpv1.NodeClaim, why string, now time.Time) error {
	if d == nil || claim.Status.ImageID == "" {
		return nil
	}
	pool, class := &karpv1.NodePool{}, &awsv1.EC2NodeClass{}
	err := d.Cache.Get(ctx, client.ObjectKey{Name: claim.Labels[karpv1.LabelNodePool]}, pool)
	if err == nil {
		err = d.Cache.Get(ctx, client.ObjectKey{Name: claim.Spec.NodeClassRef.Name}, class)
	}
	if apierrors.IsNotFound(err) {
		return nil // the pool or the class is gone
	}
	if err != nil {
		return err
	}
	target, fit := d.targetOf(claim, pool, class)
	failures := d.CurrentFailures(pool, now)
	f := failures[target]
	if !slices.Contains(f.Claims, claim.Name) { // otherwise a previous process has recorded the failure
		f.Claims = append(f.Claims, claim.Name)
	}
	f.Target, f.At, f.Image, f.Why = target, now.UTC().Truncate(time.Second), claim.Status.ImageID, claim.Name+": "+why
	failures[target] = f
	if _, err := d.Objects.PatchPool(ctx, pool, func(p *karpv1.NodePool) { storeFailures(p, failures) }); err != nil {
		return err
	}
	isProven := fit > len(f.Claims)
	d.noteFailure(pool.Name, f, isProven)
	if isProven {
		return nil
	}
	return d.recordBadImage(ctx, claim, class, f)
}

// targetOf returns the target that the claim was made from, and how many fit nodes of the pool were made from the same
// target.
func (d *Reconciler) targetOf(claim *karpv1.NodeClaim, pool *karpv1.NodePool, class *awsv1.EC2NodeClass) (target string, fit int) {
	a := claim.Annotations
	target = drift.Target(
		drift.Stamp{Hash: a[karpv1.AnnotationNodePoolHash], Version: a[karpv1.AnnotationNodePoolHashVersion]},
		drift.Stamp{Hash: a[awsv1.AnnotationHash], Version: a[awsv1.AnnotationHashVersion]}, claim.Status.ImageID, groupIDs(class))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.last[pool.Name].nodes {
		if n.isFit && n.target == target && len(n.verdicts) == 0 {
			fit++
		}
	}
	return target, fit
}

// recordBadImage records on the class that the image of a claim is bad. It does nothing if no other image is known to
// be good.
func (d *Reconciler) recordBadImage(ctx context.Context, claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, f drift.Failure) error {
	images := offerings.ImagesOf(class)
	index := slices.IndexFunc(images, func(i ami.Image) bool { return i.ID == claim.Status.ImageID })
	if index < 0 || claim.Annotations[awsv1.AnnotationHash] != class.Annotations[awsv1.AnnotationHash] {
		return nil // the class has changed since the claim was created
	}
	image := images[index]
	history := ImageHistoryOf(class)
	next := history.WithBad(drift.BadImage{
		Image: drift.Image{ID: image.ID, Name: image.Name, Slot: SlotOf(image.Requirements)}, Generation: class.Generation, At: f.At, Why: f.Why,
	})
	if sameHistory(history, next) {
		return nil
	}
	if _, err := d.Objects.PatchClass(ctx, class, func(c *awsv1.EC2NodeClass) { StoreImages(c, next) }); err != nil {
		return err
	}
	d.Log.Error("an image is not used any more, because a node with it failed", "EC2NodeClass", class.Name,
		"image", image.ID, "NodeClaim", claim.Name, "cause", f.Why)
	return nil
}

// recordStuck records the failure of nodes that joined but were not initialized in time, once for each target. Nodes of
// a proven target, and nodes that drift, do not count.
func (d *Reconciler) recordStuck(ctx context.Context, p poolDrift, now time.Time) error {
	for _, n := range p.nodes {
		c := n.claim.StatusConditions()
		registered, _ := c.Find(karpv1.ConditionRegistered)
		isStuck := registered.Status == "True" && !c.IsTrue(karpv1.ConditionInitialized) &&
			now.Sub(registered.LastTransitionTime.Time) >= lifecycle.RegistrationTimeout
		if _, isReported := p.failed[n.target]; !isStuck || isReported || p.proven[n.target] || len(n.verdicts) > 0 {
			continue
		}
		initialized, _ := c.Find(karpv1.ConditionInitialized)
		if err := d.RecordFailure(ctx, n.claim,
			fmt.Sprintf("its node was not initialized within %s: %s", lifecycle.RegistrationTimeout, initialized.Message), now); err != nil {
			return err
		}
	}
	return nil
}
