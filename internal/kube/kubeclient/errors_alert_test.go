package kubeclient

import (
	"os"
	"regexp"
	"testing"
)

// TestAlertsNameNextSteps: the alerts and the dashboard filter joiner_loop_failures_total by next steps that exist.
func TestAlertsNameNextSteps(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, next := range []NextStep{NoError, Reread, Retry, Gone, ReportToUser, Reject} {
		known[string(next)] = true
	}
	found := 0
	for _, path := range []string{"../../../deploy/alerts/joiner.yaml", "../../../deploy/dashboards/joiner.json"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`\bnext=\\?"(\w+)`).FindAllStringSubmatch(string(text), -1) {
			found++
			if !known[match[1]] {
				t.Errorf("%s filters by next=%q, which is not a NextStep", path, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no alert filters by the next step; want at least one")
	}
}
