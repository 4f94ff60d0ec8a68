package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/scenario"
)

// TestRoundTrip reads and writes every scenario of the engine: nothing may be lost.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../scheduling/packing/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	next, _ := filepath.Glob("../packing/testdata/next/*.txt")
	for _, file := range append(append(files, next...), "testdata/everything.txt") {
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
			t.Fatalf("%s, written and read again: %v\n%s", file, err, text)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s changes on the way (-read +read again):\n%s", file, diff)
		}
		if diff := cmp.Diff(string(data), text); diff != "" {
			t.Errorf("%s is not written as it would be (-file +written):\n%s", file, diff)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"pods\n  web cpu=x":                           "line 2: pod web: cpu=x: read quantity",
		"pods\n  web x0":                              "line 2: pod web: \"x0\" is not x and a number",
		"things":                                      "line 1: no section is called \"things\"",
		"  web":                                       "line 1: this stands outside of any section",
		"pods\n    require a In b":                    "line 2: \"require\" belongs to no entry",
		"pods\n  web\n    require a":                  "line 3: want KEY OPERATOR VALUES",
		"pods\n  web\n    require a Near b":           "line 3: nothing is Near",
		"pods\n  web\n    hates a":                    "line 3: a pod has no \"hates\"",
		"pods\n  web\n    port eighty/TCP":            "line 3: \"eighty/TCP\" is not PORT/PROTOCOL",
		"pods\n  web\n    prefer many a In b":         "line 3: strconv.Atoi",
		"pools\n  a weight=heavy":                     "line 2: pool a: weight=heavy",
		"pools\n  a colour=red":                       "line 2: pool a: colour=red: want class, weight",
		"pools\n  a\n    taint x":                     "line 3: \"x\" is not KEY=VALUE:EFFECT",
		"pools\n  a\n    label x":                     "line 3: \"x\" is not KEY=VALUE",
		"nodes\n  a sleeping":                         "line 2: node a: sleeping: want leaving",
		"catalog\n  m5.large a , 1":                   "line 2: type m5.large: a zone or a capacity type is empty: a ,",
		"catalog\n  m5.large us-east-1a":              "line 2: want TYPE ZONES WAYS PRICE",
		"catalog\n  m5.large a on-demand dear":        "line 2: price of m5.large",
		"catalog\n  m5.large a on-demand 1 what":      "line 2: type m5.large: what: want short or key=value",
		"catalog\n  m5.large a spot 1 reservation=c":  "line 2: type m5.large: it is spot, so it cannot be of capacity reservation c",
		"catalog\n  m5.large a reserved 1 left=3":     "line 2: type m5.large: its capacity reservation has no id",
		"catalog\n  m a reserved 1 reservation=c/d/e": "line 2: type m: reservation=c/d/e: want ID, ID/TYPE",
		"catalog\n  m a reserved 1 reservation=c/odd": "line 2: type m: the type of capacity reservation c is \"odd\"",
		"pools\n  a min-values=lax":                   "line 2: pool a: min-values=lax: want best-effort",
		"pods\n  web\n    spread app":                 "line 3: want SELECTOR over KEY",
		"pods\n  web\n    spread a=b by rack":         "line 3: want SELECTOR over KEY, and \"by rack\" stands behind the selector",
		"pods\n  web\n    spread = over rack":         "line 3: \"= over rack\" is no selector: want KEY=VALUE",
		"pods\n  web\n    spread a in (b over k":      "line 3: a in: want values with commas",
		"pods\n  web\n    spread a>b over rack":       "line 3: nothing is Gt [\"b\"]",
		"pods\n  web\n    spread a over k far":        "line 3: far: want max-skew=N",
		"pods\n  web\n    spread a over k max-skew=x": "line 3: max-skew=x: strconv.Atoi",
		"pods\n  web\n    near a by k skew=1":         "line 3: skew=1: want weight=N, ns=A,B",
		"pods\n  web\n    volume a b":                 "line 3: want the name of a volume claim",
		"nodes\n  a\n    resident web":                "line 3: \"web\" is not KEY=VALUE",
		"nodes\n  a\n    resident a=b twice":          "line 3: \"twice\" is not x and a number up to 1000000, ns=NAMESPACE or ending",
		"nodes\n  a\n    apart a by k":                "line 3: apart belongs to a resident",
		"solve effort=much":                           "line 1: want solve effort=STEPS",
		"daemons extra":                               "line 1: section daemons takes nothing",
	} {
		_, err := scenario.Parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", text, err, want)
		}
	}
}

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
			return // a few of those make a million pods
		}
		s, err := scenario.Parse(text)
		if err != nil || len(s.Snapshot.Pods) > 1000 {
			return
		}
		written := s.String()
		again, err := scenario.Parse(written)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, written)
		}
		if second := again.String(); second != written {
			t.Errorf("it is written in two ways:\n%s\n---\n%s", written, second)
		}
	})
}
