package charts

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
)

// defaultsName is the values file that sets only the required value. Its golden file has the rendered manifests. The
// golden file of another values file has a unified diff to these manifests, or the manifests if they are shorter.
const defaultsName = "defaults"

// diffStart is the first line of a golden file that has a diff.
const diffStart = "--- " + defaultsName + "\n"

func goldenPath(name string) string { return "testdata/" + name + ".golden" }

// golden returns the rendered manifests of a values file, from its golden file.
func golden(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(goldenPath(name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(string(text), diffStart) {
		return applyDiff(t, golden(t, defaultsName), string(text))
	}
	return string(text)
}

// goldenText returns the content for the golden file of a values file, from its rendered manifests.
func goldenText(t *testing.T, name, manifests string) string {
	t.Helper()
	if name == defaultsName {
		return manifests
	}
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: strings.SplitAfter(golden(t, defaultsName), "\n"), B: strings.SplitAfter(manifests, "\n"),
		FromFile: defaultsName, ToFile: name, Context: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(diff) > len(manifests) {
		return manifests
	}
	return diff
}

// applyDiff applies a diff of goldenText to a text.
func applyDiff(t *testing.T, text, diff string) string {
	t.Helper()
	before := strings.SplitAfter(text, "\n")
	var out strings.Builder
	done := 0 // number of lines of before that are copied or dropped
	copyUntil := func(n int) {
		for ; done < n; done++ {
			out.WriteString(before[done])
		}
	}
	for _, line := range strings.SplitAfter(diff, "\n")[2:] { // the first two lines name the files
		switch {
		case strings.HasPrefix(line, "@@ -"):
			number, _, _ := strings.Cut(strings.TrimPrefix(line, "@@ -"), ",")
			first, err := strconv.Atoi(strings.Fields(number)[0])
			if err != nil || first > len(before) {
				t.Fatalf("invalid line in a golden file: %s", line)
			}
			copyUntil(first - 1)
		case strings.HasPrefix(line, "+"):
			out.WriteString(line[1:])
		case strings.HasPrefix(line, "-"):
			done++
		case line != "":
			copyUntil(done + 1)
		}
	}
	copyUntil(len(before))
	return out.String()
}
