package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/fleetprice"
	"github.com/joiner-sh/joiner/internal/controller/gc"
	"github.com/joiner-sh/joiner/internal/controller/interruptions"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
	"github.com/joiner-sh/joiner/internal/controller/nodepool"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// Controllers holds all control loops.
type Controllers struct {
	Provisioner *provisioner.Provisioner     // creates NodeClaims for pending pods
	Claims      *nodeclaim.Reconciler        // reconciles NodeClaims
	Orphans     *nodeclaim.OrphanReconciler  // drains deleted Nodes that have no NodeClaim
	NodeClasses *nodeclass.Reconciler        // reconciles EC2NodeClasses
	Pools       *nodepool.Reconciler         // reconciles NodePools
	Overlays    *offerings.OverlayReconciler // validates NodeOverlays; nil: NodeOverlays are ignored
	Emptiness   *disruptor.Emptiness         // deletes empty nodes
	Moves       *disruptor.Disruptor         // replaces drifted and underutilized nodes
	Sweeper     *gc.Collector                // removes instances, NodeClaims and AWS resources that are no longer used
	Market      *offerings.Catalogs          // reads the offerings of EC2
	Pods        *nodestate.PodWatch          // handles changes of pods
	// Statics keeps static pools at spec.replicas; nil disables it.
	Statics *nodepool.StaticReconciler
	// Interruption processes the interruption queue and replaces interrupted nodes; nil disables it.
	Interruption *interruptions.Handler
	// Shifts follows zonal shifts of EKS; nil disables it.
	Shifts *offerings.ZonalShifts
	// IneffectiveFields reports settings that have no effect in Joiner.
	IneffectiveFields *nodeclass.IneffectiveFieldWarner
	// Diagnoses finds out why nodes do not join; nil disables it.
	Diagnoses *diagnoser.Diagnoser
	// Drift finds drifted nodes.
	Drift *driftcheck.Reconciler
	// FleetPrice reports the price of the nodes; nil disables it.
	FleetPrice *fleetprice.Reporter
	// Progress watches all loops; nil disables it.
	Progress *loop.Progress
}

// How many objects of a kind are reconciled concurrently. The number is high for claims, because their reconciles
// mostly wait for EC2.
const (
	claimWorkers = 200
	otherWorkers = 10
)

// Add adds the loops to the manager, which runs them while it leads.
func (l Controllers) Add(ctx context.Context, m manager.Manager) error {
	if err := kubeclient.Index(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	pods, err := m.GetCache().GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	followPods := func(ctx context.Context) error { return l.Pods.Follow(ctx, pods) }
	if err := l.addObjects(m); err != nil {
		return err
	}
	loops := []func(context.Context) error{
		followPods, l.Market.Measured.Start, l.Market.Start, l.Provisioner.Events.Start, l.Provisioner.Start, l.Emptiness.Start,
		l.Moves.Start, l.Sweeper.Start, l.Drift.Start, l.Claims.OpenWhenStopped,
	}
	if l.Interruption != nil {
		loops = append(loops, l.Interruption.Start)
	}
	if l.Shifts != nil {
		loops = append(loops, l.Shifts.Start)
	}
	if l.Diagnoses != nil {
		loops = append(loops, l.Diagnoses.Start)
	}
	if l.FleetPrice != nil {
		loops = append(loops, l.FleetPrice.Start)
	}
	if l.Progress != nil {
		loops = append(loops, l.Progress.Start)
	}
	for _, run := range loops {
		if err := m.Add(leading(func(ctx context.Context) error { return run(l.Progress.With(ctx)) })); err != nil {
			return fmt.Errorf("add loop: %w", err)
		}
	}
	return nil
}

type objectLoop struct {
	name    string               // one of the Loop constants of package loop
	build   *builder.Builder     // defines the watches of the loop
	loop    reconcile.Reconciler // reconciles objects of one kind
	workers int                  // how many of them concurrently
}

func (l Controllers) addObjects(m manager.Manager) error {
	cached := m.GetCache()
	claims := builder.ControllerManagedBy(m).Named("nodeclaim.lifecycle").For(&karpv1.NodeClaim{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return claimsOfNode(ctx, cached, o)
		}), builder.WithPredicates(nodestate.NodeMatters())).
		Watches(&awsv1.EC2NodeClass{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return unjoinedClaimsOfClass(ctx, cached, o)
		})).
		Watches(&karpv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return unjoinedClaimsOfPool(ctx, cached, o)
		}), builder.WithPredicates(nodestate.PoolMatters()))
	orphans := builder.ControllerManagedBy(m).Named("node.termination").
		For(&corev1.Node{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			node, ok := o.(*corev1.Node)
			return ok && nodeclaim.IsOrphan(node)
		})))
	classes := builder.ControllerManagedBy(m).Named("nodeclass").
		For(&awsv1.EC2NodeClass{}, builder.WithPredicates(nodestate.ClassMatters())).
		Watches(&karpv1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(classOfClaim), builder.WithPredicates(nodestate.OnlyDeletes()))
	if d := l.Diagnoses; d != nil {
		claims.WatchesRawSource(source.Channel(d.Channel(&d.ClaimsToReconcile), &handler.EnqueueRequestForObject{}))
		classes.WatchesRawSource(source.Channel(d.Channel(&d.ClassesToReconcile), &handler.EnqueueRequestForObject{}))
	}
	pools := builder.ControllerManagedBy(m).Named("nodepool").
		For(&karpv1.NodePool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&awsv1.EC2NodeClass{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			var pools karpv1.NodePoolList
			if err := cached.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
				return nil
			}
			return requests(nodepool.PoolsOfClass(pools.Items, o.GetName()))
		}))
	all := []objectLoop{
		{loop.LoopClaims, claims, l.Claims, claimWorkers}, {loop.LoopOrphans, orphans, l.Orphans, otherWorkers},
		{loop.LoopClasses, classes, l.NodeClasses, otherWorkers}, {loop.LoopPools, pools, l.Pools, otherWorkers},
	}
	if l.Statics != nil {
		all = append(all, objectLoop{loop.LoopStatics, watchStatics(m), l.Statics, otherWorkers})
	}
	if l.Overlays != nil {
		all = append(all, objectLoop{loop.LoopOverlays, watchOverlays(m), l.Overlays, 1}) // all overlays are one request
	}
	all = append(all, watchIneffectiveFields(l.IneffectiveFields, m)...)
	for _, c := range all {
		if err := c.build.WithOptions(controller.Options{
			MaxConcurrentReconciles: c.workers,
			ReconciliationTimeout:   loop.ReconcileTimeout,
		}).Complete(loop.Watched{Reconciler: c.loop, Progress: l.Progress, Loop: c.name}); err != nil {
			return fmt.Errorf("add loop: %w", err)
		}
	}
	return nil
}

// watchStatics returns a builder that reconciles a pool when its spec or its readiness changes, and when the number of
// its claims changes.
func watchStatics(m manager.Manager) *builder.Builder {
	ofClaim := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if pool := o.GetLabels()[karpv1.LabelNodePool]; pool != "" {
			return requests([]string{pool})
		}
		return nil
	})
	return builder.ControllerManagedBy(m).Named("static").
		For(&karpv1.NodePool{}, builder.WithPredicates(nodestate.PoolMatters())).
		Watches(&karpv1.NodeClaim{}, ofClaim, builder.WithPredicates(nodestate.ClaimCountMatters()))
}

// watchIneffectiveFields returns loops that check an object when it is created and when its spec or annotations change.
// NodeOverlays are checked only if the cluster has their CRD.
func watchIneffectiveFields(warner *nodeclass.IneffectiveFieldWarner, m manager.Manager) []objectLoop {
	loopFor := func(name string, kind client.Object, reconciler reconcile.Func) objectLoop {
		changed := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
			predicate.AnnotationChangedPredicate{}))
		return objectLoop{loop.LoopIneffectiveFields, builder.ControllerManagedBy(m).Named("honour."+name).For(kind, changed), reconciler, 1}
	}
	out := []objectLoop{
		loopFor("nodepool", &karpv1.NodePool{}, warner.Pool), loopFor("nodeclass", &awsv1.EC2NodeClass{}, warner.Class),
		loopFor("nodeclaim", &karpv1.NodeClaim{}, warner.Claim),
	}
	// Without permission to list NodeOverlays, their informer never syncs, and the manager waits for all informers.
	if warner.SkipOverlays {
		return out
	}
	overlays := schema.GroupKind{Group: karpv1.Group, Kind: "NodeOverlay"}
	if _, err := m.GetRESTMapper().RESTMapping(overlays, karpv1alpha1.Version); err == nil {
		out = append(out, loopFor("nodeoverlay", &karpv1alpha1.NodeOverlay{}, warner.Overlay))
	}
	return out
}

// watchOverlays returns a builder that reconciles all NodeOverlays when one of them or a NodePool changes.
func watchOverlays(m manager.Manager) *builder.Builder {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return requests([]string{offerings.AllOverlays})
	})
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return builder.ControllerManagedBy(m).Named("nodeoverlay").
		Watches(&karpv1alpha1.NodeOverlay{}, toAll, changed).Watches(&karpv1.NodePool{}, toAll, changed)
}

type leading func(context.Context) error

// Start runs the loop.
func (l leading) Start(ctx context.Context) error { return l(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l leading) NeedLeaderElection() bool { return true }

func claimsOfNode(ctx context.Context, reader client.Reader, o client.Object) []reconcile.Request {
	node, ok := o.(*corev1.Node)
	if !ok || node.Spec.ProviderID == "" {
		return nil
	}
	var claims karpv1.NodeClaimList
	if err := reader.List(ctx, &claims, client.MatchingFields{kubeclient.IndexClaimProvider: node.Spec.ProviderID},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return requests(namesOf(claims.Items))
}

// unjoinedClaimsOfClass returns requests for the claims of a class that have no instance or no Node yet. Claims without
// an instance may wait for the class to become ready. For the others, the launch may be outdated by the change of the
// class.
func unjoinedClaimsOfClass(ctx context.Context, reader client.Reader, o client.Object) []reconcile.Request {
	var claims karpv1.NodeClaimList
	if err := reader.List(ctx, &claims, client.MatchingFields{kubeclient.IndexClaimClass: o.GetName()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var names []string
	for _, c := range claims.Items {
		if c.Status.ProviderID == "" || c.Status.NodeName == "" {
			names = append(names, c.Name)
		}
	}
	return requests(names)
}

func unjoinedClaimsOfPool(ctx context.Context, reader client.Reader, o client.Object) []reconcile.Request {
	var claims karpv1.NodeClaimList
	if err := reader.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var names []string
	for _, c := range claims.Items {
		if c.Labels[karpv1.LabelNodePool] == o.GetName() && c.Status.NodeName == "" {
			names = append(names, c.Name)
		}
	}
	return requests(names)
}

func classOfClaim(_ context.Context, o client.Object) []reconcile.Request {
	claim, ok := o.(*karpv1.NodeClaim)
	if !ok || claim.Spec.NodeClassRef == nil {
		return nil
	}
	return requests([]string{claim.Spec.NodeClassRef.Name})
}

func namesOf(claims []karpv1.NodeClaim) []string {
	var out []string
	for _, c := range claims {
		out = append(out, c.Name)
	}
	return out
}

func requests(names []string) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range names {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return out
}
