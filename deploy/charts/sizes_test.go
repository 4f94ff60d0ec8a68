package charts

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// taken is the measured usage of the controller in a cluster with a number of nodes, from docs/sizes.md.
type taken struct {
	nodes, pods int64
	rest, most  int64 // resident memory when idle, and the maximum, in MiB
	idle        int64 // CPU when idle, in millicores
}

// cells returns the rows of the first table of a text, without its header.
func cells(t *testing.T, text string) [][]string {
	t.Helper()
	var out [][]string
	for line := range strings.Lines(text) {
		row, ok := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !ok {
			if len(out) > 0 {
				break
			}
			continue
		}
		columns := strings.Split(strings.TrimSuffix(row, "|"), "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		out = append(out, columns)
	}
	if len(out) < 3 {
		t.Fatalf("there is no table in:\n%s", text)
	}
	return out[2:]
}

// number parses the number at the start of a cell: "30,000", "146 MiB", "6m".
func number(t *testing.T, cell string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.ReplaceAll(regexp.MustCompile(`^[0-9,]+`).FindString(cell), ",", ""), 10, 64)
	if err != nil {
		t.Fatalf("%q has no number", cell)
	}
	return n
}

// sizes returns the rows that make sizing wrote.
func sizes(t *testing.T) []taken {
	t.Helper()
	text, err := os.ReadFile("../../docs/sizes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "<!-- written by make sizing -->\n")
	if !ok {
		t.Fatal("docs/sizes.md has no table")
	}
	var out []taken
	for _, row := range cells(t, table) {
		if len(row) != 12 {
			t.Fatalf("docs/sizes.md has a row of %d cells: %q", len(row), row)
		}
		out = append(out, taken{
			nodes: number(t, row[0]), pods: number(t, row[1]), rest: number(t, row[3]), idle: number(t, row[4]), most: number(t, row[10]),
		})
	}
	return out
}

// TestSizes compares the chart's table of sizes, and the chart's default requests and limit, with the measurements:
// requests are at least the usage of an idle controller, and the maximum memory usage is below two thirds of the limit.
func TestSizes(t *testing.T) {
	measured := sizes(t)
	text, err := os.ReadFile(chart + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Sizes\n")
	all, sizeOfChart := tree(t), false
	for _, row := range cells(t, section) {
		nodes, pods := number(t, row[0]), number(t, row[1])
		at := slices.IndexFunc(measured, func(m taken) bool { return m.nodes == nodes && m.pods == pods })
		if at < 0 {
			t.Errorf("%d nodes with %d pods were not measured: make sizing", nodes, pods)
			continue
		}
		cpu, memory, _ := strings.Cut(row[2], ", ")
		fits(t, measured[at], cpu, memory, row[3])
		sizeOfChart = sizeOfChart || isOfChart(t, all, cpu, memory, row[3])
	}
	if !sizeOfChart {
		t.Error("no row of the table has the chart's own requests and limit")
	}
}

// fits checks the requests and limit of a row.
func fits(t *testing.T, m taken, cpu, memory, limit string) {
	t.Helper()
	mib := func(text string) int64 { q := resource.MustParse(text); return q.Value() >> 20 }
	if q := resource.MustParse(cpu); q.MilliValue() < m.idle {
		t.Errorf("%d nodes: %s of CPU are requested, but the idle controller uses %dm", m.nodes, cpu, m.idle)
	}
	if mib(memory) < m.rest {
		t.Errorf("%d nodes: %s of memory are requested, but the idle controller uses %d MiB", m.nodes, memory, m.rest)
	}
	if 2*mib(limit) < 3*m.most {
		t.Errorf("%d nodes: the limit is %s, less than one and a half times the measured maximum of %d MiB", m.nodes, limit, m.most)
	}
}

// isOfChart reports whether the chart's defaults are these requests and this limit.
func isOfChart(t *testing.T, all map[string]any, cpu, memory, limit string) bool {
	t.Helper()
	for path, want := range map[string]string{
		"controller.resources.requests.cpu": cpu, "controller.resources.requests.memory": memory, "controller.resources.limits.memory": limit,
	} {
		if got, ok := at(all, path); !ok || got != want {
			return false
		}
	}
	return true
}
