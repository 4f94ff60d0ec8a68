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

// value is one of the chart's values with its comment in values.yaml.
type value struct {
	path string // "settings.clusterName"
	says string
}

// documented returns the values of values.yaml that have a comment: "# -- " and the lines that follow, before the value.
func documented(t *testing.T) []value {
	t.Helper()
	text, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`^( *)([A-Za-z0-9]+):`)
	var (
		out   []value
		path  []string
		says  string
		inDoc bool
	)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			if first, ok := strings.CutPrefix(comment, " -- "); ok {
				says, inDoc = first, true
			} else if inDoc {
				says += comment
			}
			continue
		}
		inDoc = false
		m := key.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		path = append(path[:min(len(path), len(m[1])/2)], m[2])
		if says != "" {
			out = append(out, value{strings.Join(path, "."), says})
			says = ""
		}
	}
	return out
}

// tree returns values.yaml as data.
func tree(t *testing.T) map[string]any {
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

func at(tree map[string]any, path string) (any, bool) {
	var now any = tree
	for _, name := range strings.Split(path, ".") {
		in, _ := now.(map[string]any)
		next, ok := in[name]
		if !ok {
			return nil, false
		}
		now = next
	}
	return now, true
}

// leaves returns the paths of documented values, and of values that are no maps.
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

// TestValuesAreDocumented: each value has a comment, and each comment a value.
func TestValuesAreDocumented(t *testing.T) {
	t.Parallel()
	all, says := tree(t), map[string]bool{}
	for _, v := range documented(t) {
		says[v.path] = true
		if _, ok := at(all, v.path); !ok || !strings.HasSuffix(v.says, ".") {
			t.Errorf("values.yaml says of %s %q: want a value and a sentence", v.path, v.says)
		}
	}
	for _, path := range leaves(all, func(p string) bool { return says[p] }, "") {
		if !says[path] {
			t.Errorf("values.yaml does not say what %s is", path)
		}
	}
}

// unset are the settings without a value in the chart, with the reason. controller.env can set them.
var unset = map[string]string{
	"kubeconfig": "the pod's service account is used", "aws-region": "the AWS SDK finds it; Karpenter's values use controller.env, too",
	"kube-client-qps": "rarely needed", "kube-client-burst": "rarely needed", "bind-address": "rarely needed", "enable-profiling": "for developers",
	"disable-leader-election": "with two replicas, never", "leader-election-name": "the role names the lease",
	"leader-election-namespace": "that of the release",
}

// TestEverySettingHasAValue: every setting has a value in the chart, or a reason in unset.
func TestEverySettingHasAValue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(chart + "/templates/_env.tpl")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^  --([a-z0-9-]+) `).FindAllStringSubmatch(config.Help(), -1)
	if len(flags) < 20 {
		t.Fatalf("joiner controller has %d settings", len(flags))
	}
	for _, flag := range flags {
		variable := strings.ToUpper(strings.ReplaceAll(flag[1], "-", "_"))
		isSet := strings.Contains(string(text), `"`+variable+`"`) || strings.Contains(string(text), "name: "+variable+"\n")
		if isSet == (unset[flag[1]] != "") {
			t.Errorf("setting --%s is set by the chart: %t; say why not in unset, or take it out there", flag[1], isSet)
		}
	}
}

// TestRightsNameWhatIsThere: package permissions has the names of the objects that other packages create.
func TestRightsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	s, _, err := config.Load([]string{"--cluster-name=demo"}, func(string) (string, bool) { return "", false })
	if err != nil || s.LeaderElectionName != permissions.LeaseName || evidence.LeaseName != permissions.LeaseName ||
		kubeclient.MeasuredName != permissions.MeasuredName || kubeclient.PauseName != permissions.PauseName ||
		kubeclient.TripsName != permissions.TripsName {
		t.Errorf("the lease is %s, package permissions has %s; the ConfigMaps are %s, %s and %s, package permissions has %s, %s and %s (%v)", s.LeaderElectionName, permissions.LeaseName,
			kubeclient.MeasuredName, kubeclient.PauseName, kubeclient.TripsName, permissions.MeasuredName, permissions.PauseName,
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

// TestReadme compares the table of the chart's README with values.yaml.
func TestReadme(t *testing.T) {
	const file, head = chart + "/README.md", "| value | default | |\n|---|---|---|\n"
	all := tree(t)
	var table strings.Builder
	for _, v := range documented(t) {
		fallback, ok := at(all, v.path)
		if !ok {
			t.Fatalf("there is no value %s", v.path)
		}
		text, err := json.Marshal(fallback)
		if err != nil {
			t.Fatal(err)
		}
		shown := "`" + string(text) + "`"
		if len(shown) > 60 {
			shown = "see values.yaml"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", v.path, shown, strings.ReplaceAll(v.says, "|", `\|`))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), head)
	_, after, end := strings.Cut(rest, "\n\n")
	if !ok || !end {
		t.Fatalf("%s has no table of values", file)
	}
	want := before + head + table.String() + "\n" + after
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the table of %s differs from values.yaml: run go test ./deploy/charts -run TestReadme -rewrite", file)
	}
}
