package joiner_test

import (
	"os"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/migration"
)

// TestMigrationLacks: what joiner migrate check says that Joiner has not yet, it has not. When a row of docs/compatibility.md changes,
// write what package migration says of it anew.
func TestMigrationLacks(t *testing.T) {
	page, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, lack := range migration.Lacking() {
		if !strings.Contains(string(page), "\n"+lack.String()+" "+notYet) {
			t.Errorf("%s does not say %q of %s", compatibilityPage, notYet, lack)
		}
	}
}
