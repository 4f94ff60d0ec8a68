package repocheck

import (
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/migration"
)

// TestPanelsOfKarpenter: migrate check lists exactly the panels of Karpenter's dashboards whose metrics package metrics
// lacks.
func TestPanelsOfKarpenter(t *testing.T) {
	t.Parallel()
	ours, lacking := readSource(t).metricNames(), migration.MetricsOfKarpenterAlone()
	seen := map[string]bool{}
	for _, p := range migration.Panels() {
		for _, m := range p.Metrics {
			seen[m] = true
			if strings.HasPrefix(m, "controller_runtime_") {
				continue // a metric of a library
			}
			if slices.Contains(ours, m) == slices.Contains(lacking, m) {
				t.Errorf("%s, panel %q: %s exists: %t; migrate check reports it as missing: %t", p.Dashboard, p.Title, m,
					slices.Contains(ours, m), slices.Contains(lacking, m))
			}
		}
	}
	for _, m := range lacking {
		if !seen[m] {
			t.Errorf("no panel shows %s", m)
		}
	}
}
