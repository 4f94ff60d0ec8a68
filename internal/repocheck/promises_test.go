package repocheck

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// withoutWarning lists the rows of docs/compatibility.md with "not yet" for which the controller logs no warning on
// startup, with the reason. The title of a section stands for all of its rows.
var withoutWarning = map[string]string{
	"Metrics": "no setting requests a metric",
	"Events":  "no setting requests an event",
	"`karpenter.sh/capacity-buffer-fake-pod`":  "Karpenter sets it only on virtual pods that are not in the API server",
	"`karpenter.sh/capacity-buffer-name`":      "same as capacity-buffer-fake-pod",
	"`karpenter.sh/capacity-buffer-namespace`": "same as capacity-buffer-fake-pod",
}

// TestNothingIsSilentlyIgnored: each row of docs/compatibility.md with "not yet" has the text of the warning that the
// controller logs, or is listed in withoutWarning.
func TestNothingIsSilentlyIgnored(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	section, rows, used := "", 0, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| ") || !strings.Contains(line, "| "+notYet) {
			continue
		}
		rows++
		cells = append(cells, section)
		at := slices.IndexFunc(cells, func(cell string) bool { return withoutWarning[strings.TrimSpace(cell)] != "" })
		isLogged, isException := strings.Contains(line, "| "+notYetLogged("")), at >= 0
		if isException {
			used[strings.TrimSpace(cells[at])] = true
		}
		if isLogged == isException {
			t.Errorf("%s: logged on startup: %t; listed in withoutWarning: %t; want exactly one true. The warnings about fields of objects are in %s, those about settings in package config",
				line, isLogged, isException, warningsFile)
		}
	}
	for row := range withoutWarning {
		if !used[row] {
			t.Errorf("no row of %s needs the entry %q of withoutWarning", compatibilityPage, row)
		}
	}
	if rows == 0 {
		t.Errorf("%s has no row with %q: its format may have changed", compatibilityPage, notYet)
	}
}

// TestWarningsAreOnPage: docs/compatibility.md has a row with each warning of the controller about a field without
// effect.
func TestWarningsAreOnPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	for path, warning := range readSource(t).warnings {
		if !strings.Contains(string(page), notYetLogged(warning)) {
			t.Errorf("%s has for %s the warning %q, which no row of %s has: the field may be supported now", warningsFile, path, warning, compatibilityPage)
		}
	}
}
