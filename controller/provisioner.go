package controller

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/kube"
	"github.com/joiner-sh/joiner/metrics"
	"github.com/joiner-sh/joiner/packing"
)

// snapshots sees the cluster.
type snapshots interface {
	Snapshot(ctx context.Context, now time.Time, market catalog.Market) (cluster.Snapshot, error)
}

// markets sees what can be bought.
type markets interface {
	Market(now time.Time) catalog.Market
}

// claimMaker makes the NodeClaims of a plan.
type claimMaker interface {
	CreateClaims(ctx context.Context, machines []packing.Machine) []kube.Created
}

// ledger knows how many claims are on their way; their pods are looked at again.
type ledger interface{ Len() int }

// teller says about an object what happened.
type teller interface {
	Tell(about client.Object, reason kube.Reason, message string)
}

// Solver makes a plan; it is packing.Solve with the effort that the controller allows.
type Solver func(cluster.Snapshot, catalog.Market) packing.Plan

// Provisioner plans pending pods and makes the NodeClaims that they need.
type Provisioner struct {
	Batch    *Batch
	Cluster  snapshots
	Market   markets
	Solve    Solver
	Claims   claimMaker
	Ledger   ledger
	Holds    *Holds
	Unhelped *Unhelped // shared with Claims
	Watch    *Stopwatch
	Tell     *Drip
	Metrics  *metrics.Metrics
	Log      *slog.Logger
	Now      Clock

	// Departures are told for which nodes that leave places were asked for; nil: nobody wants to know.
	Departures *Departures

	last string // what the last pass logged about refusals, so that it is said once
}

// recheck is how often pods that got no place, or whose node is on its way, are planned again although nothing changed.
const recheck = 5 * time.Second

// Start runs the loop until ctx ends.
func (p *Provisioner) Start(ctx context.Context) error {
	// The first look starts the informers of kinds that nothing else watches, which takes half a second. An error is
	// not lost: the first pass looks again.
	_, _ = p.Cluster.Snapshot(ctx, time.Now(), nil)
	pause := time.Duration(0)
	for {
		window, ok := p.Batch.Wait(ctx, pause)
		if !ok {
			return nil
		}
		pause = p.pass(ctx, window)
	}
}

// pass makes one plan and carries it out. It returns when to make another one although nothing changed; 0 for never.
func (p *Provisioner) pass(ctx context.Context, window Window) time.Duration {
	// 1. read
	begun := p.Now.now()
	if err := p.Holds.Recall(ctx); err != nil {
		p.Log.Error("cannot see which pools wait", "error", err, "hint", kube.Hint(err))
		return recheck
	}
	number := p.Departures.begin()
	market := p.Market.Market(begun)
	if market == nil {
		p.say("EC2 has not said yet what there is to buy")
		return recheck
	}
	snapshot, err := p.Cluster.Snapshot(ctx, begun, market)
	if err != nil {
		p.Log.Error("cannot see the cluster", "error", err, "hint", kube.Hint(err))
		p.Metrics.Failures.WithLabelValues("provisioner", string(kube.WhatNext(err))).Inc()
		return recheck
	}
	snapshot.Pools = p.Holds.marked(snapshot.Pools, begun)
	p.Metrics.Nodes.Count.Set(float64(len(snapshot.Nodes)))
	if len(snapshot.Pods) == 0 {
		p.Departures.planned(number, snapshot)
		p.forget()
		if p.Ledger.Len() > 0 {
			return recheck // pods count as placed until kube-scheduler has had its time
		}
		return 0
	}

	// 2. decide
	p.Metrics.QueueDepth.WithLabelValues("provisioner").Set(float64(len(snapshot.Pods)))
	all := snapshot.Pods
	var held []waiting
	snapshot.Pods, held = p.Unhelped.Sort(all, snapshot.Nodes, begun)
	plan := p.Solve(snapshot, market)
	snapshot.Pods = all
	planned := p.Now.now()
	p.Metrics.Scheduling.Duration.WithLabelValues("provisioner").Observe(planned.Sub(begun).Seconds())

	// 3. act
	plan.Machines = p.Holds.Canaries(begun, plan.Machines)
	created := p.Claims.CreateClaims(ctx, plan.Machines)
	if !slices.ContainsFunc(created, func(c kube.Created) bool { return c.Err != nil }) {
		p.Departures.planned(number, snapshot)
	}

	// 4. tell
	p.tellWaiting(held)
	p.report(window, planned, snapshot, plan, created)
	return recheck
}

// say logs why nothing is planned, once.
func (p *Provisioner) say(why string) {
	if p.last != why {
		p.last = why
		p.Log.Info("not planning yet", "cause", why)
	}
}

func (p *Provisioner) report(window Window, planned time.Time, snapshot cluster.Snapshot, plan packing.Plan, created []kube.Created) {
	p.measure(window, planned, plan, created)
	pods := make(map[string]*corev1.Pod, len(snapshot.Pods))
	for _, pod := range snapshot.Pods {
		pods[pod.ID()] = podObject(pod)
	}
	p.tellRefusals(plan.Refusals, pods)
	p.tellPlacements(plan.Placements, pods)
	failed := p.tellClaims(created, pods)
	if len(created) == 0 && len(plan.Refusals) == 0 {
		return
	}
	if said := refusalSummary(plan.Refusals); len(created) > 0 || said != p.last {
		p.last = said
		p.Log.Info("planned", "pods", plan.Pods, "classes", plan.Classes, "nodeClaims", len(created)-failed,
			"onNodes", len(plan.Placements), "refused", len(plan.Refusals), "reasons", said,
			"pricePerHour", plan.Price.String(), "lowerBoundPerHour", plan.LowerBound.String(),
			"seconds", planned.Sub(window.Closed).Seconds(), "batchSeconds", batchSeconds(window))
	}
}

func (p *Provisioner) measure(window Window, planned time.Time, plan packing.Plan, created []kube.Created) {
	if len(created) > 0 {
		p.Metrics.Stage.WithLabelValues(metrics.StageBatch).Observe(batchSeconds(window))
		p.Metrics.Stage.WithLabelValues(metrics.StagePlan).Observe(planned.Sub(window.Closed).Seconds())
	}
	for _, c := range created {
		if c.Claim != nil {
			p.Watch.Made(c.Claim.Name, window.Closed, c.At)
			p.Metrics.Stage.WithLabelValues(metrics.StageClaim).Observe(c.At.Sub(planned).Seconds())
		}
	}
	p.Metrics.Unschedulable.WithLabelValues("provisioner").Set(float64(len(plan.Refusals)))
	p.Metrics.Refused.Reset()
	ignored := 0
	for _, r := range plan.Refusals {
		if len(r.Reasons) == 0 {
			continue
		}
		p.Metrics.Refused.WithLabelValues(string(r.Reasons[0].Code)).Inc()
		if r.Reasons[0].Code == packing.Unplannable {
			ignored++
		}
	}
	p.Metrics.Ignored.Set(float64(ignored))
}

func (p *Provisioner) tellClaims(created []kube.Created, pods map[string]*corev1.Pod) (failed int) {
	for _, c := range created {
		if c.Err != nil {
			failed++
			p.Log.Error("cannot create NodeClaim", "nodePool", c.Machine.Pool, "error", c.Err, "hint", kube.Hint(c.Err))
			p.Metrics.Failures.WithLabelValues("provisioner", string(kube.WhatNext(c.Err))).Inc()
			continue
		}
		p.Metrics.Claims.Created.WithLabelValues("provisioned", c.Machine.Pool, strconv.FormatBool(len(c.Machine.Relaxed) > 0)).Inc()
		best := c.Machine.Offerings[0]
		p.Log.Info("created NodeClaim", "NodeClaim", c.Claim.Name, "nodePool", c.Machine.Pool, "pods", len(c.Machine.Pods),
			"requests", c.Machine.Requests.String(), "instanceTypes", typesOf(c.Machine, 5), "offerings", len(c.Machine.Offerings),
			"cheapest", best.InstanceType+" "+best.Zone+" "+best.CapacityType, "pricePerHour", best.Price.String())
		for _, id := range c.Machine.Pods {
			if pod := pods[id]; pod != nil {
				p.Tell.Later(pod, kube.ReasonNominated, "Pod should schedule on: nodeclaim/"+c.Claim.Name)
			}
		}
	}
	return failed
}

func (p *Provisioner) tellPlacements(placements []packing.Placement, pods map[string]*corev1.Pod) {
	for _, place := range placements {
		if pod := pods[place.Pod]; pod != nil {
			p.Tell.Later(pod, kube.ReasonNominated, "Pod should schedule on: node/"+place.Node)
		}
	}
}

func (p *Provisioner) tellWaiting(held []waiting) {
	for _, w := range held {
		if w.isNews {
			p.Tell.Later(podObject(w.pod), kube.ReasonFailedScheduling, w.message())
			p.Log.Warn("nodes bought for a pod did not help it", "Pod", w.pod.ID(), "nodes", w.times, "nextTry", w.until.UTC().Format(time.RFC3339))
		}
	}
}

func (p *Provisioner) tellRefusals(refusals []packing.Refusal, pods map[string]*corev1.Pod) {
	for _, r := range refusals {
		if pod := pods[r.Pod]; pod != nil {
			p.Tell.Later(pod, kube.ReasonFailedScheduling, explain(r))
		}
	}
}

// forget clears what the last plan told when there is nothing left to plan.
func (p *Provisioner) forget() {
	p.last = ""
	p.Metrics.QueueDepth.WithLabelValues("provisioner").Set(0)
	p.Metrics.Unschedulable.WithLabelValues("provisioner").Set(0)
	p.Metrics.Refused.Reset()
	p.Metrics.Ignored.Set(0)
}

func batchSeconds(w Window) float64 {
	if w.First.IsZero() {
		return 0
	}
	return w.Closed.Sub(w.First).Seconds()
}

func typesOf(m packing.Machine, most int) []string {
	var out []string
	for _, o := range m.Offerings {
		if !slices.Contains(out, o.InstanceType) && len(out) < most {
			out = append(out, o.InstanceType)
		}
	}
	return out
}

// podObject is as much of a pod as an event needs.
func podObject(p cluster.Pod) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: uid(p.UID)},
	}
}
