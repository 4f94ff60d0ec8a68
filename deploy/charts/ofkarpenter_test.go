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

// moot are values of Karpenter's chart that do not show in the rendered objects, with the reason.
var moot = map[string]string{
	"webhook":                            "there is no webhook",
	"postInstallHook":                    "there is no hook",
	"serviceAccount.create":              "decides whether there is an object",
	"serviceMonitor.enabled":             "decides whether there is an object",
	"settings.featureGates":              "one variable has all gates; see gatesOf",
	"podDisruptionBudget.maxUnavailable": "a number that is everywhere; see the golden files",
	"replicas":                           "a number that is everywhere; see the golden files",
	"dnsPolicy":                          "of the host's network another one is made",
	"strategy.rollingUpdate":             "a number that is everywhere; see the golden files",
	"revisionHistoryLimit":               "a number that is everywhere; see the golden files",
	"affinity":                           "selectors are added to it; see the golden files",
	"hostNetwork":                        "a truth that is everywhere; see the golden files",
	"settings.vmMemoryOverheadPercent":   "written as a text",
}

// gates are the names of the feature gates, by chart value.
var gates = map[string]string{
	"nodeRepair": "NodeRepair", "reservedCapacity": "ReservedCapacity", "nodeOverlay": "NodeOverlay", "staticCapacity": "StaticCapacity",
	"spotToSpotConsolidation": "SpotToSpotConsolidation", "capacityBuffer": "CapacityBuffer",
}

// TestValuesOfKarpenter renders the chart with unchanged values files of Karpenter's chart. The objects have the values, and the controller
// accepts the resulting settings. It logs a warning for unsupported ones.
func TestValuesOfKarpenter(t *testing.T) {
	notes := map[string]int{"1.8-gates": 1, "1.14-buffers": 3}
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
				if want != "" && !isMoot(path) && !strings.Contains(got, want) {
					t.Errorf("%s is %q, and no object shows it", path, want)
				}
			}
			environ := environOf(t, got)
			settings, said, err := config.FromProcess(nil, environ)
			if err != nil || len(said) != notes[name] {
				t.Errorf("the controller reports %v, %v; want %d notes", said, err, notes[name])
			}
			if want, _ := at(values, "settings.clusterName"); settings.ClusterName != want {
				t.Errorf("the controller would serve %q, want %q", settings.ClusterName, want)
			}
			gatesOf(t, values, environ)
		})
	}
}

func isMoot(path string) bool {
	for prefix := range moot {
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

// gatesOf checks that the controller's settings have each feature gate of the values.
func gatesOf(t *testing.T, values map[string]any, environ []string) {
	t.Helper()
	all, _ := at(values, "settings.featureGates")
	given, _ := all.(map[string]any)
	told := ""
	for _, variable := range environ {
		if list, ok := strings.CutPrefix(variable, "FEATURE_GATES="); ok {
			told = list
		}
	}
	for value, on := range given {
		if gates[value] == "" || !slices.Contains(strings.Split(told, ","), fmt.Sprintf("%s=%t", gates[value], on)) {
			t.Errorf("settings.featureGates.%s is %t, but the controller gets %s", value, on, told)
		}
	}
}
