package driftcheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

type driftWriter interface {
	PatchClaim(ctx context.Context, claim *karpv1.NodeClaim, change func(*karpv1.NodeClaim)) (*karpv1.NodeClaim, error)
	PatchPool(ctx context.Context, pool *karpv1.NodePool, change func(*karpv1.NodePool)) (*karpv1.NodePool, error)
	PatchClass(ctx context.Context, class *awsv1.EC2NodeClass, change func(*awsv1.EC2NodeClass)) (*awsv1.EC2NodeClass, error)
}

type instanceLister interface {
	Instances(ctx context.Context) ([]ec2.Instance, error)
}

// Reconciler finds the nodes that no longer match their NodePool and EC2NodeClass, sets conditions on their claims, and
// decides which of these nodes may be replaced now. It does not replace nodes itself.
type Reconciler struct {
	Cache   client.Reader       // reads objects from the informers
	Fleet   instanceLister      // lists the instances of the cluster
	Market  *offerings.Catalogs // the offerings of EC2 and the placement groups
	Objects driftWriter         // writes objects to the API server
	// Authority is the cluster's certificate authority in base64. Drift hashes include it.
	Authority string
	// ComparesReservations is true if drift of capacity reservations is detected.
	ComparesReservations bool
	Breaker              loop.Breaker       // holds replacements if too many nodes drift at once because of a change in AWS
	Events               loop.EventRecorder // emits events
	Metrics              *metrics.Metrics   // the metrics of this process
	Log                  *slog.Logger       // the log of this process
	Now                  loop.Clock         // the clock; nil uses time.Now

	failures  loop.Backoff            // makes the loop log a lasting error only once
	instances map[string]ec2.Instance // instances of the cluster, by provider ID
	listed    time.Time               // when instances was last read from EC2

	mu    sync.Mutex
	last  map[string]poolDrift                // by pool: result of the last pass
	fresh map[string]map[string]drift.Failure // by pool and target: failures that the cache may not show yet
}

// Timing of the loop.
const (
	driftInterval = 5 * time.Second                            // between two passes
	MaxListAge    = time.Minute                                // maximum age of the list of instances
	FitAfter      = time.Minute                                // how long a node must have been initialized to count as fit for pods
	maxYoungAge   = 2*lifecycle.RegistrationTimeout + FitAfter // one timeout to register, one to be initialized, then FitAfter
)

// Start runs the loop until ctx ends.
func (d *Reconciler) Start(ctx context.Context) error {
	ticker := time.NewTicker(driftInterval)
	defer ticker.Stop()
	for {
		if err := d.Pass(ctx, d.Now.Now()); err != nil && !errors.Is(err, context.Canceled) {
			next, hint := loop.ClassifyError(err)
			if next != kubeclient.Reread && next != kubeclient.Gone {
				d.Metrics.Failures.WithLabelValues("drift", string(next)).Inc()
				if _, isNews := d.failures.Fail(d.Now.Now(), "drift", awserr.StableText(err)); isNews {
					d.Log.Error("cannot check for drift", "error", err.Error(), "hint", hint)
				}
			}
		} else {
			d.failures.Clear("drift")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Pass writes the hashes and the condition Drifted of all NodeClaims. It returns the errors of EC2 and the API server.
func (d *Reconciler) Pass(ctx context.Context, now time.Time) error {
	defer loop.Working(ctx, loop.LoopDrift, "").End()
	// 1. read
	listErr := d.listInstances(ctx, now)
	seen, err := d.read(ctx, now)
	if err != nil {
		return err
	}
	// Hashes are written first, because all later steps use them.
	if err := d.stampAll(ctx, seen); err != nil {
		return errors.Join(listErr, err)
	}
	// 2. decide
	pools := make(map[string]poolDrift, len(seen.pools))
	for _, pool := range seen.pools {
		pools[pool.Name] = d.judge(seen, pool, now)
	}
	d.mu.Lock()
	d.last = pools
	d.mu.Unlock()
	// 3. act, 4. report
	errs := []error{listErr, d.writeClasses(ctx, seen, pools)}
	for _, pool := range seen.pools {
		errs = append(errs, d.write(ctx, pools[pool.Name], now))
	}
	d.setMetrics(pools)
	return errors.Join(errs...)
}

// listInstances reads d.instances from EC2 if the list is older than MaxListAge. If EC2 does not answer, the old list
// stays in use.
func (d *Reconciler) listInstances(ctx context.Context, now time.Time) error {
	if now.Sub(d.listed) < MaxListAge {
		return nil
	}
	all, err := d.Fleet.Instances(ctx)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	d.instances, d.listed = make(map[string]ec2.Instance, len(all)), now
	for _, i := range all {
		d.instances[i.ProviderID()] = i
	}
	return nil
}

type driftInput struct {
	pools        []*karpv1.NodePool               // pools whose nodes can drift, sorted by name
	classes      map[string]*awsv1.EC2NodeClass   // by name
	claims       map[string][]*karpv1.NodeClaim   // by pool: claims that have an instance and are not being deleted
	ready        map[string]bool                  // provider IDs of ready Nodes
	poolOrigins  map[string]drift.Origin          // by pool: hash and parts of its present spec
	classOrigins map[string]drift.Origin          // by class: hash and parts of its present spec
	types        map[string]map[string]typeOffers // offerings by pool and instance type; inner map nil: not known now
	settings     map[string]driftSettings         // by pool: its drift settings
}

func (d *Reconciler) read(ctx context.Context, now time.Time) (driftInput, error) {
	seen := driftInput{
		classes: map[string]*awsv1.EC2NodeClass{}, claims: map[string][]*karpv1.NodeClaim{}, poolOrigins: map[string]drift.Origin{},
		classOrigins: map[string]drift.Origin{}, types: map[string]map[string]typeOffers{}, settings: map[string]driftSettings{},
	}
	var pools karpv1.NodePoolList
	var classes awsv1.EC2NodeClassList
	var claims karpv1.NodeClaimList
	for _, list := range []client.ObjectList{&pools, &classes, &claims} {
		if err := d.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return seen, fmt.Errorf("check for drift: %w", err)
		}
	}
	var err error
	if seen.ready, err = nodestate.ReadyNodes(ctx, d.Cache); err != nil {
		return seen, err
	}
	for i := range classes.Items {
		class := &classes.Items[i]
		origin, err := conversion.CurrentClassFields(class, d.Authority)
		if err != nil {
			return seen, err
		}
		seen.classes[class.Name], seen.classOrigins[class.Name] = class, origin
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		if !canDrift(pool, seen.classes) {
			continue
		}
		origin, err := conversion.CurrentPoolFields(pool)
		if err != nil {
			return seen, err
		}
		seen.pools, seen.poolOrigins[pool.Name] = append(seen.pools, pool), origin
		seen.settings[pool.Name] = driftSettingsOf(pool, now)
		seen.types[pool.Name] = d.offersByType(seen.classes[pool.Spec.Template.Spec.NodeClassRef.Name], pool.Name, now)
	}
	slices.SortFunc(seen.pools, func(a, b *karpv1.NodePool) int { return compareNames(a, b) })
	for i := range claims.Items {
		claim := &claims.Items[i]
		if nodestate.IsServed(claim.Spec.NodeClassRef) && claim.DeletionTimestamp == nil && claim.Status.ProviderID != "" {
			pool := claim.Labels[karpv1.LabelNodePool]
			seen.claims[pool] = append(seen.claims[pool], claim)
		}
	}
	return seen, nil
}

// canDrift reports whether nodes of the pool can drift: its class exists, and neither the pool nor the class is being
// deleted.
func canDrift(pool *karpv1.NodePool, classes map[string]*awsv1.EC2NodeClass) bool {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if !nodestate.IsServed(ref) || pool.DeletionTimestamp != nil {
		return false
	}
	class := classes[ref.Name]
	return class != nil && class.DeletionTimestamp == nil
}

// compareNames compares two objects by name, for sorting. Their names must differ.
func compareNames(a, b client.Object) int {
	if a.GetName() < b.GetName() {
		return -1
	}
	return 1
}

// stampAll writes hashes first on claims, then on pools and classes. The order matters when the hash version has
// changed: if claims were updated last, all of them would seem to drift.
func (d *Reconciler) stampAll(ctx context.Context, seen driftInput) error {
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, pool := range seen.pools {
		for _, claim := range seen.claims[pool.Name] {
			group.Go(func() error { return d.stamp(ctx, claim, pool, seen) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, pool := range seen.pools {
		written, err := d.stampPool(ctx, pool, seen.poolOrigins[pool.Name].Stamp)
		if err != nil {
			return err
		}
		seen.pools[i] = written
	}
	for name, class := range seen.classes {
		if class.DeletionTimestamp != nil {
			continue
		}
		written, err := d.stampClass(ctx, class, seen.classOrigins[name].Stamp)
		if err != nil {
			return err
		}
		seen.classes[name] = written
	}
	return nil
}

// stamp writes the hashes of the pool and the class, with the present hash version, to a claim that lacks them. The
// hashes are those of the present configuration, unless the claim already drifts. Karpenter does the same.
func (d *Reconciler) stamp(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool, seen driftInput) error {
	recordedPool, recordedClass := conversion.RecordedFields(claim, pool)
	presentPool, presentClass := seen.poolOrigins[pool.Name], seen.classOrigins[claim.Spec.NodeClassRef.Name]
	_, drifts := claim.StatusConditions().Find(karpv1.ConditionDrifted)
	wantPool, wantClass := originToWrite(recordedPool, presentPool, drifts), originToWrite(recordedClass, presentClass, drifts)
	if wantPool == nil && wantClass == nil {
		return nil
	}
	_, err := d.Objects.PatchClaim(ctx, claim, func(c *karpv1.NodeClaim) { conversion.SetRecordedFields(c, wantPool, wantClass) })
	if err != nil && kubeclient.Classify(err) == kubeclient.Gone {
		return nil
	}
	return err
}

// originToWrite returns the hash and parts to write to a claim, or nil if nothing must be written. onClaim is the
// origin on the claim, and present is the origin of the present configuration. A claim that drifts keeps its hash, so
// that it still drifts.
func originToWrite(onClaim, present drift.Origin, drifts bool) *drift.Origin {
	switch {
	case present.Stamp.Version == "":
		return nil // the class does not exist
	case onClaim.Stamp.Version != present.Stamp.Version && !drifts:
		return &present
	case onClaim.Stamp.Version != present.Stamp.Version:
		return &drift.Origin{Stamp: drift.Stamp{Hash: onClaim.Stamp.Hash, Version: present.Stamp.Version}}
	case onClaim.Stamp == present.Stamp && onClaim.Parts == nil:
		return &present // Karpenter's claims lack the parts
	}
	return nil
}

// stampPool writes the hash to the pool, and returns the updated pool for later writes of the same pass.
func (d *Reconciler) stampPool(ctx context.Context, pool *karpv1.NodePool, s drift.Stamp) (*karpv1.NodePool, error) {
	if pool.Annotations[karpv1.AnnotationNodePoolHash] == s.Hash && pool.Annotations[karpv1.AnnotationNodePoolHashVersion] == s.Version {
		return pool, nil
	}
	return d.Objects.PatchPool(ctx, pool, func(p *karpv1.NodePool) {
		Annotate(p, karpv1.AnnotationNodePoolHash, s.Hash)
		Annotate(p, karpv1.AnnotationNodePoolHashVersion, s.Version)
	})
}

func (d *Reconciler) stampClass(ctx context.Context, class *awsv1.EC2NodeClass, s drift.Stamp) (*awsv1.EC2NodeClass, error) {
	if class.Annotations[awsv1.AnnotationHash] == s.Hash && class.Annotations[awsv1.AnnotationHashVersion] == s.Version {
		return class, nil
	}
	return d.Objects.PatchClass(ctx, class, func(c *awsv1.EC2NodeClass) {
		Annotate(c, awsv1.AnnotationHash, s.Hash)
		Annotate(c, awsv1.AnnotationHashVersion, s.Version)
	})
}

// Annotate sets an annotation; an empty value removes it.
func Annotate(o client.Object, key, value string) {
	all := o.GetAnnotations()
	if value == "" {
		delete(all, key)
		o.SetAnnotations(all)
		return
	}
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	o.SetAnnotations(all)
}
