package charts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/config"
)

// tooCommon is the reason for values that occur everywhere in the objects, such as 1 and true.
const tooCommon = "see the golden files"

// excludedValues lists values of Karpenter's chart for which TestValuesOfKarpenter does not search the rendered
// objects, with the reason.
var excludedValues = map[string]string{
	"webhook":                "there is no webhook",
	"postInstallHook":        "there is no hook",
	"serviceAccount.create":  "defines only whether the object exists",
	"serviceMonitor.enabled": "defines only whether the object exists",
	"settings.featureGates":  "one variable has all gates; see checkGates",
	"dnsPolicy":              "with hostNetwork, ClusterFirst becomes ClusterFirstWithHostNet",
	"affinity":               "the chart adds selectors; see the golden files",

	"podDisruptionBudget.maxUnavailable": tooCommon,
	"replicas":                           tooCommon,
	"strategy.rollingUpdate":             tooCommon,
	"revisionHistoryLimit":               tooCommon,
	"hostNetwork":                        tooCommon,
	"settings.vmMemoryOverheadPercent":   "the text of the number changes, as from 0.10 to 0.1",
}

// gates maps the values below settings.featureGates to the names of the feature gates.
var gates = map[string]string{
	"nodeRepair": "NodeRepair", "reservedCapacity": "ReservedCapacity", "nodeOverlay": "NodeOverlay", "staticCapacity": "StaticCapacity",
	"spotToSpotConsolidation": "SpotToSpotConsolidation", "capacityBuffer": "CapacityBuffer",
}

// TestValuesOfKarpenter renders the chart with unchanged values files of Karpenter's chart. The objects contain the
// values, the controller accepts the resulting settings, and it returns a note for each unsupported one.
func TestValuesOfKarpenter(t *testing.T) {
	wantNotes := map[string]int{"1.8-gates": 1, "1.14-buffers": 3} // by values file; 0 for the others
	files, err := filepath.Glob("testdata/of-karpenter/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("testdata/of-karpenter has %d values files (%v), want at least 8", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			if out, errs, err := helm(t, "lint", "--strict", chart, "-n", namespace, "-f", file); err != nil {
				t.Errorf("helm lint: %v\n%s%s", err, out, errs)
			}
			got, errs, err := helm(t, "template", release, chart, "-n", namespace, "-f", file)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, errs)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var values map[string]any
			if err := yaml.UnmarshalStrict(text, &values); err != nil {
				t.Fatal(err)
			}
			for path, want := range scalars("", values) {
				if want != "" && !isExcluded(path) && !strings.Contains(got, want) {
					t.Errorf("%s is %q, but no rendered object contains this text", path, want)
				}
			}
			environ := environOf(t, got)
			settings, notes, err := config.FromProcess(nil, environ)
			if err != nil || len(notes) != wantNotes[name] {
				t.Errorf("the controller returns the notes %v and the error %v, want %d notes and no error", notes, err, wantNotes[name])
			}
			if want, _ := valueAt(values, "settings.clusterName"); settings.ClusterName != want {
				t.Errorf("the controller would serve the cluster %q, want %q", settings.ClusterName, want)
			}
			checkGates(t, values, environ)
		})
	}
}

func isExcluded(path string) bool {
	for prefix := range excludedValues {
		if path == prefix || strings.HasPrefix(path, prefix+".") {
			return true
		}
	}
	return false
}

// scalars returns the strings, numbers and booleans of a tree as text, by path: "tolerations.0.key".
func scalars(path string, tree any) map[string]string {
	out := map[string]string{}
	switch tree := tree.(type) {
	case nil:
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			maps.Copy(out, scalars(strings.TrimPrefix(path+"."+key, "."), tree[key]))
		}
	case []any:
		for i, item := range tree {
			maps.Copy(out, scalars(fmt.Sprintf("%s.%d", path, i), item))
		}
	default:
		out[path] = fmt.Sprint(tree)
	}
	return out
}

// environOf returns the controller's environment variables in the Deployment, as NAME=VALUE. The value of a variable
// with valueFrom is empty.
func environOf(t *testing.T, manifests string) []string {
	t.Helper()
	for _, document := range strings.Split(manifests, "\n---\n") {
		var d struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Env []struct{ Name, Value string }
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &d); err != nil {
			t.Fatal(err)
		}
		if d.Kind != "Deployment" {
			continue
		}
		var out []string
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			out = append(out, e.Name+"="+e.Value)
		}
		return out
	}
	t.Fatal("there is no Deployment")
	return nil
}

func checkGates(t *testing.T, values map[string]any, environ []string) {
	t.Helper()
	value, _ := valueAt(values, "settings.featureGates")
	configured, _ := value.(map[string]any)
	got := ""
	for _, variable := range environ {
		if list, ok := strings.CutPrefix(variable, "FEATURE_GATES="); ok {
			got = list
		}
	}
	for name, isOn := range configured {
		if gates[name] == "" || !slices.Contains(strings.Split(got, ","), fmt.Sprintf("%s=%t", gates[name], isOn)) {
			t.Errorf("settings.featureGates.%s is %t, but FEATURE_GATES is %q", name, isOn, got)
		}
	}
}
