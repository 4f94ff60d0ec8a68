package repocheck

import (
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/migration"
)

// TestPanelsOfKarpenter: joiner migrate check reports exactly the panels of Karpenter's dashboards that show metrics
// which package metrics does not have.
func TestPanelsOfKarpenter(t *testing.T) {
	t.Parallel()
	ours, missing := readSource(t).metricNames(), migration.MetricsOfKarpenterAlone()
	seen := map[string]bool{}
	for _, p := range migration.Panels() {
		for _, m := range p.Metrics {
			seen[m] = true
			if strings.HasPrefix(m, "controller_runtime_") {
				continue // a metric of a library
			}
			if slices.Contains(ours, m) == slices.Contains(missing, m) {
				t.Errorf("%s, panel %q: Joiner has the metric %s: %t; migrate check reports it as missing: %t; want exactly one true", p.Dashboard, p.Title, m,
					slices.Contains(ours, m), slices.Contains(missing, m))
			}
		}
	}
	for _, m := range missing {
		if !seen[m] {
			t.Errorf("migrate check reports the metric %s as missing, but no panel shows it", m)
		}
	}
}
