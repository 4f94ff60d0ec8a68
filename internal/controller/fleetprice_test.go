package controller

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/joiner-sh/joiner/internal/controller/fleetprice"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// TestFleetPrice: when one of two pods is gone, the nodes cost twice as much as a plan for the other pod.
func TestFleetPrice(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.createServing(t, "web", "db")
	m := r.Provisioner.Metrics
	reporter := fleetprice.Reporter{
		Cluster: r.Emptiness.Cluster, Reader: r.Emptiness.Reader, Market: r.Market, Types: r.Market,
		Solve: r.Provisioner.Solve, Metrics: m, Log: slog.New(slog.NewJSONHandler(r.log, nil)),
	}
	now := r.now()
	check := func(wantPrice, wantPlan float64) {
		t.Helper()
		if err := reporter.Pass(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		bound := metricSum(t, m.Fleet.Bound)
		if got := metricSum(t, m.Fleet.Price); got != wantPrice {
			t.Errorf("the nodes cost $%v, want $%v", got, wantPrice)
		}
		if got := metricSum(t, m.Fleet.Plan); got != wantPlan || bound <= 0 || bound > wantPlan {
			t.Errorf("the plan costs $%v, want $%v; the lower bound is $%v, want more than 0, and at most the plan", got, wantPlan, bound)
		}
	}
	check(0.0832, 0.0832) // two t3.medium for $0.0416 each
	pods := r.allPods(t)
	if err := r.api.Delete(t.Context(), &pods[0]); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	check(0.0832, 0.0416)
	if n := strings.Count(r.log.String(), "compared the price of the nodes"); n != 1 {
		t.Errorf("%d log lines, want 1: the price of the nodes has not changed", n)
	}
}

type fakeInformer struct {
	handler toolscache.ResourceEventHandler
}

func (f *fakeInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	f.handler = h
	return nil, nil
}

func (r *rig) allPods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := r.api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// TestPlannedPodsAreCounted: bound pods are counted by whether they are on the node that was launched for them.
func TestPlannedPodsAreCounted(t *testing.T) {
	t.Parallel()
	r := nominationRig(t)
	r.joinNotReady(t)
	node := r.nodes(t)[0].Name
	informer := &fakeInformer{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Follow returns when it has added its handler
	if err := r.Pods.Follow(ctx, informer); err != nil {
		t.Fatal(err)
	}
	pods := r.allPods(t)
	for i := range pods {
		bound := pods[i].DeepCopy()
		bound.Spec.NodeName = node
		if i == 1 { // the second of two pods
			bound.Spec.NodeName = "another"
		}
		informer.handler.OnUpdate(&pods[i], bound)
	}
	for _, label := range []string{metrics.PlannedNode, metrics.OtherNode} {
		if n := metricCount(t, r.Pods.Metrics.Planned, label); n != 1 {
			t.Errorf("%d pods with the label %s, want 1", n, label)
		}
	}
}
