package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/scenario"
)

// TestRoundTrip reads and writes every scenario in the testdata of package packing, and checks that nothing is lost.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../scheduling/packing/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range append(files, "testdata/everything.txt") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, err := scenario.Parse(string(data))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		text := first.String()
		again, err := scenario.Parse(text)
		if err != nil {
			t.Fatalf("%s: the written text cannot be parsed: %v\n%s", file, err, text)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s: writing and parsing changes the scenario (-before +after):\n%s", file, diff)
		}
		if diff := cmp.Diff(string(data), text); diff != "" {
			t.Errorf("%s is not in canonical form (-file +written):\n%s", file, diff)
		}
	}
}

// TestErrorsNameTheLine: errors of Parse begin with the number of the line, and describe the mistake.
func TestErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"pods\n  web cpu=x":                           "line 2: pod web: cpu=x: read quantity",
		"pods\n  web x0":                              "line 2: pod web: \"x0\" is not x followed by a number",
		"things":                                      "line 1: unknown section \"things\"",
		"  web":                                       "line 1: the line is outside of any section",
		"pods\n    require a In b":                    "line 2: \"require\" has no entry above it",
		"pods\n  web\n    require a":                  "line 3: want KEY OPERATOR VALUES",
		"pods\n  web\n    require a Near b":           "line 3: invalid operator or values: Near",
		"pods\n  web\n    hates a":                    "line 3: a pod has no \"hates\"",
		"pods\n  web\n    port eighty/TCP":            "line 3: \"eighty/TCP\" is not PORT/PROTOCOL",
		"pods\n  web\n    prefer many a In b":         "line 3: strconv.Atoi",
		"pools\n  a weight=heavy":                     "line 2: pool a: weight=heavy",
		"pools\n  a colour=red":                       "line 2: pool a: colour=red: want class, weight",
		"pools\n  a\n    taint x":                     "line 3: \"x\" is not KEY=VALUE:EFFECT",
		"pools\n  a\n    label x":                     "line 3: \"x\" is not KEY=VALUE",
		"nodes\n  a sleeping":                         "line 2: node a: sleeping: want leaving",
		"catalog\n  m5.large a , 1":                   "line 2: type m5.large: a zone or a capacity type is empty: a ,",
		"catalog\n  m5.large us-east-1a":              "line 2: want TYPE ZONES CAPACITY-TYPES PRICE",
		"catalog\n  m5.large a on-demand dear":        "line 2: price of m5.large",
		"catalog\n  m5.large a on-demand 1 what":      "line 2: type m5.large: what: want short or key=value",
		"catalog\n  m5.large a spot 1 reservation=c":  "line 2: type m5.large: it is spot, so it cannot be of capacity reservation c",
		"catalog\n  m5.large a reserved 1 left=3":     "line 2: type m5.large: its capacity reservation has no id",
		"catalog\n  m a reserved 1 reservation=c/d/e": "line 2: type m: reservation=c/d/e: want ID, ID/TYPE",
		"catalog\n  m a reserved 1 reservation=c/odd": "line 2: type m: the type of capacity reservation c is \"odd\"",
		"pools\n  a min-values=lax":                   "line 2: pool a: min-values=lax: want best-effort",
		"pods\n  web\n    spread app":                 "line 3: want SELECTOR over KEY",
		"pods\n  web\n    spread a=b by rack":         "line 3: want SELECTOR over KEY, but the selector is followed by \"by rack\"",
		"pods\n  web\n    spread = over rack":         "line 3: \"= over rack\" is not a selector: want KEY=VALUE",
		"pods\n  web\n    spread a in (b over k":      "line 3: a in: want values with commas between them",
		"pods\n  web\n    spread a>b over rack":       "line 3: invalid operator or values: Gt [\"b\"]",
		"pods\n  web\n    spread a over k far":        "line 3: far: want max-skew=N",
		"pods\n  web\n    spread a over k max-skew=x": "line 3: max-skew=x: strconv.Atoi",
		"pods\n  web\n    near a by k skew=1":         "line 3: skew=1: want weight=N, ns=A,B",
		"pods\n  web\n    volume a b":                 "line 3: want the name of a volume claim",
		"nodes\n  a\n    resident web":                "line 3: \"web\" is not KEY=VALUE",
		"nodes\n  a\n    resident a=b twice":          "line 3: \"twice\" is not x followed by a number from 1 to 1000000, ns=NAMESPACE or",
		"nodes\n  a\n    apart a by k":                "line 3: apart needs a resident above it",
		"solve effort=much":                           "line 1: want solve effort=STEPS",
		"daemons extra":                               "line 1: section daemons: unexpected [\"extra\"]",
	} {
		_, err := scenario.Parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want one that begins with %s", text, err, want)
		}
	}
}

// FuzzParse searches for texts that Parse accepts, but that change when they are written and parsed again.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../scheduling/packing/testdata/*.txt")
	for _, file := range append(files, "testdata/everything.txt") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, " x") > 3 {
			return // each "xN" can create a million pods
		}
		s, err := scenario.Parse(text)
		if err != nil || len(s.Snapshot.Pods) > 1000 {
			return // no scenario, or a slow one
		}
		written := s.String()
		again, err := scenario.Parse(written)
		if err != nil {
			t.Fatalf("the written text cannot be parsed: %v\n%s", err, written)
		}
		if second := again.String(); second != written {
			t.Errorf("the written text changes when it is parsed and written again:\n%s\n---\n%s", written, second)
		}
	})
}
