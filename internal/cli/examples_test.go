package cli_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/cli"
)

// examplePlan is the part of joiner plan -o json that TestExamples checks.
type examplePlan struct {
	Machines []struct { // planned nodes
		NodePool  string   `json:"nodePool"`
		Price     float64  `json:"pricePerHour"`
		Pods      []string `json:"pods"`
		Offerings []struct {
			InstanceType string `json:"instanceType"`
			CapacityType string `json:"capacityType"`
		} `json:"offerings"`
	} `json:"machines"`
	Refusals []json.RawMessage `json:"refusals"`
}

// expectedPlan has the expected properties of the plan for an example of docs/examples.
type expectedPlan struct {
	pods, nodes  int
	price        float64  // $ per hour of all nodes, at the embedded prices
	families     []string // families of the cheapest offering of each node
	capacityType string   // of the cheapest offering of each node
	pools        []string
}

// TestExamples plans every use case of docs/examples: each pod gets a node, and the nodes have the expected number,
// price, families, capacity type and NodePools. The README lists each folder.
func TestExamples(t *testing.T) {
	t.Parallel()
	const folder = "../../docs/examples"
	want := map[string]expectedPlan{
		"gpu":   {pods: 4, nodes: 4, price: 3.2192, families: []string{"g6"}, capacityType: "on-demand", pools: []string{"gpu"}},
		"spot":  {pods: 18, nodes: 6, price: 0.3864, families: []string{"c6a", "m8i-flex"}, capacityType: "spot", pools: []string{"spot"}},
		"arm64": {pods: 12, nodes: 4, price: 0.5440, families: []string{"c6g"}, capacityType: "on-demand", pools: []string{"arm64"}},
		"windows": {pods: 4, nodes: 2, price: 0.2485, families: []string{"c6a", "m5a"}, capacityType: "on-demand",
			pools: []string{"windows"}},
		"multi-tenant": {pods: 9, nodes: 3, price: 0.4080, families: []string{"c6g"}, capacityType: "on-demand",
			pools: []string{"team-a", "team-b"}},
		"bottlerocket": {pods: 10, nodes: 2, price: 0.2305, families: []string{"c6a", "m6g"}, capacityType: "on-demand",
			pools: []string{"bottlerocket"}},
		"fargate-only": {pods: 6, nodes: 1, price: 0.1360, families: []string{"c6g"}, capacityType: "on-demand", pools: []string{"default"}},
	}
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if !strings.Contains(string(readme), "["+e.Name()+"]("+e.Name()+")") {
			t.Errorf("%s/README.md does not list %s", folder, e.Name())
		}
		// Other tests use the examples first and reference.
		if _, ok := want[e.Name()]; !ok && e.Name() != "first" && e.Name() != "reference" {
			t.Errorf("%s/%s has no expected plan", folder, e.Name())
		}
	}
	for name, expected := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkExample(t, filepath.Join(folder, name), expected)
		})
	}
}

// checkExample compares the plan of joiner plan for a folder.
func checkExample(t *testing.T, folder string, want expectedPlan) {
	t.Helper()
	var out, errs bytes.Buffer
	root := cli.Root("test", cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if code := cli.Run(t.Context(), root, []string{"plan", "--strict", "-f", folder, "-o", "json"}); code != cli.ExitOK {
		t.Fatalf("exit status %d, want 0: %s%s", code, errs.String(), out.String())
	}
	var plan examplePlan
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil {
		t.Fatal(err)
	}
	got := expectedPlan{nodes: len(plan.Machines)}
	for _, m := range plan.Machines {
		got.pods += len(m.Pods)
		got.price += m.Price
		cheapest := m.Offerings[0]
		family, _, _ := strings.Cut(cheapest.InstanceType, ".")
		got.families = append(got.families, family)
		got.pools = append(got.pools, m.NodePool)
		if cheapest.CapacityType != want.capacityType {
			t.Errorf("%s is %s, want %s", cheapest.InstanceType, cheapest.CapacityType, want.capacityType)
		}
	}
	distinct := func(names []string) []string { slices.Sort(names); return slices.Compact(names) }
	if n := len(plan.Refusals); n > 0 {
		t.Errorf("%d pods are unschedulable, want none", n)
	}
	if got.pods != want.pods || got.nodes != want.nodes {
		t.Errorf("%d pods on %d nodes, want %d on %d", got.pods, got.nodes, want.pods, want.nodes)
	}
	if math.Abs(got.price-want.price) > 0.00005 { // wanted prices have four decimals
		t.Errorf("$%.4f per hour, want $%.4f", got.price, want.price)
	}
	if families := distinct(got.families); !slices.Equal(families, want.families) {
		t.Errorf("families %v, want %v", families, want.families)
	}
	if pools := distinct(got.pools); !slices.Equal(pools, want.pools) {
		t.Errorf("NodePools %v, want %v", pools, want.pools)
	}
}
