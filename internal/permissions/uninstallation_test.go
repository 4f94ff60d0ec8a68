package permissions_test

import (
	"os"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/permissions"
)

// TestUninstallationDeletesObjects: the uninstallation guides delete every object that the controller may keep in its
// namespace.
func TestUninstallationDeletesObjects(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"../../docs/guides/uninstall.md", "../../docs/installation.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range []string{"configmap/" + permissions.MeasuredName, "configmap/" + permissions.TripsName,
			"configmap/" + permissions.PauseName, "lease/" + permissions.LeaseName} {
			if !strings.Contains(string(text), " "+object+" ") {
				t.Errorf("%s does not delete %s", page, object)
			}
		}
	}
}
