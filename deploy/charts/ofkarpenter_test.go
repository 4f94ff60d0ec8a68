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

// excludedValues lists values of Karpenter's chart for which TestValuesOfKarpenter does not search the rendered objects,
// with the reason.
var excludedValues = map[string]string{
	"webhook":                            "there is no webhook",
	"postInstallHook":                    "there is no hook",
	"serviceAccount.create":              "defines only whether the object exists",
	"serviceMonitor.enabled":             "defines only whether the object exists",
	"settings.featureGates":              "one variable has all gates; see checkGates",
	"podDisruptionBudget.maxUnavailable": "a number that occurs everywhere in the objects; see the golden files",
	"replicas":                           "a number that occurs everywhere in the objects; see the golden files",
	"dnsPolicy":                          "with hostNetwork, ClusterFirst becomes ClusterFirstWithHostNet",
	"strategy.rollingUpdate":             "a number that occurs everywhere in the objects; see the golden files",
	"revisionHistoryLimit":               "a number that occurs everywhere in the objects; see the golden files",
	"affinity":                           "the chart adds selectors to it; see the golden files",
	"hostNetwork":                        "a boolean that occurs everywhere in the objects; see the golden files",
	"settings.vmMemoryOverheadPercent":   "the chart converts the number to a string",
}

// gates are the names of the feature gates, by chart value.
var gates = map[string]string{
	"nodeRepair": "NodeRepair", "reservedCapacity": "ReservedCapacity", "nodeOverlay": "NodeOverlay", "staticCapacity": "StaticCapacity",
	"spotToSpotConsolidation": "SpotToSpotConsolidation", "capacityBuffer": "CapacityBuffer",
}

// TestValuesOfKarpenter renders the chart with unchanged values files of Karpenter's chart. The objects contain the values,
// and the controller accepts the resulting settings. It logs a warning for each unsupported setting.
func TestValuesOfKarpenter(t *testing.T) {
	wantNotes := map[string]int{"1.8-gates": 1, "1.14-buffers": 3} // number of warnings, by values file
	files, err := filepath.Glob("testdata/of-karpenter/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("there are %d values files: %v; want at least 8", len(files), err)
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
				t.Errorf("the controller reports the notes %v, error %v; want %d notes", notes, err, wantNotes[name])
			}
			if want, _ := valueAt(values, "settings.clusterName"); settings.ClusterName != want {
				t.Errorf("the controller would serve %q, want %q", settings.ClusterName, want)
			}
			checkGates(t, values, environ)
		})
	}
}

// isExcluded reports whether excludedValues has the path or a path above it.
func isExcluded(path string) bool {
	for prefix := range excludedValues {
		if path == prefix || strings.HasPrefix(path, prefix+".") {
			return true
		}
	}
	return false
}

// scalars returns the texts, numbers and booleans of a tree, by path.
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

// environOf returns the variables of the controller's container that have plain values in the Deployment.
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

// checkGates checks that the controller's settings have each feature gate of the values.
func checkGates(t *testing.T, values map[string]any, environ []string) {
	t.Helper()
	value, _ := valueAt(values, "settings.featureGates")
	configured, _ := value.(map[string]any)
	actual := ""
	for _, variable := range environ {
		if list, ok := strings.CutPrefix(variable, "FEATURE_GATES="); ok {
			actual = list
		}
	}
	for name, isOn := range configured {
		if gates[name] == "" || !slices.Contains(strings.Split(actual, ","), fmt.Sprintf("%s=%t", gates[name], isOn)) {
			t.Errorf("settings.featureGates.%s is %t, but the controller gets %s", name, isOn, actual)
		}
	}
}
