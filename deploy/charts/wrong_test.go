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
	"github.com/joiner-sh/joiner/internal/suggest"
)

const wantClusterName = ": want the name of an EKS cluster, which has letters, digits, hyphens and underscores"

// wrongValues maps invalid values, to which chartError adds a cluster name, to the chart's error.
var wrongValues = map[string]string{
	// Unknown names.
	"settings: {clusterNmae: demo}":                     "there is no value settings.clusterNmae (did you mean settings.clusterName?)",
	"settings: {clustername: demo}":                     "there is no value settings.clustername (did you mean settings.clusterName?)",
	"settings: {featureGates: {NodeOverlay: true}}":     "there is no value settings.featureGates.NodeOverlay (did you mean settings.featureGates.nodeOverlay?)",
	"settings: {featureGates: {spotToSpot: true}}":      "there is no value settings.featureGates.spotToSpot (did you mean settings.featureGates.spotToSpotConsolidation?)",
	"settings: {aws: {interruptionQueue: q}}":           "there is no value settings.aws.interruptionQueue (did you mean settings.interruptionQueue?)",
	"settings: {aws: {clusterName: demo, colour: red}}": "there is no value settings.aws.clusterName (did you mean settings.clusterName?)",
	"resources: {limits: {cpu: 1}}":                     "there is no value resources (did you mean controller.resources?)",
	"image: {tag: v1}":                                  "there is no value image (did you mean controller.image?)",
	"controller: {metrics: {prot: 8080}}":               "there is no value controller.metrics.prot (did you mean controller.metrics.port?)",
	"controller: {tolerations: []}":                     "there is no value controller.tolerations (did you mean tolerations?)",
	"tolerations: [{key: a, efect: NoSchedule}]":        "there is no value tolerations[0].efect (did you mean tolerations[0].effect?)",
	"controller: {env: [{name: A, vlaue: b}]}":          "there is no value controller.env[0].vlaue (did you mean controller.env[0].value?)",
	"rbac: {colour: red}":                               "there is no value rbac.colour: rbac has aggregate, create",
	"affinity: {podAntiAfinity: {}}":                    "there is no value affinity.podAntiAfinity (did you mean affinity.podAntiAffinity?)",

	// Values of a wrong type, some because YAML reads them as another type than the user meant.
	"settings: {clusterName: 1e11}":                 "settings.clusterName is 100000000000" + wantClusterName + " (did you mean \"100000000000\", in quotes?)",
	"podAnnotations: {scrape: true}":                `podAnnotations.scrape is true: want a string (did you mean "true", in quotes?)`,
	`settings: {isolatedVPC: "true"}`:               `settings.isolatedVPC is "true": want true or false (did you mean true, without quotes?)`,
	`settings: {isolatedVPC: "true "}`:              `settings.isolatedVPC is "true ": want true or false (did you mean true?)`,
	`settings: {featureGates: {nodeRepair: "yes"}}`: `settings.featureGates.nodeRepair is "yes": want true or false (did you mean true?)`,
	`replicas: "2"`:                                 `replicas is "2": want a whole number, at least 0 (did you mean 2, without quotes?)`,
	"replicas: two":                                 `replicas is "two": want a whole number, at least 0`,
	"replicas: 2.5":                                 "replicas is 2.5: want a whole number, at least 0 (did you mean 3?)",
	"replicas: -1":                                  "replicas is -1: want a whole number, at least 0 (did you mean 0?)",
	"tolerations: {key: a}":                         "tolerations is a map: want a list",
	"imagePullSecrets: [mine]":                      `imagePullSecrets[0] is "mine": want a map`,
	"controller: joiner":                            `controller is "joiner": want a map`,
	"settings: {schedulerConfig: {a: b}}":           "settings.schedulerConfig is a map: want a string",
	"controller: null":                              "controller is null: remove it to get its default",
	"settings: {featureGates: null}":                "settings.featureGates is null: remove it to get its default",

	// Numbers where a string is required.
	"serviceAccount: {annotations: {a.b/account: 111122223333}}": `serviceAccount.annotations["a.b/account"] is 111122223333: want a string (did you mean "111122223333", in quotes?)`,
	"controller: {env: [{name: A, value: 5}]}":                   `controller.env[0].value is 5: want a string (did you mean "5", in quotes?)`,

	// Values below settings.
	"settings: {batchMaxDuration: 10}":             "settings.batchMaxDuration is 10: want a duration with its unit, for instance 10s or 1m30s (did you mean 10s?)",
	`settings: {batchIdleDuration: "10"}`:          `settings.batchIdleDuration is "10": want a duration with its unit, for instance 10s or 1m30s (did you mean 10s?)`,
	"settings: {lateAfter: -1m}":                   `settings.lateAfter is "-1m": want a duration with its unit, for instance 10s or 1m30s`,
	`settings: {clusterName: " demo"}`:             `settings.clusterName is " demo"` + wantClusterName + ` (did you mean demo?)`,
	"settings: {clusterName: my cluster}":          `settings.clusterName is "my cluster"` + wantClusterName,
	"settings: {clusterEndpoint: eks.example.com}": `settings.clusterEndpoint is "eks.example.com": want a full URL, for instance https://ABCD.gr7.us-east-1.eks.amazonaws.com (did you mean https://eks.example.com?)`,
	"settings: {clusterCABundle: Y2E=}":            `settings.clusterCABundle is "Y2E=": want the PEM of a certificate in base64, as in certificateAuthority.data of aws eks describe-cluster`,
	"settings: {vmMemoryOverheadPercent: 7.5}":     "settings.vmMemoryOverheadPercent is 7.5: want a fraction of 1, for instance 0.075 for 7.5 % (did you mean 0.075?)",
	`settings: {vmMemoryOverheadPercent: "7.5%"}`:  `settings.vmMemoryOverheadPercent is "7.5%": want a fraction of 1, for instance 0.075 for 7.5 % (did you mean 0.075?)`,
	"settings: {reservedENIs: 1.5}":                "settings.reservedENIs is 1.5: want a whole number from 0 to 100 (did you mean 2?)",
	"settings: {breakerShare: 25}":                 "settings.breakerShare is 25: want a fraction of 1, for instance 0.25 for a quarter (did you mean 0.25?)",
	"settings: {breakerCount: 0}":                  "settings.breakerCount is 0: want a whole number from 1 to 1000000 (did you mean 1?)",
	"settings: {ec2APILimits: CreateFleet=20}":     `settings.ec2APILimits is "CreateFleet=20": want ACTION=BURST:RATE_PER_SECOND with commas, for instance CreateFleet=100:20`,
	"settings: {preferencePolicy: respect}":        `settings.preferencePolicy is "respect": want one of Respect, Ignore (did you mean Respect?)`,
	"settings: {minValuesPolicy: Lax}":             `settings.minValuesPolicy is "Lax": want one of Strict, BestEffort`,

	// ARNs and URLs instead of names.
	`settings: {clusterName: "arn:aws:eks:us-east-1:111122223333:cluster/prod"}`:                `settings.clusterName is "arn:aws:eks:us-east-1:111122223333:cluster/prod"` + wantClusterName + ` (did you mean prod?)`,
	`settings: {interruptionQueue: "arn:aws:sqs:us-east-1:111122223333:notices"}`:               `settings.interruptionQueue is "arn:aws:sqs:us-east-1:111122223333:notices": want the name of the queue, not its URL or ARN (did you mean notices?)`,
	`settings: {interruptionQueue: "https://sqs.us-east-1.amazonaws.com/111122223333/notices"}`: `settings.interruptionQueue is "https://sqs.us-east-1.amazonaws.com/111122223333/notices": want the name of the queue, not its URL or ARN (did you mean notices?)`,

	// Other values.
	"logLevel: loud":                                       `logLevel is "loud": want one of debug, info, error`,
	"logLevel: INFO":                                       `logLevel is "INFO": want one of debug, info, error (did you mean info?)`,
	"dnsPolicy: Defalt":                                    `dnsPolicy is "Defalt": want one of ClusterFirst, ClusterFirstWithHostNet, Default, None (did you mean Default?)`,
	"controller: {metrics: {port: 99999}}":                 "controller.metrics.port is 99999: want a whole number from 1 to 65535 (did you mean 65535?)",
	"controller: {image: {digest: latest}}":                `controller.image.digest is "latest": want sha256: and 64 hexadecimal digits`,
	"controller: {resources: {requests: {memory: 512MB}}}": `controller.resources.requests.memory is "512MB": want a Kubernetes quantity, for instance 250m or 512Mi`,
	"podDisruptionBudget: {maxUnavailable: half}":          `podDisruptionBudget.maxUnavailable is "half": want a whole number, or a percentage such as 25%`,
	"settings: {clusterName: null}":                        "settings.clusterName is not set: give the name of the EKS cluster, --set settings.clusterName=NAME",

	// A missing key, a repeated variable, and the image of Karpenter.
	"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone}]":           "topologySpreadConstraints[0].whenUnsatisfiable is not set",
	"controller: {env: [{name: A, value: b}, {name: A, value: c}]}":          "controller.env has A twice: remove one of them",
	"controller: {image: {repository: public.ecr.aws/karpenter/controller}}": "controller.image.repository is public.ecr.aws/karpenter/controller, which is Karpenter's image: remove controller.image, or name your copy of ghcr.io/joiner-sh/joiner",
}

// chartError renders the chart with the values and a cluster name. It returns the chart's error without the text that
// Helm adds, or "accepted" if the chart renders.
func chartError(t *testing.T, values string) string {
	t.Helper()
	merged := map[string]any{"settings": map[string]any{"clusterName": "demo"}}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	for key, value := range given {
		settings, isMap := value.(map[string]any)
		if key != "settings" || !isMap {
			merged[key] = value
			continue
		}
		for name, v := range settings {
			merged[key].(map[string]any)[name] = v
		}
	}
	text, err := yaml.Marshal(merged)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "values") // not t.TempDir: its path contains the values, which Helm would read as a URL
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	file := filepath.Join(folder, "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, err := helm(t, "template", release, chart, "-f", file)
	if err == nil {
		return "accepted"
	}
	for line := range strings.Lines(errs) {
		if _, message, ok := strings.Cut(line, "execution error at ("); ok {
			_, message, _ = strings.Cut(message, "): ")
			return strings.TrimSpace(message)
		}
	}
	return errs
}

// TestWrongValues: the chart rejects an invalid value before anything is installed, with one line that names this value
// and, if one is near, a valid value.
func TestWrongValues(t *testing.T) {
	t.Parallel()
	for values, want := range wrongValues {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			if got := chartError(t, values); got != want {
				t.Errorf("the chart's error is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestMisspeltValues: if the last two letters of a value's name are swapped, the chart gives the same hint as package
// suggest, which the controller uses.
func TestMisspeltValues(t *testing.T) {
	t.Parallel()
	for _, v := range documentedValues(t) {
		end := strings.LastIndex(v.path, ".") + 1
		parent, name := v.path[:end], v.path[end:]
		misspelled := name[:len(name)-2] + name[len(name)-1:] + name[len(name)-2:len(name)-1]
		if misspelled == name {
			continue
		}
		t.Run(v.path, func(t *testing.T) {
			t.Parallel()
			values, level := misspelled+": x", rules(t)
			keys := strings.FieldsFunc(parent, func(r rune) bool { return r == '.' })
			for _, key := range keys {
				level = level.Properties[key]
			}
			for _, key := range slices.Backward(keys) {
				values = key + ": {" + values + "}"
			}
			known := slices.Collect(maps.Keys(level.Properties))
			want := fmt.Sprintf("there is no value %s%s (did you mean %s%s?)", parent, misspelled, parent, suggest.Nearest(misspelled, known))
			if got := chartError(t, values); got != want {
				t.Errorf("the chart's error is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestNull: the chart rejects a null value, or treats it like an omitted one. No rendered object contains the text of
// a missing value.
func TestNull(t *testing.T) {
	t.Parallel()
	for _, v := range documentedValues(t) {
		if v.path == "settings.clusterName" {
			continue // the only required value; see wrongValues
		}
		t.Run(v.path, func(t *testing.T) {
			t.Parallel()
			out, errs, err := helm(t, "template", release, chart, "--set",
				"settings.clusterName=demo,networkPolicy.restrictEgress=true,serviceMonitor.enabled=true,"+v.path+"=null")
			if err != nil {
				if !strings.Contains(errs, v.path+" is null: remove it") {
					t.Errorf("the chart's error is\n%s\nwant that %s is null", errs, v.path)
				}
				return
			}
			if strings.Contains(out, "<nil>") || strings.Contains(out, "<no value>") {
				t.Errorf("the rendered objects contain <nil> or <no value>:\n%s", out)
			}
			if _, _, err := config.FromProcess(nil, environOf(t, out)); err != nil {
				t.Errorf("the controller refuses the settings: %v", err)
			}
		})
	}
}

// TestLint: helm lint also fails and reports a misspelled value, although it ignores the function fail of templates.
func TestLint(t *testing.T) {
	t.Parallel()
	out, errs, err := helm(t, "lint", chart, "--set", "settings.clusterNmae=demo")
	if want := "there is no value settings.clusterNmae (did you mean settings.clusterName?)"; err == nil || !strings.Contains(out+errs, want) {
		t.Errorf("error %v; want an error, and %q in\n%s%s", err, want, out, errs)
	}
}

// TestEnvOverridesValue: a variable in controller.env overrides the chart's value of its setting. The container has the
// variable only once, because server-side apply rejects duplicates.
func TestEnvOverridesValue(t *testing.T) {
	t.Parallel()
	out, errs, err := helm(t, "template", release, chart, "--set-string", "settings.clusterName=demo,logLevel=debug,"+
		"controller.env[0].name=LOG_LEVEL,controller.env[0].value=error,controller.env[1].name=MEMORY_LIMIT,controller.env[1].value=-1")
	if err != nil {
		t.Fatal(errs)
	}
	count := map[string]int{}
	for _, variable := range environOf(t, out) {
		name, _, _ := strings.Cut(variable, "=")
		count[name]++
	}
	settings, _, err := config.FromProcess(nil, environOf(t, out))
	if err != nil || settings.LogLevel != "error" || count["LOG_LEVEL"] != 1 || count["MEMORY_LIMIT"] != 1 {
		t.Errorf("error %v, log level %q, want error; LOG_LEVEL occurs %d times, MEMORY_LIMIT %d times, want each once", err, settings.LogLevel, count["LOG_LEVEL"], count["MEMORY_LIMIT"])
	}
}
