package checks_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestPages: each check has a page with all sections, each page belongs to a check, and the index lists all checks.
func TestPages(t *testing.T) {
	t.Parallel()
	const folder = "../../../docs/checks"
	index, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range Checks() {
		if slices.Contains(ids, c.ID) {
			t.Errorf("two checks have the ID %s", c.ID)
		}
		ids = append(ids, c.ID)
		page, err := os.ReadFile(filepath.Join(folder, c.ID+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		if want := "# " + c.ID + ": " + c.Title + "\n"; !strings.HasPrefix(string(page), want) {
			t.Errorf("page %s does not begin with %q", c.ID, want)
		}
		headingEnd := 0 // where the previous section's heading ends in the page
		for _, section := range []string{"\n## Symptom\n", "\n## Cause\n", "\n## How it is known\n", "\n## Fix\n"} {
			distance := strings.Index(string(page)[headingEnd:], section)
			if distance < 0 {
				t.Errorf("page %s lacks the section %q, or the section is out of order", c.ID, section)
				break
			}
			headingEnd += distance + len(section)
		}
		if want := "| [" + c.ID + "](" + c.ID + ".md) | " + c.Title + " |\n"; !strings.Contains(string(index), want) {
			t.Errorf("the index has no line %q", want)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if id := strings.TrimSuffix(filepath.Base(file), ".md"); id != "README" && !slices.Contains(ids, id) {
			t.Errorf("page %s belongs to no check", id)
		}
	}
	if lines := strings.Count(string(index), "\n| ["); lines != len(ids) {
		t.Errorf("the index lists %d checks, want %d", lines, len(ids))
	}
}
