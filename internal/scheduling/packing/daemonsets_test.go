package packing_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// tenantDaemons returns n DaemonSets without requests in the namespace tenant, each altered by change.
func tenantDaemons(n int, change func(d *cluster.Daemon, i int)) []cluster.Daemon {
	out := make([]cluster.Daemon, n)
	for i := range out {
		out[i] = cluster.Daemon{Namespace: "tenant", Name: fmt.Sprint("d", i),
			Kind: &cluster.PodKind{Namespace: "tenant", Labels: requirements.Labels{"id": fmt.Sprint(i)}}}
		change(&out[i], i)
	}
	return out
}

// TestManyDaemons checks that 1,000 DaemonSets of a tenant make a plan for ordinary pods allocate at most 150 MB. In
// each case, the DaemonSets differ in one field. Not parallel, because it counts allocated bytes.
func TestManyDaemons(t *testing.T) { //nolint:paralleltest // it counts what all tests allocate
	market := realMarket(t)
	for name, change := range map[string]func(d *cluster.Daemon, i int){
		"host ports": func(d *cluster.Daemon, i int) {
			for x := range 50 {
				d.HostPorts = append(d.HostPorts, cluster.HostPort{IP: "0.0.0.0", Port: int32(1 + (i*50+x)%65_000), Protocol: "TCP"})
			}
		},
		"selectors": func(d *cluster.Daemon, i int) {
			d.Required = []requirements.Requirements{{"kubernetes.io/arch": requirements.OneOf("amd64"),
				"h.example/x": requirements.NoneOf(fmt.Sprint(i))}}
		},
		"instance types": func(d *cluster.Daemon, i int) {
			d.Required = []requirements.Requirements{{"karpenter.k8s.aws/instance-cpu": requirements.NoneOf(fmt.Sprint(i % 64))}}
		},
		"anti-affinity": func(d *cluster.Daemon, i int) { d.Kind.RequiredAntiAffinity = ownTerms(10, i, requirements.OneOf, 0) },
	} {
		s := cluster.Snapshot{Pools: anyPool, Pods: mixedPods(50, 10, 1), Daemons: tenantDaemons(1_000, change)}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		plan := packing.Solve(s, market, packing.DefaultEffort)
		runtime.ReadMemStats(&after)
		if size := (after.TotalAlloc - before.TotalAlloc) >> 20; size > 150 {
			t.Errorf("%s: the plan allocates %d MB, want at most 150 MB", name, size)
		}
		if len(plan.Refusals) > 0 {
			t.Errorf("%s: %d pods are refused, want none: %+v", name, len(plan.Refusals), plan.Refusals[0])
		}
	}
}

// TestPortsOfDaemons checks that a DaemonSet's host port excludes a pod only if the pod requests the same port.
func TestPortsOfDaemons(t *testing.T) {
	t.Parallel()
	s := cluster.Snapshot{Pools: anyPool, Daemons: tenantDaemons(2, func(d *cluster.Daemon, i int) {
		d.HostPorts = []cluster.HostPort{{Port: int32(8000 + i), Protocol: "TCP"}, {Port: 9000, IP: "10.0.0.1", Protocol: "TCP"}}
	})}
	for i, port := range []int32{8001, 8080, 9000} {
		s.Pods = append(s.Pods, cluster.Pod{Namespace: "a", Name: fmt.Sprint(i),
			Requests: resources.Amounts{CPU: 10, Pods: 1}, HostPorts: []cluster.HostPort{{Port: port, Protocol: "TCP"}}})
	}
	plan := packing.Solve(s, fewTypes(), packing.DefaultEffort)
	if len(plan.Refusals) != 2 || plan.Refusals[0].Pod != "a/0" || plan.Refusals[1].Pod != "a/2" ||
		plan.Refusals[0].Reasons[0].Code != packing.HostPortTaken {
		t.Errorf("the refusals are %+v, want a/0 and a/2, because of their host ports", plan.Refusals)
	}
	for _, wrong := range verify.Check(s, fewTypes(), plan) {
		t.Error(wrong)
	}
}

// TestDaemonsThatFitNowhere checks that other pods are placed even if no instance type of a NodePool has room for a
// tenant's DaemonSet pods, alone or together. With such a DaemonSet in kube-system, other pods are refused, because no
// node works without the DaemonSet.
func TestDaemonsThatFitNowhere(t *testing.T) {
	t.Parallel()
	requesting := func(namespace string, amounts ...int64) func(d *cluster.Daemon, i int) {
		return func(d *cluster.Daemon, i int) {
			d.Namespace, d.Requests = namespace, resources.Amounts{CPU: amounts[i], Pods: 1}
		}
	}
	for name, c := range map[string]struct {
		daemons      []cluster.Daemon
		wantRefusals bool
	}{
		"one, larger than any type":          {daemons: tenantDaemons(1, requesting("tenant", 1_000_000))},
		"two, each 60 % of the largest type": {daemons: tenantDaemons(2, requesting("tenant", 57_600, 57_600))},
		"five, too large together":           {daemons: tenantDaemons(5, requesting("tenant", 95_000, 95_000, 500, 250, 125))},
		"one in kube-system":                 {daemons: tenantDaemons(1, requesting("kube-system", 1_000_000)), wantRefusals: true},
	} {
		s := cluster.Snapshot{Pools: anyPool, Pods: mixedPods(50, 10, 1), Daemons: c.daemons}
		plan := packing.Solve(s, fewTypes(), packing.DefaultEffort)
		if got := len(plan.Refusals) > 0; got != c.wantRefusals {
			t.Errorf("%s: %d pods are refused: %+v; want refusals: %t", name, len(plan.Refusals), plan.Refusals, c.wantRefusals)
		}
		for _, wrong := range verify.Check(s, fewTypes(), plan) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}
