package repocheck

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// silent are the rows of docs/compatibility.md with "not yet" for which the controller logs no warning on startup. The
// value is the reason: no setting or object requests them. A section includes all of its rows.
var silent = map[string]string{
	"Metrics": "a query, not a setting, requests a metric",
	"Events":  "no setting requests an event",
	"`karpenter.sh/capacity-buffer-fake-pod`":  "Karpenter sets it only on virtual pods that are not in the API server",
	"`karpenter.sh/capacity-buffer-name`":      "same as capacity-buffer-fake-pod",
	"`karpenter.sh/capacity-buffer-namespace`": "same as capacity-buffer-fake-pod",
}

// TestNothingIsSilentlyIgnored: the controller logs a warning for everything that is accepted and has no effect. A row
// with "not yet" has the text of the warning.
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
		excused := slices.IndexFunc(append(cells, section), func(cell string) bool { return silent[strings.TrimSpace(cell)] != "" })
		isTold := strings.Contains(line, "| "+told(""))
		if excused >= 0 {
			used[strings.TrimSpace(append(cells, section)[excused])] = true
		}
		if isTold == (excused >= 0) {
			t.Errorf("%s: logged on startup: %t; listed in silent: %t; want exactly one. Fields of objects without effect are listed in %s, settings in package config",
				line, isTold, excused >= 0, lapseFile)
		}
	}
	for row := range silent {
		if !used[row] {
			t.Errorf("no row of %s needs the entry %q of silent", compatibilityPage, row)
		}
	}
	if rows == 0 {
		t.Errorf("%s has no row with %q: its format may have changed", compatibilityPage, notYet)
	}
}

// TestLapsesAreOfThePage: every warning of the controller about a field without effect has a row on the page.
func TestLapsesAreOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	for path, says := range readSource(t).lapses {
		if !strings.Contains(string(page), told(says)) {
			t.Errorf("%s has for %s the warning %q, which no row of %s has: the field may be supported now", lapseFile, path, says, compatibilityPage)
		}
	}
}
