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

// Disruptor is upstream's disruption controller, with its queue and its provisioner, as the controller of a fleet.
type Disruptor struct {
	ctx         context.Context
	fleet       *fleet.Fleet
	live        *live
	clock       *stopclock
	state       *state.Cluster
	provisioner *provisioning.Provisioner
	queue       *disruption.Queue
	controller  *disruption.Controller
	retry       bool  // a retry of the provisioner is scheduled
	failed      error // the first error
}

// Disrupt makes upstream the controller of the fleet. work returns the seconds that the process has worked so far.
// While upstream works, the simulated time advances by the same number of seconds.
func Disrupt(f *fleet.Fleet, spotToSpot bool, work func() float64) (*Disruptor, error) {
	log.SetLogger(logging.NopLogger)
	d := &Disruptor{fleet: f, live: newLive()}
	d.clock = &stopclock{base: f.Now(), work: work, advance: f.Advance}
	d.ctx = options.ToContext(injection.WithControllerName(context.Background(), "disruption"), &options.Options{
		CPURequests:       1000,
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.FeatureGates{ReservedCapacity: true, SpotToSpotConsolidation: spotToSpot},
	})
	cp := &cloud{types: map[string][]*cloudprovider.InstanceType{}}
	for _, p := range f.Pools {
		theirs, err := poolOf(p)
		if err != nil {
			return nil, err
		}
		for _, condition := range []string{v1.ConditionTypeValidationSucceeded, v1.ConditionTypeNodeClassReady} {
			theirs.StatusConditions().SetTrue(condition)
		}
		if !theirs.StatusConditions().Root().IsTrue() {
			return nil, fmt.Errorf("pool %s is not ready for upstream", p.Name)
		}
		d.live.pools[p.Name] = theirs
		cp.types[p.Name] = instanceTypes(f.Market[p.Spec.Template.Spec.NodeClassRef.Name])
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	d.state = state.NewCluster(d.clock, d.live, cp)
	d.provisioner = provisioning.NewProvisioner(d.live, recorder, cp, d.state, d.clock, nil, nil)
	d.queue = disruption.NewQueue(d.live, recorder, d.state, d.clock, d.provisioner)
	d.controller = disruption.NewController(d.clock, d.live, d.provisioner, cp, recorder, d.state, d.queue,
		cost.NewClusterCost(d.ctx, cp, d.live))
	for _, m := range f.Instances() {
		d.Instance(m)
		for _, p := range m.PodsOn() {
			d.live.setPod(p)
			d.note(d.state.UpdatePod(d.ctx, p.DeepCopy()))
		}
	}
	f.Watch = d
	return d, d.failed
}

// Pass runs one reconciliation, and returns the delay that upstream requests until the next one.
func (d *Disruptor) Pass() (rest time.Duration, err error) {
	d.clock.worked = 0
	d.clock.start()
	result, err := d.controller.Reconcile(d.ctx)
	d.clock.stop()
	d.Settled()
	return max(result.RequeueAfter, time.Millisecond), errors.Join(err, d.failed)
}

// WorkTime returns how long upstream worked in the last pass, without its waits.
func (d *Disruptor) WorkTime() time.Duration { return d.clock.worked }

// Wait advances the simulated time.
func (d *Disruptor) Wait(rest time.Duration) { d.clock.wait(rest) }

// Busy reports whether commands are in progress.
func (d *Disruptor) Busy() bool { return !d.queue.IsEmpty() }

// Settled applies upstream's writes to the fleet, advances its commands, and schedules its provisioner if pods are
// pending.
func (d *Disruptor) Settled() {
	d.apply()
	if d.progress() {
		d.apply()
	}
	if d.fleet.Waiting() > 0 && !d.retry {
		d.retry = true
		d.fleet.At(d.fleet.Now().Add(time.Second), d.provision)
	}
}

// apply cordons and uncordons nodes as upstream has tainted them, launches new NodeClaims, and removes deleted ones.
func (d *Disruptor) apply() {
	d.clock.at(d.fleet.Now())
	d.live.mu.Lock()
	created, deleted, patched := d.live.created, d.live.deleted, d.live.patched
	d.live.created, d.live.deleted, d.live.patched = nil, nil, map[string]bool{}
	d.live.mu.Unlock()
	slices.SortFunc(created, func(a, b *v1.NodeClaim) int { return cmp.Compare(a.Name, b.Name) })
	for name := range patched {
		d.syncCordon(name)
	}
	for _, c := range created {
		order, err := orderOf(c, d.fleet.Market)
		d.note(err)
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

// syncCordon cordons a node that upstream has tainted as disrupted, uncordons any other node, and passes the node to
// upstream's state.
func (d *Disruptor) syncCordon(name string) {
	d.live.mu.Lock()
	n := d.live.nodes[name]
	d.live.mu.Unlock()
	if n == nil {
		return
	}
	tainted := false
	for _, t := range n.Spec.Taints {
		tainted = tainted || t.MatchTaint(&v1.DisruptedNoScheduleTaint)
	}
	d.fleet.Cordon(name, tainted)
	d.note(d.state.UpdateNode(d.ctx, n.DeepCopy()))
}

// progress reconciles the commands whose replacements are all ready, and reports whether there were any.
func (d *Disruptor) progress() bool {
	moved := false
	commands := d.queue.GetCommands()
	slices.SortFunc(commands, func(a, b *disruption.Command) int {
		return cmp.Compare(a.Candidates[0].NodeClaim.Name, b.Candidates[0].NodeClaim.Name)
	})
	for _, c := range commands {
		ready := true
		for _, r := range c.Replacements {
			m := d.fleet.Instance(r.Name)
			ready = ready && (m == nil || m.Phase == fleet.Ready)
		}
		if ready {
			result, err := d.queue.Reconcile(d.ctx, c.Candidates[0].NodeClaim)
			d.note(err)
			moved = true
			if result.RequeueAfter > 0 {
				d.fleet.At(d.fleet.Now().Add(result.RequeueAfter), func() {}) // after every event, the fleet calls Settled
			}
		}
	}
	return moved
}

// provision runs the provisioner for pending pods, and schedules itself again ten seconds later. Without pending pods
// it does neither.
func (d *Disruptor) provision() {
	d.retry = false
	if d.fleet.Waiting() == 0 {
		return
	}
	if d.state.Synced(d.ctx) {
		results, err := d.provisioner.Schedule(d.ctx)
		d.note(err)
		if len(results.NewNodeClaims) > 0 {
			_, err = d.provisioner.CreateNodeClaims(d.ctx, results.NewNodeClaims, provisioning.RecordPodNomination)
			d.note(err)
		}
	}
	d.retry = true
	d.fleet.At(d.fleet.Now().Add(10*time.Second), d.provision)
}

// note keeps the first error for Pass.
func (d *Disruptor) note(err error) {
	if err != nil && d.failed == nil {
		d.failed = err
	}
}
