package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/cost"

	"github.com/joiner-sh/joiner/bench/fleet"
)

// Disruptor runs upstream's disruption controller, queue and provisioner on a simulated fleet.
type Disruptor struct {
	ctx         context.Context
	fleet       *fleet.Fleet
	api         *apiServer
	clock       *simulatedClock
	state       *state.Cluster
	provisioner *provisioning.Provisioner
	queue       *disruption.Queue
	controller  *disruption.Controller

	provisionScheduled bool  // a call of provision is scheduled in the fleet
	firstErr           error // first error of a callback, which Disrupt and Pass return
}

// Disrupt makes upstream the controller of the fleet. spotToSpot allows upstream to replace spot instances by other
// spot instances. work returns the CPU time of the process so far, or the real time if that is less, in seconds. The
// work during a pass is added to the simulated time.
func Disrupt(f *fleet.Fleet, spotToSpot bool, work func() float64) (*Disruptor, error) {
	log.SetLogger(logging.NopLogger)
	d := &Disruptor{fleet: f, api: newAPIServer()}
	d.clock = &simulatedClock{base: f.Now(), work: work, advance: f.Advance}
	d.ctx = options.ToContext(injection.WithControllerName(context.Background(), "disruption"), &options.Options{
		// upstream's default values, except that of SpotToSpotConsolidation
		CPURequests:       1000,
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.FeatureGates{ReservedCapacity: true, SpotToSpotConsolidation: spotToSpot},
	})
	cloudProvider := &cloud{types: map[string][]*cloudprovider.InstanceType{}}
	for _, p := range f.Pools {
		upstreamPool, err := poolOf(p)
		if err != nil {
			return nil, err
		}
		for _, condition := range []string{v1.ConditionTypeValidationSucceeded, v1.ConditionTypeNodeClassReady} {
			upstreamPool.StatusConditions().SetTrue(condition)
		}
		if !upstreamPool.StatusConditions().Root().IsTrue() {
			return nil, fmt.Errorf("pool %s is not ready for upstream", p.Name)
		}
		d.api.pools[p.Name] = upstreamPool
		cloudProvider.types[p.Name] = instanceTypes(f.Market[p.Spec.Template.Spec.NodeClassRef.Name])
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	d.state = state.NewCluster(d.clock, d.api, cloudProvider)
	d.provisioner = provisioning.NewProvisioner(d.api, recorder, cloudProvider, d.state, d.clock, nil, nil)
	d.queue = disruption.NewQueue(d.api, recorder, d.state, d.clock, d.provisioner)
	d.controller = disruption.NewController(d.clock, d.api, d.provisioner, cloudProvider, recorder, d.state, d.queue,
		cost.NewClusterCost(d.ctx, cloudProvider, d.api))
	for _, m := range f.Instances() {
		d.InstanceChanged(m)
		for _, p := range m.PodsOn() {
			d.api.setPod(p)
			d.keepError(d.state.UpdatePod(d.ctx, p.DeepCopy()))
		}
	}
	f.Watch = d
	return d, d.firstErr
}

// Pass runs one reconciliation, and returns the delay that upstream requests until the next one.
func (d *Disruptor) Pass() (delay time.Duration, err error) {
	d.clock.worked = 0
	d.clock.start()
	result, err := d.controller.Reconcile(d.ctx)
	d.clock.stop()
	d.AfterEvent()
	// At least a millisecond, so that the simulated time advances.
	return max(result.RequeueAfter, time.Millisecond), errors.Join(err, d.firstErr)
}

// WorkTime returns how long upstream computed in the last pass, without its waits.
func (d *Disruptor) WorkTime() time.Duration { return d.clock.worked }

// Wait advances the simulated time by the delay.
func (d *Disruptor) Wait(delay time.Duration) { d.clock.wait(delay) }

// Busy reports whether commands of upstream's disruption queue are in progress.
func (d *Disruptor) Busy() bool { return !d.queue.IsEmpty() }

// AfterEvent applies upstream's writes to the fleet, and continues upstream's commands. If pods are pending, it
// schedules the provisioner after a second: upstream's default batch idle duration.
func (d *Disruptor) AfterEvent() {
	d.apply()
	if d.reconcileReady() {
		d.apply()
	}
	if d.fleet.PendingPods() > 0 && !d.provisionScheduled {
		d.provisionScheduled = true
		d.fleet.At(d.fleet.Now().Add(time.Second), d.provision)
	}
}

// apply carries out upstream's writes in the fleet: it cordons or uncordons the nodes whose taints upstream has
// changed, launches new NodeClaims, and removes the nodes of deleted NodeClaims.
func (d *Disruptor) apply() {
	d.clock.setTime(d.fleet.Now())
	d.api.mu.Lock()
	created, deleted, patched := d.api.created, d.api.deleted, d.api.patched
	d.api.created, d.api.deleted, d.api.patched = nil, nil, map[string]bool{}
	d.api.mu.Unlock()
	slices.SortFunc(created, func(a, b *v1.NodeClaim) int { return cmp.Compare(a.Name, b.Name) })
	for name := range patched {
		d.syncCordon(name)
	}
	for _, c := range created {
		order, err := orderOf(c, d.fleet.Market)
		d.keepError(err)
		if err == nil {
			d.fleet.Launch(order)
		}
	}
	names := make([]string, 0, len(deleted))
	for _, c := range deleted {
		names = append(names, c.Name)
	}
	d.fleet.Remove(names...)
}

// syncCordon cordons the node if upstream has tainted it as disrupted, else it uncordons the node. It also passes the
// node to upstream's state.
func (d *Disruptor) syncCordon(name string) {
	d.api.mu.Lock()
	n := d.api.nodes[name]
	d.api.mu.Unlock()
	if n == nil {
		return
	}
	tainted := false
	for _, t := range n.Spec.Taints {
		tainted = tainted || t.MatchTaint(&v1.DisruptedNoScheduleTaint)
	}
	d.fleet.Cordon(name, tainted)
	d.keepError(d.state.UpdateNode(d.ctx, n.DeepCopy()))
}

// reconcileReady reconciles upstream's commands whose replacements are all ready, and reports whether there were any
// such commands.
func (d *Disruptor) reconcileReady() bool {
	found := false
	commands := d.queue.GetCommands()
	slices.SortFunc(commands, func(a, b *disruption.Command) int {
		return cmp.Compare(a.Candidates[0].NodeClaim.Name, b.Candidates[0].NodeClaim.Name)
	})
	for _, c := range commands {
		ready := true
		for _, r := range c.Replacements {
			m := d.fleet.Instance(r.Name)
			// Without an instance, the replacement is gone: Reconcile finds that out.
			ready = ready && (m == nil || m.Phase == fleet.Ready)
		}
		if ready {
			result, err := d.queue.Reconcile(d.ctx, c.Candidates[0].NodeClaim)
			d.keepError(err)
			found = true
			if result.RequeueAfter > 0 {
				// an empty event, after which the fleet calls AfterEvent
				d.fleet.At(d.fleet.Now().Add(result.RequeueAfter), func() {})
			}
		}
	}
	return found
}

// provision runs the provisioner for pending pods, and schedules itself again after ten seconds, like upstream's pod
// controller. Without pending pods it does neither.
func (d *Disruptor) provision() {
	d.provisionScheduled = false
	if d.fleet.PendingPods() == 0 {
		return
	}
	if d.state.Synced(d.ctx) {
		results, err := d.provisioner.Schedule(d.ctx)
		d.keepError(err)
		if len(results.NewNodeClaims) > 0 {
			_, err = d.provisioner.CreateNodeClaims(d.ctx, results.NewNodeClaims, provisioning.RecordPodNomination)
			d.keepError(err)
		}
	}
	d.provisionScheduled = true
	d.fleet.At(d.fleet.Now().Add(10*time.Second), d.provision)
}

func (d *Disruptor) keepError(err error) {
	if err != nil && d.firstErr == nil {
		d.firstErr = err
	}
}
