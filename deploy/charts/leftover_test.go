package charts

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/config"
)

// TestLeftoverTable: the chart and package config have the same table of values of Karpenter's older charts. joiner
// migrate check uses the table of package config.
func TestLeftoverTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var rules struct{ Leftovers map[string]string }
	if err := json.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, l := range config.Leftovers() {
		want[l.Path] = l.Replacement
	}
	if !maps.Equal(rules.Leftovers, want) {
		t.Errorf("leftovers of %s are\n%v\nwant\n%v", rulesFile, rules.Leftovers, want)
	}
}

// TestLeftovers: values of Karpenter's charts before 1.0 are ignored and reported with their replacements. Only the
// cluster's name is used, if settings.clusterName is not set. H4 and H8 are public reports of users, from
// internal/cli/testdata/reports.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values string
		want   []string // reported lines
	}{
		"H4": {"settings: {clusterName: demo, defaultInstanceProfile: nodes, interruptionQueue: demo}", []string{
			"settings.defaultInstanceProfile is ignored: set spec.instanceProfile of the EC2NodeClass",
		}},
		"H8": {`clusterName: demo
clusterEndpoint: https://EX.gr7.eu-west-1.eks.amazonaws.com
aws: {defaultInstanceProfile: nodes}
settings: {aws: {clusterName: demo, interruptionQueueName: demo, defaultInstanceProfile: nodes}}`, []string{
			"aws.defaultInstanceProfile is ignored: set spec.instanceProfile of the EC2NodeClass",
			"clusterEndpoint is ignored: set settings.clusterEndpoint",
			"clusterName is ignored: set settings.clusterName",
			"settings.aws.clusterName is ignored: set settings.clusterName",
			"settings.aws.defaultInstanceProfile is ignored: set spec.instanceProfile of the EC2NodeClass",
			"settings.aws.interruptionQueueName is ignored: set settings.interruptionQueue",
			"settings.clusterName is not set: demo is used, from a value of an older chart",
		}},
		"controller.*": {"settings: {clusterName: demo, featureGates: {drift: true}}\ncontroller: {logLevel: debug, batchMaxDuration: 10s}", []string{
			"controller.batchMaxDuration is ignored: set settings.batchMaxDuration",
			"controller.logLevel is ignored: set logLevel",
			"settings.featureGates.drift is ignored: no replacement: drift is always on; limit it with the NodePool's disruption budgets",
		}},
		"no old value": {"settings: {clusterName: demo}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(c.values), 0o600); err != nil {
				t.Fatal(err)
			}
			out, errs, err := helm(t, "template", release, chart, "-f", file)
			if err != nil {
				t.Fatal(errs)
			}
			var got []string
			for line := range strings.Lines(out) {
				if reported, ok := strings.CutPrefix(line, "# "); ok &&
					(strings.Contains(reported, " is ignored: ") || strings.Contains(reported, " is not set: ")) {
					got = append(got, strings.TrimSpace(reported))
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("reported:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			settings, _, err := config.FromProcess(nil, environOf(t, out))
			if err != nil || settings.ClusterName != "demo" {
				t.Errorf("the controller would serve cluster %q (%v), want demo", settings.ClusterName, err)
			}
		})
	}
}

// TestReportedValues: the values files of the public reports H3 and H6 have the same effect as in Karpenter's chart,
// and the chart ignores none of their values.
func TestReportedValues(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"H3": {"cpu: 0.5", "key: CriticalAddonsOnly", "eks.amazonaws.com/role-arn: arn:aws:iam::111122223333:role/controller"},
		"H6": {"SpotToSpotConsolidation=true", "NodeOverlay=true", "CapacityBuffer=true", "targetLabel: clusterName"},
	} {
		out, errs, err := helm(t, "template", release, chart, "-f",
			filepath.Join("..", "..", "internal", "cli", "testdata", "reports", name+".yaml"))
		if err != nil {
			t.Errorf("%s: %s", name, errs)
			continue
		}
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("%s: the rendered objects do not contain %q", name, text)
			}
		}
		if strings.Contains(out, " is ignored: ") {
			t.Errorf("%s: the chart ignores a value, want none", name)
		}
	}
}
