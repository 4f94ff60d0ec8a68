package permissions_test

import (
	"os"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/permissions"
)

// TestNothingIsLeft: whatever the controller may keep in its namespace is taken away by the pages that say how it goes.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"../../docs/guides/uninstall.md", "../../docs/installation.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range []string{"configmap/" + permissions.MeasuredName, "configmap/" + permissions.TripsName, "configmap/" + permissions.PauseName, "lease/" + permissions.LeaseName} {
			if !strings.Contains(string(text), " "+object+" ") {
				t.Errorf("%s does not take %s away", page, object)
			}
		}
	}
}
