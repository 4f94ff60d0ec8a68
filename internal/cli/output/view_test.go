package output_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

const d = catalog.Dollar

// plan returns a plan with planned nodes, placements and refusals.
func plan() packing.Plan {
	large := []packing.Choice{
		{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: catalog.OnDemand, Price: 96 * d / 1000},
		{InstanceType: "m5a.large", Zone: "us-east-1b", CapacityType: catalog.OnDemand, Price: 99 * d / 1000},
	}
	plannedNode := func(name string, pods ...string) packing.PlannedNode {
		return packing.PlannedNode{
			Name: name, Pool: "general", NodeClass: "default", Pods: pods, Offerings: large,
			Labels:   map[string]string{"karpenter.sh/nodepool": "general"},
			Requests: resources.Amounts{CPU: 1500, Memory: 3 << 29, Pods: int64(len(pods))}, // 1.5 CPUs and 1.5 GiB
		}
	}
	return packing.Plan{
		PlannedNodes: []packing.PlannedNode{plannedNode("general-1", "default/web-1"), plannedNode("general-2", "default/web-2", "default/web-3"), {
			Name: "spot-1", Pool: "spot", Pods: []string{"default/db-1"}, Requests: resources.Amounts{CPU: 8000, Memory: 64 << 30, Pods: 1},
			Offerings: []packing.Choice{{InstanceType: "r5.2xlarge", Zone: "us-east-1c", CapacityType: catalog.Spot, Price: 504 * d / 1000}},
		}},
		Placements: []packing.Placement{
			{Pod: "default/api-1", Node: "node-b"}, {Pod: "default/api-2", Node: "node-a"}, {Pod: "default/api-3", Node: "node-a"},
			{Pod: "default/api-4", Node: "node-a"}, {Pod: "default/api-5", Node: "node-a"},
		},
		Refusals: []packing.Refusal{
			{Pod: "default/one", Reasons: []packing.Reason{{Code: packing.Unplannable, Count: 1, Detail: "its volume data does not exist"}}},
			{Pod: "default/many-1", Hint: "do this", Reasons: []packing.Reason{
				{Code: packing.TypeMismatch, Count: 812, Detail: catalog.LabelArch}, {Code: packing.TooSmall, Count: 590, Detail: "cpu"}}},
			{Pod: "default/many-2", Hint: "do this", Reasons: []packing.Reason{
				{Code: packing.TypeMismatch, Count: 812, Detail: catalog.LabelArch}, {Code: packing.TooSmall, Count: 590, Detail: "cpu"}}},
		},
		Price: 696 * d / 1000, LowerBound: 650 * d / 1000, Pods: 12, Classes: 5,
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	data, err := json.MarshalIndent(output.PlanOf(plan(), 0.0125, output.Context{}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan.json", string(data)+"\n")
	golden(t, "plan.txt", output.Summary(plan(), 0.0125, output.Context{}, 0))
	empty, err := json.Marshal(output.PlanOf(packing.Plan{}, 0, output.Context{}))
	want := `{"machines":[],"placements":[],"refusals":[],"pricePerHour":0,"lowerBoundPerHour":0,"solveSeconds":0,"pods":0,"podClasses":0}`
	if err != nil || string(empty) != want {
		t.Errorf("an empty plan is %s (%v), want %s", empty, err, want)
	}
}

// TestHeadline: nouns are singular for one, and plural otherwise.
func TestHeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pods, classes int
		want          string
	}{
		{0, 0, "0 pods, planned"},
		{1, 0, "1 pod, planned"},
		{1, 1, "1 pod in 1 class, planned"},
		{5, 1, "5 pods in 1 class, planned"},
		{1005, 2, "1,005 pods in 2 classes, planned"},
	} {
		if got := output.Summary(packing.Plan{Pods: c.pods, Classes: c.classes}, 0, output.Context{},
			0); !strings.HasPrefix(got, c.want+" in 0 ms: 0 nodes to launch.") {
			t.Errorf("%q, want %s…", got, c.want)
		}
	}
}

// golden compares got with a golden file, or writes the file with -rewrite.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestReservedAndRelaxed: the output has the reservation of a planned node and the relaxed minValues.
func TestReservedAndRelaxed(t *testing.T) {
	t.Parallel()
	p := plan()
	p.PlannedNodes[0].Offerings = []packing.Choice{
		{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: catalog.Reserved, Price: 10, Reservation: "cr-1"},
	}
	for _, i := range []int{1, 2} {
		p.PlannedNodes[i].Relaxed = []packing.Relaxation{{Key: catalog.LabelInstanceType, Asked: 5, Have: 2}}
	}
	text := output.Summary(p, 0, output.Context{}, 0)
	for _, want := range []string{"reserved cr-1",
		"With fewer choices than minValues asks for:\n  2 nodes: 2 of 5 values of " + catalog.LabelInstanceType + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not printed:\n%s", want, text)
		}
	}
	data, err := json.Marshal(output.PlanOf(p, 0, output.Context{}))
	for _, want := range []string{
		`"capacityReservationId":"cr-1"`, `"minValuesRelaxed":[{"key":"node.kubernetes.io/instance-type","minValues":5,"values":2}]`,
	} {
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s is not in the JSON (%v)", want, err)
		}
	}
}

// TestCauseIsPrintedOnce: a hint that only repeats the cause of a refusal is not printed.
func TestCauseIsPrintedOnce(t *testing.T) {
	t.Parallel()
	const why = "general: EC2NodeClass default is not ready: found no subnet"
	refusal := packing.Refusal{Pod: "a/b", Hint: "fix NodePool " + why,
		Reasons: []packing.Reason{{Code: packing.PoolUnusable, Count: 1, Detail: why}}}
	if got := output.Summary(packing.Plan{Refusals: []packing.Refusal{refusal}}, 0, output.Context{},
		0); strings.Count(got, "found no subnet") != 1 {
		t.Errorf("the cause is printed more than once:\n%s", got)
	}
	refusal.Reasons = append(refusal.Reasons[:0], packing.Reason{Code: packing.TooSmall, Count: 1, Detail: "cpu"})
	if got := output.Summary(packing.Plan{Refusals: []packing.Refusal{refusal}}, 0, output.Context{},
		0); !strings.Contains(got, "to do: fix NodePool "+why) {
		t.Errorf("a hint that differs from the cause is not printed:\n%s", got)
	}
}

// TestSummaryHasNoControls: control characters in names do not reach the terminal.
func TestSummaryHasNoControls(t *testing.T) {
	t.Parallel()
	summaryWith := func(name string) string {
		p := plan()
		p.PlannedNodes[0].Pool, p.PlannedNodes[0].Offerings[0].Zone = name, name
		p.Placements[0].Pod, p.Placements[1].Node = name, name
		p.Refusals[0].Pod, p.Refusals[0].Hint, p.Refusals[0].Reasons[0].Detail = name, name, name
		return output.Summary(p, 0, output.Context{}, 0)
	}
	got := summaryWith("a\x1b[2J\nb\u202e\x00\u009b\xff")
	for _, r := range got {
		if r != '\n' && !unicode.IsPrint(r) && r != '\uFFFD' {
			t.Errorf("%q reaches the terminal", r)
		}
	}
	if want, got := strings.Count(summaryWith("a"), "\n"), strings.Count(got, "\n"); got != want {
		t.Errorf("a name with a newline: %d lines, want %d", got, want)
	}
}

// TestSentence: every code of a reason has its own text.
func TestSentence(t *testing.T) {
	t.Parallel()
	for code, c := range map[packing.Code]struct{ detail, want string }{
		packing.NoPool:           {"", "there is no NodePool"},
		packing.PoolUnusable:     {"a: it is not ready", "no node may be launched for NodePool a: it is not ready"},
		packing.PoolEmpty:        {"a: kubernetes.io/arch", "the requirements of NodePool a: kubernetes.io/arch match no offering"},
		packing.TaintUntolerated: {"a=b:NoSchedule", "of 1,402 offerings: 1,402 have the taint a=b:NoSchedule, which it does not tolerate"},
		packing.LabelMissing:     {"team In [a]", "of 1,402 offerings: 1,402 lack the label it asks for (team In [a])"},
		packing.TopologySpread:   {catalog.LabelZone, "of 1,402 offerings: on 1,402 its spread over zone would be too uneven"},
		packing.PodAffinity:      {catalog.LabelZone, "of 1,402 offerings: 1,402 would be in no zone with a pod that it must be near"},
		packing.PodAntiAffinity:  {"kubernetes.io/hostname", "of 1,402 offerings: 1,402 would be in a node with a pod that it must not be near"},
		packing.LabelConflict:    {"team", "of 1,402 offerings: 1,402 are of NodePools that have another team"},
		packing.TypeMismatch:     {catalog.LabelZone, "of 1,402 offerings: 1,402 have the wrong zone"},
		packing.TooSmall:         {"cpu", "of 1,402 offerings: 1,402 are too small (cpu)"},
		packing.HostPortTaken:    {"80/TCP", "of 1,402 offerings: on 1,402 a DaemonSet takes port 80/TCP"},
		packing.NoCapacity:       {"", "of 1,402 offerings: EC2 is short of 1,402"},
		packing.LimitReached:     {"a: cpu", "of 1,402 offerings: 1,402 exceed the cpu limit of NodePool a"},
		packing.MinValues: {catalog.LabelInstanceType + ": 2 of 5",
			"of 1,402 offerings: 1,402 leave 2 of 5 values of instance type that minValues asks for"},
		packing.ReservationFull: {"cr-1", "of 1,402 offerings: 1,402 are of capacity reservation cr-1, which is used up"},
		packing.Unplannable:     {"it is odd", "it cannot be planned for: it is odd"},
		packing.EffortSpent:     {"", "of 1,402 offerings: 1,402 were not considered: the plan reached its limit of work"},
	} {
		r := packing.Refusal{Reasons: []packing.Reason{{Code: code, Count: 1402, Detail: c.detail}}}
		if got := output.Sentence(r); got != c.want {
			t.Errorf("%s: %q, want %q", code, got, c.want)
		}
	}
}

// TestSentenceOfLaterPlan: the sentence for a pod that a later plan places gives the reason, and counts no offerings.
func TestSentenceOfLaterPlan(t *testing.T) {
	t.Parallel()
	r := packing.Refusal{Reasons: []packing.Reason{{Code: packing.EffortSpent, Count: 1, Detail: "it has too many rules"}}}
	if got, want := output.Sentence(r), "a later plan places it: it has too many rules"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCatalogRoundTrip: a catalog that is written and read again is unchanged.
func TestCatalogRoundTrip(t *testing.T) {
	t.Parallel()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	want, err := table.Catalog("us-east-1", catalog.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	want.Types[2] = want.Types[2].WithOfferings(append(want.Types[2].Offerings, catalog.Offering{
		Zone: "us-east-1a", ZoneID: "use1-az1", CapacityType: catalog.Reserved, Price: 10, Available: true,
		Reservation: catalog.Reservation{ID: "cr-1", Type: catalog.ReservationBlock, Interruptible: true, Left: 7},
	}))
	want.PodVolume = "" // not written to the file
	data, err := json.Marshal(output.CatalogOf(want))
	if err != nil {
		t.Fatal(err)
	}
	var types []output.Type
	if err := json.Unmarshal(data, &types); err != nil {
		t.Fatal(err)
	}
	got, err := output.CatalogFrom("us-east-1", types)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the catalog differs after reading (-written +read):\n%s", diff)
	}
}

// TestInvalidCatalog: reading an invalid catalog is an error that names the entry.
func TestInvalidCatalog(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[{}]`: "entry 1 has no instanceType",
		`[{"instanceType": "a"}, {"instanceType": "a"}]`:                   "type a is listed twice",
		`[{"instanceType": "a", "capacity": {"cpu": "lots"}}]`:             `type a: capacity: read quantity "lots" of cpu`,
		`[{"instanceType": "a", "volumes": -1}]`:                           "type a: volumes: -1 is negative",
		`[{"instanceType": "a", "offerings": [{"capacityType": "spot"}]}]`: "type a: an offering needs zone",
		`[{"instanceType": "a", "offerings": [{"zone": "z", "capacityType": "spot", "capacityReservation": {"id": "cr-1", "instancesLeft": 1}}]}]`: "type a: an offering in z: it is spot",
	} {
		var types []output.Type
		if err := json.Unmarshal([]byte(text), &types); err != nil {
			t.Fatal(err)
		}
		if _, err := output.CatalogFrom("r", types); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s…", text, err, want)
		}
	}
}
