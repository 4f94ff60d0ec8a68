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

// usage is a row of docs/sizes.md: what the controller used in a cluster of this size.
type usage struct {
	nodes, pods           int64
	idleMemory, maxMemory int64 // resident memory, in MiB
	idleCPU               int64 // in millicores
}

// tableRows returns the cells of the first table of a text by row, without its two header lines.
func tableRows(t *testing.T, text string) [][]string {
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

// measuredUsages returns the rows of the table that make sizing wrote to docs/sizes.md.
func measuredUsages(t *testing.T) []usage {
	t.Helper()
	text, err := os.ReadFile("../../docs/sizes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "<!-- written by make sizing -->\n")
	if !ok {
		t.Fatal("docs/sizes.md has no table")
	}
	var out []usage
	for _, row := range tableRows(t, table) {
		if len(row) != 12 {
			t.Fatalf("docs/sizes.md has a row of %d cells, want 12: %q", len(row), row)
		}
		out = append(out, usage{
			nodes: number(t, row[0]), pods: number(t, row[1]), idleMemory: number(t, row[3]), idleCPU: number(t, row[4]),
			maxMemory: number(t, row[10]),
		})
	}
	return out
}

// TestSizes compares the table of sizes in the chart's README with the measurements: the requests of each row are at
// least the usage of an idle controller, and the memory limit is at least 1.5 times the maximum usage. One row of the
// table has the chart's default requests and limit.
func TestSizes(t *testing.T) {
	measured := measuredUsages(t)
	text, err := os.ReadFile(chart + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Sizes\n")
	all, hasDefaults := defaultValues(t), false
	for _, row := range tableRows(t, section) {
		nodes, pods := number(t, row[0]), number(t, row[1])
		i := slices.IndexFunc(measured, func(m usage) bool { return m.nodes == nodes && m.pods == pods })
		if i < 0 {
			t.Errorf("%d nodes with %d pods were not measured: run make sizing", nodes, pods)
			continue
		}
		cpu, memory, _ := strings.Cut(row[2], ", ")
		checkRow(t, measured[i], cpu, memory, row[3])
		hasDefaults = hasDefaults || areChartDefaults(t, all, cpu, memory, row[3])
	}
	if !hasDefaults {
		t.Error("no row of the table has the chart's default requests and limit")
	}
}

func checkRow(t *testing.T, m usage, cpu, memory, limit string) {
	t.Helper()
	mib := func(text string) int64 { q := resource.MustParse(text); return q.Value() >> 20 }
	if q := resource.MustParse(cpu); q.MilliValue() < m.idleCPU {
		t.Errorf("%d nodes: %s of CPU are requested, but the idle controller uses %dm", m.nodes, cpu, m.idleCPU)
	}
	if mib(memory) < m.idleMemory {
		t.Errorf("%d nodes: %s of memory are requested, but the idle controller uses %d MiB", m.nodes, memory, m.idleMemory)
	}
	if 2*mib(limit) < 3*m.maxMemory {
		t.Errorf("%d nodes: the limit is %s, less than 1.5 times the measured maximum of %d MiB", m.nodes, limit, m.maxMemory)
	}
}

func areChartDefaults(t *testing.T, all map[string]any, cpu, memory, limit string) bool {
	t.Helper()
	for path, want := range map[string]string{
		"controller.resources.requests.cpu": cpu, "controller.resources.requests.memory": memory, "controller.resources.limits.memory": limit,
	} {
		if got, ok := valueAt(all, path); !ok || got != want {
			return false
		}
	}
	return true
}
