package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/daemonset"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Cluster is the cluster state that upstream's controller has in memory before it plans.
type Cluster struct {
	store   *store
	state   *state.Cluster
	pools   []*v1.NodePool                           // the highest weight first
	types   map[string][]*cloudprovider.InstanceType // instance types, by name of the NodePool
	daemons []*corev1.Pod                            // one pod of each DaemonSet
	pending []*corev1.Pod                            // pending pods
}

// Load fills upstream's cluster state. It does not change the objects.
func Load(o snapshot.Objects, market catalog.Market) (*Cluster, error) {
	log.SetLogger(logging.NopLogger)
	c := &Cluster{store: newStore(o), types: map[string][]*cloudprovider.InstanceType{}}
	c.state = state.NewCluster(clock.RealClock{}, c.store, nil)
	byClass := map[string][]*cloudprovider.InstanceType{}
	for class, offered := range market {
		byClass[class] = instanceTypes(offered)
	}
	for _, p := range o.Pools {
		upstreamPool, err := poolOf(p)
		if err != nil {
			return nil, err
		}
		c.pools = append(c.pools, upstreamPool)
		c.types[p.Name] = byClass[p.Spec.Template.Spec.NodeClassRef.Name]
	}
	nodepool.OrderByWeight(c.pools)
	ctx := planningContext()
	for _, n := range o.Nodes {
		if err := c.state.UpdateNode(ctx, n.DeepCopy()); err != nil {
			return nil, fmt.Errorf("pass upstream the node %s: %w", n.Name, err)
		}
	}
	for _, p := range o.Pods {
		if p.Spec.NodeName == "" {
			c.pending = append(c.pending, p)
			continue
		}
		if err := c.state.UpdatePod(ctx, p); err != nil {
			return nil, fmt.Errorf("pass upstream the pod %s: %w", p.Name, err)
		}
	}
	for _, d := range o.DaemonSets {
		c.daemons = append(c.daemons, daemonset.PodForDaemonSet(d.DeepCopy()))
	}
	return c, nil
}

// poolOf converts a NodePool to upstream's type, through JSON like a manifest.
func poolOf(p any) (*v1.NodePool, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the pool: %w", err)
	}
	var out v1.NodePool
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("read the pool as upstream's: %w", err)
	}
	return &out, nil
}

// planningContext returns the context for upstream's planning, with upstream's default options.
func planningContext() context.Context {
	return options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), &options.Options{
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.FeatureGates{ReservedCapacity: true},
	})
}

// Run makes one plan, with the state that upstream builds for every plan.
type Run struct {
	cluster   *Cluster
	ctx       context.Context
	scheduler *scheduling.Scheduler
	pods      []*corev1.Pod // the pods to plan for
}

// Prepare copies the nodes, counts the existing pods by topology, and creates a scheduler with the given number of
// workers. Upstream's controller does the same before every plan. The time of Solve does not include Prepare.
func (c *Cluster) Prepare(workers int) (*Run, error) {
	r := &Run{cluster: c, ctx: planningContext(), pods: slices.Clone(c.pending)}
	opts := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback, scheduling.NumConcurrentReconciles(workers),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict),
	}
	nodes := c.state.DeepCopyNodes().Active()
	topology, err := scheduling.NewTopology(r.ctx, c.store, c.state, nodes, c.pools, c.types, r.pods, opts...)
	if err != nil {
		return nil, fmt.Errorf("count upstream's topology: %w", err)
	}
	daemons := make([]*corev1.Pod, 0, len(c.daemons))
	for _, d := range c.daemons {
		daemons = append(daemons, d.DeepCopy())
	}
	r.scheduler = scheduling.NewScheduler(r.ctx, c.store, c.pools, c.state, nodes, topology, c.types, daemons,
		events.NewRecorder(&record.FakeRecorder{}), clock.RealClock{}, nil, nil, opts...)
	return r, nil
}
