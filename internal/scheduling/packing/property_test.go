package packing_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Failures are printed, so rapid needs no file.
	_ = flag.Set("rapid.nofailfile", "true")
	os.Exit(m.Run())
}

// TestProperties checks plans for random clusters with verify.Check, which shares no code with the solver: room on the
// nodes, one placement or refusal per pod, rules, causes of refusals and the lower bound. It also checks that the order
// of the input does not matter.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, market := drawSnapshot(t), drawMarket(t)
		plan := packing.Solve(s, market, packing.DefaultEffort)
		for _, broken := range verify.Check(s, market, plan) {
			t.Error(broken)
		}
		again := packing.Solve(shuffle(s), shuffleMarket(market), packing.DefaultEffort)
		if diff := cmp.Diff(plan, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the order of the input changes the plan:\n%s", diff)
		}
	})
}

// TestMoreCapacity checks that adding an instance type to the market never leaves more pods unplaced. The snapshots
// have no limits and no existing nodes, because a pod could use up a limit or the room of a node that another pod
// needs.
func TestMoreCapacity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, market := drawSnapshot(t), drawMarket(t)
		for i := range s.Pools {
			s.Pools[i].Limits = cluster.Limits{}
		}
		s.Nodes = nil
		before := packing.Solve(s, market, packing.DefaultEffort)
		more := catalog.Market{}
		for class, c := range market {
			c.Types = append(append([]catalog.Type(nil), c.Types...), drawType(t, "z9.huge"))
			more[class] = c
		}
		after := packing.Solve(s, more, packing.DefaultEffort)
		if len(after.Refusals) > len(before.Refusals) {
			t.Errorf("%d refusals, %d with one more type, want no more: %+v", len(before.Refusals), len(after.Refusals), after.Refusals)
		}
	})
}

// TestArbitraryValues checks that Solve places or refuses every pod, whatever the input contains.
func TestArbitraryValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		any64 := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3))
		amounts := func(label string) resources.Amounts {
			return resources.Amounts{CPU: any64.Draw(t, label), Memory: any64.Draw(t, label), Pods: any64.Draw(t, label)}.
				With("x/y", any64.Draw(t, label))
		}
		s, market := drawSnapshot(t), drawMarket(t)
		for i := range s.Pods {
			if rapid.Bool().Draw(t, "odd") {
				s.Pods[i].Requests = amounts("requests")
			}
		}
		for i := range s.Nodes {
			s.Nodes[i].Allocatable, s.Nodes[i].Requested = amounts("allocatable"), amounts("requested")
		}
		for i := range s.Pools {
			s.Pools[i].Usage = amounts("usage")
			s.Pools[i].Requirements = append(s.Pools[i].Requirements, requirements.Requirement{
				Key: rapid.String().Draw(t, "key"), Operator: requirements.Operator(rapid.SampledFrom([]string{"In", "Gt", "Huh", ""}).Draw(t, "op")),
				Values: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "values"), MinValues: rapid.IntRange(-1, 99).Draw(t, "min"),
			})
		}
		for class, c := range market {
			for i := range c.Types {
				c.Types[i].Allocatable = amounts("type")
				for j := range c.Types[i].Offerings {
					c.Types[i].Offerings[j].Price = catalog.Price(any64.Draw(t, "price"))
				}
			}
			market[class] = c
		}
		plan := packing.Solve(s, market, packing.DefaultEffort)
		places := len(plan.Placements) + len(plan.Refusals)
		for _, pn := range plan.PlannedNodes {
			places += len(pn.Pods)
		}
		if places != len(s.Pods) {
			t.Errorf("%d placements and refusals for %d pods, want one for each pod", places, len(s.Pods))
		}
	})
}

var (
	zoneNames = []string{"us-east-1a", "us-east-1b"}
	archNames = []string{"amd64", "arm64"}
	teamNames = []string{"red", "green", "blue"}
	gpus      = "nvidia.com/gpu"
)

func drawSnapshot(t *rapid.T) cluster.Snapshot {
	var s cluster.Snapshot
	for i := range rapid.IntRange(0, 3).Draw(t, "pools") {
		s.Pools = append(s.Pools, drawPool(t, fmt.Sprintf("pool-%d", i)))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		s.Nodes = append(s.Nodes, drawNode(t, fmt.Sprintf("node-%d", i)))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "daemons") {
		p := drawPod(t, "daemon")
		s.Daemons = append(s.Daemons, cluster.Daemon{
			Namespace: "kube-system", Name: fmt.Sprintf("daemon-%d", i),
			Requests: resources.Amounts{CPU: p.Requests.CPU / 8, Memory: p.Requests.Memory / 8, Pods: 1},
			Required: p.Required, Tolerations: p.Tolerations, HostPorts: p.HostPorts,
		})
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "classes") {
		p := drawPod(t, fmt.Sprintf("app-%d", i))
		for n := range rapid.IntRange(1, 6).Draw(t, "replicas") {
			pod := p
			pod.Name = fmt.Sprintf("%s-%d", p.Name, n)
			s.Pods = append(s.Pods, pod)
		}
	}
	return s
}

func drawPool(t *rapid.T, name string) cluster.Pool {
	p := cluster.Pool{Name: name, NodeClass: "default", Weight: rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "weight")}
	if rapid.IntRange(0, 9).Draw(t, "unusable") == 0 {
		p.Unusable = "it is not ready"
	}
	require := func(key string, values []string) {
		if rapid.IntRange(0, 3).Draw(t, key) == 0 {
			p.Requirements = append(p.Requirements, requirements.Requirement{
				Key: key, Operator: rapid.SampledFrom([]requirements.Operator{requirements.In, requirements.NotIn}).Draw(t, "operator"),
				Values: rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, len(values), rapid.ID).Draw(t, "values"),
			})
		}
	}
	require(catalog.LabelZone, zoneNames)
	require(catalog.LabelArch, archNames)
	require("team", teamNames)
	if rapid.IntRange(0, 3).Draw(t, "min") == 0 {
		p.Requirements = append(p.Requirements, requirements.Requirement{
			Key: catalog.LabelInstanceType, Operator: requirements.Exists, MinValues: rapid.IntRange(1, 3).Draw(t, "minValues"),
		})
	}
	if rapid.IntRange(0, 4).Draw(t, "label") == 0 {
		p.Labels = requirements.Labels{"tier": "front"}
	}
	if rapid.IntRange(0, 4).Draw(t, "taint") == 0 {
		p.Taints = []requirements.Taint{{Key: "team", Value: "red", Effect: rapid.SampledFrom([]requirements.Effect{
			requirements.NoSchedule, requirements.PreferNoSchedule}).Draw(t, "effect")}}
	}
	if rapid.IntRange(0, 3).Draw(t, "limits") == 0 {
		n := rapid.IntRange(0, 4).Draw(t, "limitNodes")
		p.Limits.Nodes = &n
	}
	if rapid.IntRange(0, 3).Draw(t, "limits") == 0 {
		p.Limits.Ceiling = map[string]int64{resources.CPU: int64(rapid.IntRange(0, 20).Draw(t, "limitCPU")) * 1000}
	}
	return p
}

func drawNode(t *rapid.T, name string) cluster.Node {
	n := cluster.Node{
		Name: name, Joined: true, Initialized: rapid.Bool().Draw(t, "initialized"),
		Leaving:     rapid.IntRange(0, 4).Draw(t, "leaving") == 0,
		Allocatable: resources.Amounts{CPU: 2000, Memory: 8 << 30, Pods: 8},
		Requested:   resources.Amounts{CPU: int64(rapid.IntRange(0, 22).Draw(t, "used")) * 100, Pods: 1},
		Labels: requirements.Labels{
			catalog.LabelZone: rapid.SampledFrom(zoneNames).Draw(t, "zone"), catalog.LabelArch: rapid.SampledFrom(archNames).Draw(t, "arch"),
		},
	}
	if rapid.IntRange(0, 3).Draw(t, "taint") == 0 {
		n.Taints = []requirements.Taint{{Key: "team", Value: "red", Effect: requirements.NoSchedule}}
	}
	if rapid.IntRange(0, 3).Draw(t, "port") == 0 {
		n.HostPorts = []cluster.HostPort{{IP: "0.0.0.0", Port: 80, Protocol: "TCP"}}
	}
	return n
}

func drawPod(t *rapid.T, name string) cluster.Pod {
	p := cluster.Pod{
		Namespace: "default", Name: name, Priority: rapid.SampledFrom([]int32{0, 0, 100}).Draw(t, "priority"),
		Requests: resources.Amounts{
			CPU: int64(rapid.IntRange(0, 60).Draw(t, "cpu")) * 100, Memory: int64(rapid.IntRange(0, 20).Draw(t, "mem")) << 29, Pods: 1,
		},
	}
	if rapid.IntRange(0, 5).Draw(t, "gpu") == 0 {
		p.Requests = p.Requests.With(gpus, int64(rapid.IntRange(1, 2).Draw(t, "gpus")))
	}
	for range rapid.IntRange(0, 2).Draw(t, "alternatives") {
		p.Required = append(p.Required, drawRequirements(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "preferences") {
		p.Preferred = append(p.Preferred, cluster.Preference{Weight: rapid.IntRange(1, 100).Draw(t, "weight"), Requirements: drawRequirements(t)})
	}
	if rapid.IntRange(0, 2).Draw(t, "tolerate") == 0 {
		p.Tolerations = []requirements.Toleration{{Key: "team", Operator: "Exists"}}
	}
	if rapid.IntRange(0, 4).Draw(t, "port") == 0 {
		p.HostPorts = []cluster.HostPort{{IP: "0.0.0.0", Port: int32(rapid.IntRange(80, 81).Draw(t, "portNumber")), Protocol: "TCP"}}
	}
	return p
}

func drawRequirements(t *rapid.T) requirements.Requirements {
	key := rapid.SampledFrom([]string{catalog.LabelZone, catalog.LabelArch, catalog.LabelCapacityType, catalog.LabelCPU,
		"team", "tier", "no-such-label"}).Draw(t, "key")
	values := map[string][]string{
		catalog.LabelZone: zoneNames, catalog.LabelArch: archNames, catalog.LabelCapacityType: {catalog.OnDemand, catalog.Spot},
		catalog.LabelCPU: {"2", "4", "8"}, "team": teamNames, "tier": {"front", "back"}, "no-such-label": {"x"},
	}[key]
	operator := rapid.SampledFrom([]requirements.Operator{requirements.In, requirements.NotIn, requirements.Exists,
		requirements.DoesNotExist}).Draw(t, "operator")
	var v requirements.Values
	if operator == requirements.Exists || operator == requirements.DoesNotExist {
		v, _ = requirements.ValuesOf(operator)
	} else {
		v, _ = requirements.ValuesOf(operator, rapid.SampledFrom(values).Draw(t, "value"))
	}
	return requirements.Requirements{key: v}
}

func drawMarket(t *rapid.T) catalog.Market {
	c := catalog.Catalog{Region: "us-east-1"}
	for i := range rapid.IntRange(0, 6).Draw(t, "types") {
		c.Types = append(c.Types, drawType(t, fmt.Sprintf("m%d.large", i)))
	}
	return catalog.Market{"default": c}
}

func drawType(t *rapid.T, name string) catalog.Type {
	cpus := int64(rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "cpus"))
	amounts := resources.Amounts{CPU: cpus*1000 - 70,
		Memory: cpus << 30 * int64(rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "ratio")), Pods: 10 * cpus}
	if rapid.IntRange(0, 3).Draw(t, "gpu") == 0 {
		amounts = amounts.With(gpus, 1)
	}
	typ := catalog.Type{Name: name, Capacity: amounts, Allocatable: amounts, Labels: requirements.Labels{
		catalog.LabelInstanceType: name, catalog.LabelArch: rapid.SampledFrom(archNames).Draw(t, "arch"),
		catalog.LabelCPU: fmt.Sprint(cpus), catalog.LabelOS: "linux",
	}}
	for _, zone := range zoneNames {
		for _, capacityType := range []string{catalog.OnDemand, catalog.Spot} {
			if rapid.IntRange(0, 3).Draw(t, "offered") > 0 {
				typ.Offerings = append(typ.Offerings, catalog.Offering{
					Zone: zone, CapacityType: capacityType, Available: rapid.IntRange(0, 5).Draw(t, "available") > 0,
					Price: catalog.Price(cpus * int64(rapid.IntRange(20, 60).Draw(t, "price")) * 1_000_000),
				})
			}
		}
	}
	return typ.WithOfferings(typ.Offerings)
}
