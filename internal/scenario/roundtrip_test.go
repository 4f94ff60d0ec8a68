package scenario_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scenario"
)

// TestRandomSnapshots writes random snapshots and parses the text. The parsed snapshot is equal to the original, and is
// written as the same text.
func TestRandomSnapshots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawer{t}
		want := scenario.Scenario{Market: catalog.Market{}, Snapshot: cluster.Snapshot{
			Pools: listOf(d, "pools", d.pool), Nodes: listOf(d, "nodes", d.node),
			Daemons: listOf(d, "daemons", d.daemon), Pods: listOf(d, "pods", d.pod),
		}}
		text := want.String()
		got, err := scenario.Parse(text)
		if err != nil {
			t.Fatalf("the written text cannot be parsed: %v\n%s", err, text)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("writing and parsing changes the snapshot (-before +after):\n%s\n%s", diff, text)
		}
		if again := got.String(); again != text {
			t.Errorf("the written text changes when it is parsed and written again:\n%s\n---\n%s", text, again)
		}
	})
}

// TestKindsAreShared checks that equal residents share one PodKind, as in a snapshot of a cluster.
func TestKindsAreShared(t *testing.T) {
	t.Parallel()
	s, err := scenario.Parse("nodes\n  a\n    resident app=web x2\n      apart app=db by zone\n    resident app=web\n" +
		"  b\n    resident app=web x3\n      apart app=db by zone\n")
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Snapshot.Nodes[0].Residents, s.Snapshot.Nodes[1].Residents
	if a[0].PodKind != b[0].PodKind || a[0].PodKind == a[1].PodKind {
		t.Errorf("the residents have the kinds %p %p %p, want the first and the last to be equal, and the second to differ",
			a[0].PodKind, a[1].PodKind, b[0].PodKind)
	}
	if a[0].Count != 2 || a[1].Count != 1 || b[0].Count != 3 {
		t.Errorf("counts %d %d %d, want 2 1 3", a[0].Count, a[1].Count, b[0].Count)
	}
}

// drawer draws parts of snapshots. It leaves out fields that a scenario cannot express.
type drawer struct{ t *rapid.T }

// listOf draws up to three elements with draw.
func listOf[T any](d drawer, label string, draw func() T) []T {
	var out []T
	for range rapid.IntRange(0, 3).Draw(d.t, label) {
		out = append(out, draw())
	}
	return out
}

func (d drawer) boolean() bool { return rapid.Bool().Draw(d.t, "boolean") }

func (d drawer) number(low, high int) int { return rapid.IntRange(low, high).Draw(d.t, "number") }

func (d drawer) pick(words ...string) string { return rapid.SampledFrom(words).Draw(d.t, "word") }

func (d drawer) name() string { return d.pick("web", "web-1", "web-2", "x3", "or", "solve") }

// word draws a key or a value; some of them are also keywords of the format.
func (d drawer) word() string {
	return d.pick("web", "app", "tier", "x3", "in", "notin", "over", "by", "ns", "soft", "ending", "weight", "a.b/c-d_e", "7", "or")
}

func (d drawer) amounts() resources.Amounts {
	const memoryStep = 256 << 20 // bytes
	return resources.Amounts{CPU: int64(d.number(0, 5000)), Memory: int64(d.number(0, 9)) * memoryStep}.
		With("nvidia.com/gpu", int64(d.number(0, 2))).With("attachable-volumes-csi-ebs.csi.aws.com", int64(d.number(0, 2)))
}

func (d drawer) labels() requirements.Labels {
	out := requirements.Labels{}
	for range d.number(0, 3) {
		out[d.word()] = d.pick("", "web", "in", "x3", "3")
	}
	return out
}

func (d drawer) requirements() requirements.Requirements {
	out := requirements.Requirements{}
	for range d.number(0, 4) {
		operator := requirements.Operator(d.pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"))
		values := []string{fmt.Sprint(d.number(-9, 9))} // for Gt, Lt, Gte and Lte
		switch operator {
		case requirements.In, requirements.NotIn:
			values = listOf(d, "values", d.word)
		case requirements.Exists, requirements.DoesNotExist:
			values = nil
		case requirements.Gt, requirements.Lt, requirements.Gte, requirements.Lte:
		}
		v, ok := requirements.ValuesOf(operator, values...)
		if !ok {
			d.t.Fatalf("ValuesOf rejects operator %s with the values %q", operator, values)
		}
		out.Narrow(d.word(), v)
	}
	return out
}

func (d drawer) selector() cluster.Selector {
	if d.number(0, 9) == 0 {
		return cluster.Selector{MatchesNothing: true}
	}
	return cluster.Selector{Labels: d.requirements()}
}

func (d drawer) spread() cluster.Spread {
	return cluster.Spread{
		Key: d.word(), MaxSkew: d.number(0, 3), MinDomains: d.number(0, 3), Selector: d.selector(),
		Soft: d.boolean(), IgnoresNodeAffinity: d.boolean(), HonorTaints: d.boolean(),
	}
}

func (d drawer) term() cluster.Term {
	t := cluster.Term{Key: d.word(), Weight: d.number(0, 2), Selector: d.selector(), AllNamespaces: d.boolean()}
	if !t.AllNamespaces {
		t.Namespaces = [][]string{nil, {"default"}, {"shop"}, {"data", "shop"}}[d.number(0, 3)]
	}
	return t
}

func (d drawer) taint() requirements.Taint {
	return requirements.Taint{Key: d.word(), Value: d.pick("", "a"), Effect: requirements.Effect(d.pick("NoSchedule", "NoExecute"))}
}

func (d drawer) toleration() requirements.Toleration {
	if d.boolean() {
		return requirements.Toleration{Key: d.pick("", "team"), Operator: "Exists", Effect: requirements.Effect(d.pick("", "NoSchedule"))}
	}
	return requirements.Toleration{Key: d.word(), Operator: d.pick("Equal", "Lt", "Gt"), Value: d.pick("", "7")}
}

func (d drawer) port() cluster.HostPort {
	return cluster.HostPort{IP: d.pick("0.0.0.0", "10.0.0.1"), Port: int32(d.number(1, 99)), Protocol: d.pick("TCP", "UDP")}
}

func (d drawer) pool() cluster.Pool {
	p := cluster.Pool{
		Name: d.name(), NodeClass: d.pick("default", "other"), Weight: d.number(0, 9), Labels: d.labels(), RelaxesMinValues: d.boolean(),
		Taints: listOf(d, "taints", d.taint), StartupTaints: listOf(d, "startup taints", d.taint), Usage: d.amounts(), Nodes: d.number(0, 3),
		Requirements: listOf(d, "requirements", func() requirements.Requirement {
			return requirements.Requirement{
				Key: d.word(), Operator: requirements.Operator(d.pick("In", "Exists", "Gt")),
				Values: listOf(d, "values", d.word), MinValues: d.number(0, 3),
			}
		}),
	}
	if d.boolean() {
		p.Limits.Ceiling = map[string]int64{resources.CPU: int64(d.number(0, 9)), "nvidia.com/gpu": int64(d.number(0, 9))}
	}
	if n := d.number(0, 3); n > 0 {
		p.Limits.Nodes = &n
	}
	return p
}

func (d drawer) node() cluster.Node {
	joined := d.boolean()
	n := cluster.Node{
		Name: d.name(), Claim: d.pick("", "general-x1"), Pool: d.pick("", "general"), NodeClass: d.pick("", "default"),
		Labels: d.labels(), Taints: listOf(d, "taints", d.taint), HostPorts: listOf(d, "ports", d.port),
		Allocatable: d.amounts(), Requested: d.amounts(), Leaving: d.boolean(), Joined: joined, Initialized: joined && d.boolean(),
		Residents: listOf(d, "residents", func() cluster.Resident {
			return cluster.Resident{Count: d.number(1, 3), PodKind: &cluster.PodKind{
				Namespace: d.pick("default", "shop"), Labels: d.labels(), Terminating: d.boolean(), RequiredAntiAffinity: listOf(d, "avoids", d.term),
			}}
		}),
	}
	n.Capacity = n.Allocatable
	if d.boolean() {
		n.Capacity.CPU += 100
	}
	return n
}

func (d drawer) daemon() cluster.Daemon {
	out := cluster.Daemon{
		Namespace: d.pick("default", "kube-system"), Name: d.name(), Requests: d.amounts().With(resources.Pods, 1),
		Required: listOf(d, "alternatives", d.requirements), Tolerations: listOf(d, "tolerations", d.toleration),
		HostPorts: listOf(d, "ports", d.port),
	}
	if d.boolean() {
		out.Kind = &cluster.PodKind{Namespace: out.Namespace, Labels: d.labels(), RequiredAntiAffinity: listOf(d, "avoids", d.term)}
	}
	return out
}

func (d drawer) pod() cluster.Pod {
	p := cluster.Pod{
		Namespace: d.pick("default", "shop"), Name: d.name(), Owner: d.pick("", "ReplicaSet/web"), Node: d.pick("", "node-a"),
		Labels: d.labels(), Requests: d.amounts().With(resources.Pods, 1), Priority: int32(d.number(-1, 1)),
		Required: listOf(d, "alternatives", d.requirements), Tolerations: listOf(d, "tolerations", d.toleration),
		Spread: listOf(d, "spread", d.spread), Affinity: listOf(d, "affinity", d.term), AntiAffinity: listOf(d, "anti-affinity", d.term),
		HostPorts: listOf(d, "ports", d.port), Unplannable: d.pick("", "its volume is lost"),
		Preferred: listOf(d, "preferences", func() cluster.Preference {
			return cluster.Preference{Weight: d.number(1, 100), Requirements: d.requirements()}
		}),
	}
	p.Volumes = [][]string{nil, {"default/data"}, {"default/data", "shop/data"}}[d.number(0, 2)]
	return p
}
