package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/api/crds"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/permissions"
)

type value struct {
	path    string // such as settings.clusterName
	comment string
}

// documentedValues returns the values of values.yaml that have a comment. A comment begins with "# -- ", has any number
// of lines, and is before its value.
func documentedValues(t *testing.T) []value {
	t.Helper()
	text, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`^( *)([A-Za-z0-9]+):`)
	var (
		out       []value
		path      []string
		comment   string // the comment before the current line
		inComment bool
	)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			if first, ok := strings.CutPrefix(rest, " -- "); ok {
				comment, inComment = first, true
			} else if inComment {
				comment += rest
			}
			continue
		}
		inComment = false
		m := key.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		path = append(path[:min(len(path), len(m[1])/2)], m[2]) // two blanks per level
		if comment != "" {
			out = append(out, value{strings.Join(path, "."), comment})
			comment = ""
		}
	}
	return out
}

func defaultValues(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// valueAt returns the value at a path such as settings.clusterName; false if there is none.
func valueAt(tree map[string]any, path string) (any, bool) {
	var current any = tree
	for _, name := range strings.Split(path, ".") {
		parent, _ := current.(map[string]any)
		child, ok := parent[name]
		if !ok {
			return nil, false
		}
		current = child
	}
	return current, true
}

// leaves returns the paths of the values in tree, whose own path is path. A map without a comment is no value, but its
// entries are.
func leaves(tree map[string]any, isDocumented func(string) bool, path string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		here := strings.TrimPrefix(path+"."+name, ".")
		below, isMap := tree[name].(map[string]any)
		if isDocumented(here) || !isMap {
			out = append(out, here)
			continue
		}
		out = append(out, leaves(below, isDocumented, here)...)
	}
	return out
}

func TestValuesAreDocumented(t *testing.T) {
	t.Parallel()
	all, isDocumented := defaultValues(t), map[string]bool{}
	for _, v := range documentedValues(t) {
		isDocumented[v.path] = true
		if _, ok := valueAt(all, v.path); !ok || !strings.HasSuffix(v.comment, ".") {
			t.Errorf("values.yaml: the comment of %s is %q: want a full stop at its end, and a value below it", v.path, v.comment)
		}
	}
	for _, path := range leaves(all, func(p string) bool { return isDocumented[p] }, "") {
		if !isDocumented[path] {
			t.Errorf("values.yaml has no comment for %s", path)
		}
	}
}

// settingsWithoutValue maps the settings without a value in the chart to the reason. controller.env can set them.
var settingsWithoutValue = map[string]string{
	"kubeconfig":      "the pod's service account is used",
	"aws-region":      "the AWS SDK finds it; in Karpenter's chart, too, only controller.env sets it",
	"kube-client-qps": "rarely needed", "kube-client-burst": "rarely needed", "bind-address": "rarely needed",
	"enable-profiling":        "for developers",
	"disable-leader-election": "the controller has two replicas", "leader-election-name": "the chart's role allows only the default name",
	"leader-election-namespace": "the namespace of the release is used",
}

func TestEverySettingHasAValue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(chart + "/templates/_env.tpl")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^  --([a-z0-9-]+) `).FindAllStringSubmatch(config.Help(), -1)
	if len(flags) < 20 {
		t.Fatalf("the help of joiner controller lists %d settings, want at least 20", len(flags))
	}
	for _, flag := range flags {
		variable := strings.ToUpper(strings.ReplaceAll(flag[1], "-", "_"))
		isSet := strings.Contains(string(text), `"`+variable+`"`) || strings.Contains(string(text), "name: "+variable+"\n")
		if isSet == (settingsWithoutValue[flag[1]] != "") {
			t.Errorf("the chart has a value for setting --%s: %t; want a value, or a reason in settingsWithoutValue, not both", flag[1], isSet)
		}
	}
}

// TestObjectNames: the packages that create the Lease, the ConfigMaps and the CRDs use the names of package
// permissions.
func TestObjectNames(t *testing.T) {
	t.Parallel()
	s, _, err := config.Load([]string{"--cluster-name=demo"}, func(string) (string, bool) { return "", false })
	if err != nil || s.LeaderElectionName != permissions.LeaseName || evidence.LeaseName != permissions.LeaseName ||
		kubeclient.MeasuredName != permissions.MeasuredName || kubeclient.PauseName != permissions.PauseName ||
		kubeclient.MovesName != permissions.TripsName {
		t.Errorf("the lease is %s, package permissions has %s; the ConfigMaps are %s, %s and %s, package permissions has %s, %s and %s (%v)", s.LeaderElectionName, permissions.LeaseName,
			kubeclient.MeasuredName, kubeclient.PauseName, kubeclient.MovesName, permissions.MeasuredName, permissions.PauseName,
			permissions.TripsName, err)
	}
	var names []string
	for _, m := range crds.Manifests() {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, permissions.Definitions()) {
		t.Errorf("the CRDs are %v, package permissions has %v", names, permissions.Definitions())
	}
}

func TestReadme(t *testing.T) {
	const file, header = chart + "/README.md", "| value | default | |\n|---|---|---|\n"
	all := defaultValues(t)
	var table strings.Builder
	for _, v := range documentedValues(t) {
		defaultValue, ok := valueAt(all, v.path)
		if !ok {
			t.Fatalf("values.yaml has a comment for %s, but no value", v.path)
		}
		text, err := json.Marshal(defaultValue)
		if err != nil {
			t.Fatal(err)
		}
		shown := "`" + string(text) + "`"
		if len(shown) > 60 { // too wide for a table
			shown = "see values.yaml"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", v.path, shown, strings.ReplaceAll(v.comment, "|", `\|`))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), header)
	_, after, hasEnd := strings.Cut(rest, "\n\n")
	if !ok || !hasEnd {
		t.Fatalf("%s has no table of values", file)
	}
	want := before + header + table.String() + "\n" + after
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the table of %s differs from values.yaml: run go test ./deploy/charts -run TestReadme -rewrite", file)
	}
}
