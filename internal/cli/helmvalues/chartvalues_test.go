package helmvalues

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/migration"
)

// rule is the schema of one value in values.rules.json.
type rule struct {
	Ref        string          `json:"$ref"`
	Properties map[string]rule `json:"properties"`
	Additional any             `json:"additionalProperties"`
}

// TestChartPaths compares the value paths that migrate check knows with those of the chart.
func TestChartPaths(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/charts/joiner/values.rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var root struct {
		rule
		Defs map[string]rule `json:"$defs"`
	}
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	var want []string
	var walk func(path string, r rule)
	walk = func(path string, r rule) {
		if name, ok := strings.CutPrefix(r.Ref, "#/$defs/"); ok {
			r = root.Defs[name]
		}
		if len(r.Properties) == 0 || r.Additional != false { // a single value, or a free-form map
			want = append(want, path)
			return
		}
		for name, below := range r.Properties {
			walk(path+"."+name, below)
		}
	}
	for name, r := range root.Properties {
		if name != "settings" {
			walk(name, r)
		}
	}
	slices.Sort(want)
	if got := chartPaths(); !slices.Equal(got, want) {
		t.Errorf("chartPaths returns %q, want the paths of the chart: %q", got, want)
	}
}

// TestChartShapes compares the value types that migrate check requires, and the names of settings, with the chart's.
func TestChartShapes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/charts/joiner/values.rules.json")
	if err != nil {
		t.Fatal(err)
	}
	type typed struct {
		Ref        string                     `json:"$ref"`
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Defs       map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"object": shapeMapping, "array": shapeList, "boolean": shapeBool, "integer": shapeWhole}
	want := map[string]string{}
	var walk func(path string, raw json.RawMessage)
	walk = func(path string, raw json.RawMessage) {
		var r typed
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		if name, ok := strings.CutPrefix(r.Ref, "#/$defs/"); ok {
			if err := json.Unmarshal(root.Defs[name], &r); err != nil {
				t.Fatal(err)
			}
		}
		kind, _ := r.Type.(string)
		if several, ok := r.Type.([]any); ok {
			kind, _ = several[0].(string) // the other type is null
		}
		if shape := names[kind]; shape != "" {
			want[path] = shape
		}
		for name, below := range r.Properties {
			walk(path+"."+name, below)
		}
	}
	for name, raw := range root.Properties {
		walk(name, raw)
	}
	if got := chartShapes(); !maps.Equal(got, want) {
		t.Errorf("chartShapes returns %v, want the types of the chart: %v", got, want)
	}
	var settings typed
	if err := json.Unmarshal(root.Properties["settings"], &settings); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range slices.Concat(config.All(), config.Unsupported()) {
		known[chartName(s.Flag)] = true
	}
	for name := range settings.Properties {
		if !known[name] && !strings.HasSuffix(name, "eatureGates") { // featureGates, awsFeatureGates: mappings of gates
			t.Errorf("the chart's settings.%s does not correspond to a flag", name)
		}
	}
}

// TestChartValues: the problem of a refused value has its path and the valid values. An empty want is no problem.
func TestChartValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"settings: {clusterName: a, batchMaxDuraton: 20s}":       "the chart has no value settings.batchMaxDuraton (did you mean batchMaxDuration?)",
		"settings: {clustername: a}":                             "the chart has no value settings.clustername (did you mean clusterName?)",
		"settings: {clusterName: a, isolatedvpc: true}":          "(did you mean isolatedVPC?)",
		`settings: {isolatedVPC: "true"}`:                        "the chart rejects the values: value settings.isolatedVPC is a text: want true or false, without quotes",
		`settings: {featureGates: {nodeRepair: "yes"}}`:          "value settings.featureGates.nodeRepair is a text: want true or false, without quotes",
		"settings: {featureGates: SpotToSpotConsolidation=true}": "value settings.featureGates is a text: want a mapping",
		"settings: demo":                     "value settings is a text: want a mapping",
		`replicas: "2"`:                      "value replicas is a text: want a whole number, without quotes",
		"tolerations: {key: a}":              "value tolerations is a mapping: want a list",
		"controller: {env: {AWS_REGION: a}}": "value controller.env is a mapping: want a list",
		"serviceAccount: {annotations: eks.amazonaws.com/role-arn}": "value serviceAccount.annotations is a text: want a mapping",
		"logOutputPaths: stdout":                                    "value logOutputPaths is a text: want a list",
		"settings: {clusterName: a, reservedENIs: 1, eksControlPlane: true, vmMemoryOverheadPercent: 0.07}\nreplicas: 2\ntolerations: []\nnodeSelector:": "",
	} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := ReadValues([]string{file})
		if err != nil || want == "" && v.problem != "" || !strings.Contains(v.problem, want) {
			t.Errorf("%s: problem %q, error %v; want a problem with %q", text, v.problem, err, want)
		}
	}
}

// TestUnknownValues: unknown values are found at any depth, with the path that is probably meant. Known and free-form
// values are not reported.
func TestUnknownValues(t *testing.T) {
	t.Parallel()
	got := UnknownValues(map[string]string{
		"replica": "2", "controller.resource.requests.cpu": "1", "controller.resource.requests.memory": "1Gi", "serviceMonitor.enable": "true",
		"Tolerations": "x",
		"clusterName": "prod", "flavour": "mint", "serviceAcount.annotations.eks.amazonaws.com/role-arn": "arn", "tag": "1.0",
		// The chart has the following values.
		"replicas": "2", "controller.resources.requests.cpu": "1", "nodeSelector.kubernetes.io/os": "linux", "podLabels.a.b/c": "x",
		"settings.clusterName": "prod", "serviceAccount.annotations.eks.amazonaws.com/role-arn": "arn",
		"affinity.nodeAffinity.x.y": "z", "webhook.enabled": "true", "tolerations": "x",
	})
	want := []migration.UnknownValue{
		{Path: "Tolerations", Near: "tolerations"}, {Path: "clusterName", Near: "settings.clusterName"},
		{Path: "controller.resource", Near: "controller.resources"},
		{Path: "flavour"}, {Path: "replica", Near: "replicas"}, {Path: "serviceAcount", Near: "serviceAccount"},
		{Path: "serviceMonitor.enable", Near: "serviceMonitor.enabled"}, {Path: "tag", Near: "controller.image.tag"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("unknown %+v, want %+v", got, want)
	}
}
