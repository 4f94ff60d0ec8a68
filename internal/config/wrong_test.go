package config

import (
	"slices"
	"strings"
	"testing"
)

// TestWrongValuesAreNamed: each invalid setting is a one-line error that names the setting and, if there is one, the
// nearest valid value. No settings are returned with an error.
func TestWrongValuesAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, env string
		want      string
	}{
		"flag misspelt":      {"--cluster-naem=c", "", `there is no setting "--cluster-naem=c" (did you mean --cluster-name?): joiner controller --help lists the settings`},
		"flag of the chart":  {"--settings.batchMaxDuration=3s", "", "(did you mean --batch-max-duration?)"},
		"flag in camel case": {"--isolatedVPC", "", "(did you mean --isolated-vpc?)"},
		"unknown flag":       {"--colour=red", "", `there is no setting "--colour=red": `},
		"variable misspelt": {"", "INTERUPTION_QUEUE=q",
			"there is no variable INTERUPTION_QUEUE: did you mean INTERRUPTION_QUEUE (--interruption-queue)?"},
		"variable with hyphens":         {"", "LOG-LEVEL=debug", "there is no variable LOG-LEVEL: did you mean LOG_LEVEL (--log-level)?"},
		"variable in lower case":        {"", "log_level=debug", "there is no variable log_level: did you mean LOG_LEVEL (--log-level)?"},
		"variable of a boolean":         {"", "ENABLE_ZONAL_SHIFTS=true", "did you mean ENABLE_ZONAL_SHIFT (--enable-zonal-shift)?"},
		"port misspelt":                 {"", "HEALTH_PROB_PORT=9000", "did you mean HEALTH_PROBE_PORT (--health-probe-port)?"},
		"prefix JOINER_":                {"", "JOINER_LOG_LEVEL=debug", "there is no variable JOINER_LOG_LEVEL: the variables of settings have no prefix, write LOG_LEVEL (or --log-level)"},
		"prefix KARPENTER_":             {"", "KARPENTER_FEATURE_GATES=NodeRepair=true", "write FEATURE_GATES (or --feature-gates)"},
		"prefix JOINER_, setting given": {"--log-level=info", "JOINER_LOG_LEVEL=debug", "write LOG_LEVEL (or --log-level)"},
		"gate misspelt": {"", "FEATURE_GATES=NodeOverlays=true",
			"there is no feature gate NodeOverlays (did you mean NodeOverlay?): there are CapacityBuffer, "},
		"gate misspelt, off":        {"--feature-gates=ReservedCapcity=false", "", "(did you mean ReservedCapacity?)"},
		"gate of aws-feature-gates": {"--feature-gates=NodeClassCEL=true", "", "there is no feature gate NodeClassCEL: "},
		"gate with a wrong state":   {"", "FEATURE_GATES=NodeOverlay=treu", "want NodeOverlay=true or NodeOverlay=false (did you mean true?)"},
		"word misspelt": {"--preference-policy=Repsect", "",
			`setting --preference-policy is "Repsect": want one of Respect, Ignore (did you mean Respect?)`},
		"level misspelt":            {"", "LOG_LEVEL=eror", "(did you mean error?)"},
		"boolean misspelt":          {"", "ISOLATED_VPC=ture", "want true or false (did you mean true?)"},
		"duration without unit":     {"", "BATCH_MAX_DURATION=10", "(did you mean 10s?)"},
		"duration too short":        {"", "AMI_REFRESH_INTERVAL=1ms", "want at least 1s"},
		"number too large":          {"--metrics-port=99999", "", "want a whole number from 0 to 65535 (did you mean 65535?)"},
		"number too small":          {"--reserved-enis=-1", "", "(did you mean 0?)"},
		"number with a fraction":    {"--kube-client-burst=300.0", "", "(did you mean 300?)"},
		"share as percentage":       {"", "VM_MEMORY_OVERHEAD_PERCENT=7.5", "(did you mean 0.075?)"},
		"share with a percent sign": {"", "VM_MEMORY_OVERHEAD_PERCENT=10%", "(did you mean 0.1?)"},
		"bytes as a quantity":       {"", "MEMORY_LIMIT=1Gi", "(did you mean 1073741824?)"},
		"port from a service link":  {"", "METRICS_PORT=tcp://10.0.0.7:80", "enableServiceLinks: false, or --metrics-port"},
		"queue by URL":              {"", "INTERRUPTION_QUEUE=https://sqs.us-east-1.amazonaws.com/111122223333/notices", "(did you mean notices?)"},
		"queue by ARN":              {"", "INTERRUPTION_QUEUE=arn:aws:sqs:us-east-1:111122223333:notices", "(did you mean notices?)"},
		"cluster by ARN":            {"", "CLUSTER_NAME=arn:aws:eks:us-east-1:111122223333:cluster/prod", "(did you mean prod?)"},
		"zone for region":           {"--aws-region=us-east-1a", "", "not a zone (did you mean us-east-1?)"},
		"city for region":           {"--aws-region=Ohio", "", "for instance us-east-1"},
		"a setting given twice": {"--log-level=info --log-level=debug", "",
			`setting --log-level is given twice, as "info" and as "debug": leave one of them out`},
		"a boolean given twice":              {"--isolated-vpc --isolated-vpc=false", "", `--isolated-vpc is given twice, as "true" and as "false"`},
		"an unsupported setting given twice": {"--cpu-requests=1 --cpu-requests=2", "", "--cpu-requests is given twice"},
		"an empty flag":                      {"--batch-max-duration=", "", `setting --batch-max-duration is "": want a duration`},
		"an empty name":                      {"--cluster-name=", "", `setting --cluster-name is "": want the name of an EKS cluster`},
		"spaces around the value": {"", "LOG_LEVEL= debug ",
			`setting LOG_LEVEL is " debug ": there are spaces or quotes around it (did you mean debug?)`},
		"quotes around the value":       {"", `BATCH_MAX_DURATION="20s"`, "there are spaces or quotes around it (did you mean 20s?)"},
		"a name with a carriage return": {"", "INTERRUPTION_QUEUE=notices\r", "(did you mean notices?)"},
		"endpoint with a path": {"", "CLUSTER_ENDPOINT=https://10.0.0.1:6443/api/v1",
			"want scheme, host and port alone (did you mean https://10.0.0.1:6443?)"},
		"endpoint with a password": {"", "CLUSTER_ENDPOINT=https://a:b@10.0.0.1",
			"want scheme, host and port alone (did you mean https://10.0.0.1?)"},
		"endpoint without its scheme": {"", "CLUSTER_ENDPOINT=abcd.gr7.us-east-1.eks.amazonaws.com",
			"(did you mean https://abcd.gr7.us-east-1.eks.amazonaws.com?)"},
		"endpoint with another scheme": {"", "CLUSTER_ENDPOINT=tcp://10.0.0.1:443", "want a full URL"},
		"certificate not encoded":      {"", "CLUSTER_CA_BUNDLE=-----BEGIN CERTIFICATE-----", "want base64"},
		"base64 of another text":       {"", "CLUSTER_CA_BUNDLE=Y2E=", "this is base64 of something else"},
		"yes for a boolean":            {"", "ISOLATED_VPC=yes", "want true or false (did you mean true?)"},
		"off for a boolean":            {"", "APPLY_CRDS=off", "want true or false (did you mean false?)"},
		"a blank after a boolean": {"", "DISABLE_DRY_RUN=true ",
			`setting DISABLE_DRY_RUN is "true ": there are spaces or quotes around it (did you mean true?)`},
		"unit as a word":             {"", "BATCH_MAX_DURATION=10sec", "(did you mean 10s?)"},
		"unit as a long word":        {"", "AMI_REFRESH_INTERVAL=5 Minutes", "(did you mean 5m?)"},
		"late-after too long":        {"", "LATE_AFTER=20m", "want less than 15m0s, after which an instance that has not joined is terminated"},
		"share with a comma":         {"", "VM_MEMORY_OVERHEAD_PERCENT=0,075", "(did you mean 0.075?)"},
		"negative share":             {"", "VM_MEMORY_OVERHEAD_PERCENT=-0.1", "want a fraction of 1"},
		"share that is no number":    {"", "VM_MEMORY_OVERHEAD_PERCENT=NaN", "want a fraction of 1"},
		"region in capitals":         {"--aws-region=US-EAST-1", "", "in lower case (did you mean us-east-1?)"},
		"region with underscores":    {"", "AWS_REGION=us_east_1", "with hyphens (did you mean us-east-1?)"},
		"a blank after the region":   {"", "AWS_REGION=us-east-1 ", "there are spaces or quotes around it (did you mean us-east-1?)"},
		"limit of an unknown action": {"", "EC2_API_LIMITS=CreateFlet=100:20", "no EC2 action of Joiner matches CreateFlet (did you mean CreateFleet?)"},
		"two limits of one action":   {"", "EC2_API_LIMITS=CreateFleet=100:20,CreateFleet=1:1", "CreateFleet is listed twice"},
		"gate without a state":       {"", "FEATURE_GATES=NodeRepair", "(did you mean NodeRepair=true?)"},
		"gate with a colon": {"", "FEATURE_GATES=NodeRepair:true",
			"there is no feature gate NodeRepair:true (did you mean NodeRepair=true?)"},
		"gate in camel case":        {"", "FEATURE_GATES=nodeRepair=true", "(did you mean NodeRepair?)"},
		"gate on and off":           {"", "FEATURE_GATES=NodeRepair=true,NodeRepair=false", "NodeRepair is listed twice, on and off"},
		"gates with semicolons":     {"", "FEATURE_GATES=NodeRepair=true;NodeOverlay=true", "want NodeRepair=true or NodeRepair=false"},
		"log level warn":            {"", "LOG_LEVEL=warn", "want one of debug, info, error (did you mean info?"},
		"name for an IP address":    {"--bind-address=localhost", "", "(did you mean 127.0.0.1?)"},
		"IP address with a port":    {"", "BIND_ADDRESS=0.0.0.0:8080", "(did you mean 0.0.0.0?"},
		"memory in MiB":             {"", "MEMORY_LIMIT=512", "(did you mean 536870912?)"},
		"memory of 0":               {"", "MEMORY_LIMIT=0", "at least 67108864 (64 MiB), or -1 for no limit"},
		"scheme twice":              {"", "CLUSTER_ENDPOINT=https://https://10.0.0.1", "want scheme, host and port alone"},
		"endpoint's port too large": {"", "CLUSTER_ENDPOINT=https://10.0.0.1:99999", "its port is 99999, want 1 to 65535"},
		"endpoint of EKS with http": {"", "CLUSTER_ENDPOINT=http://ABCD.gr7.us-east-1.eks.amazonaws.com",
			"(did you mean https://ABCD.gr7.us-east-1.eks.amazonaws.com?)"},
		"namespace with a dot":     {"", "LEADER_ELECTION_NAMESPACE=kube.system", "want the name of a namespace"},
		"cluster with a blank":     {"", "CLUSTER_NAME=my cluster", "want the name of an EKS cluster"},
		"blank before the cluster": {"", "CLUSTER_NAME= prod", "(did you mean prod?)"},
		"negative rate of calls":   {"--kube-client-qps=-1", "", "want a number of calls per second above 0"},
		"breaker as percentage":    {"", "BREAKER_SHARE=25", "(did you mean 0.25?)"},
		"lease with capitals":      {"--leader-election-name=My_Lease", "", "(did you mean my-lease?)"},
		"namespace with a slash":   {"--leader-election-namespace=kube-system/x", "", "want the name of a Kubernetes object"},
		"days as unit":             {"--ami-refresh-interval=1d", "", "(did you mean 24h?)"},
		"negative duration":        {"--batch-idle-duration=-5s", "", "want at least 0s"},
		"no burst":                 {"--kube-client-burst=0", "", "(did you mean 1?)"},
		"another cluster's endpoint": {
			"--aws-region=eu-west-1", "CLUSTER_ENDPOINT=https://ABCD.gr7.us-east-1.eks.amazonaws.com",
			"--cluster-endpoint (CLUSTER_ENDPOINT) is that of a cluster in us-east-1, and --aws-region (AWS_REGION) is eu-west-1: ",
		},
	} {
		environ := []string{"CLUSTER_NAME=c", "PATH=/bin"}
		if c.env != "" {
			environ = append(environ, c.env)
		}
		got, _, err := FromProcess(strings.Fields(c.args), environ)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || got.ClusterName != "" {
			t.Errorf("%s: %q, settings for cluster %q; want one line with %q, and no settings", name, err, got.ClusterName, c.want)
		}
	}
}

// TestVariablesOfOtherPrograms: harmless settings, and variables that may belong to other programs, are ignored.
func TestVariablesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for name, environ := range map[string][]string{
		"a service called joiner": {"JOINER_SERVICE_HOST=10.0.0.1", "JOINER_PORT=tcp://10.0.0.1:8080",
			"JOINER_METRICS_PORT=tcp://10.0.0.1:8080", "JOINER_PORT_8080_TCP_ADDR=10.0.0.1"},
		"a service like a setting":        {"METRICS_SERVICE_PORT=8080", "METRIC_PORT=tcp://10.0.0.1:80"},
		"the similar setting has a value": {"LOG_LEVEL=info", "LOGLEVEL=debug"},
		"empty variable":                  {"INTERUPTION_QUEUE="},
		"names that only contain a setting": {"RUST_LOG_LEVEL=debug", "OLD_CLUSTER_NAME=x", "AWS_DEFAULT_REGION=us-east-1", "HOME=/",
			"JOINER_BINARY=/bin/joiner"},
		"harmless setting misspelt": {"CPU_REQUEST=100m", "KARPENTER_SERVICE=karpenter"},
		"harmless settings":         {"KARPENTER_SERVICE=joiner", "EKS_CONTROL_PLANE=false", "CPU_REQUESTS=1"},
		"variables of Karpenter's chart": {
			"KUBERNETES_MIN_VERSION=1.19.0-0", "SYSTEM_NAMESPACE=kube-system", "DISABLE_WEBHOOK=true", "WEBHOOK_PORT=8443",
			"LOG_OUTPUT_PATHS=stdout", "ASSUME_ROLE_ARN=a",
		},
		"malformed variables": {"=C:=C:\\", "NOTHING"},
	} {
		got, notes, err := FromProcess(nil, append(slices.Clone(environ), "CLUSTER_NAME=c"))
		if err != nil || got.ClusterName != "c" || len(notes) > 0 {
			t.Errorf("%s: notes %v, error %v; want neither", name, notes, err)
		}
	}
	if _, _, err := FromProcess([]string{"--log-level=info"}, []string{"CLUSTER_NAME=c", "LOGLEVEL=debug"}); err != nil {
		t.Errorf("LOGLEVEL with the flag --log-level: error %v, want none", err)
	}
}

// TestRegionOf: only endpoints of EKS have a region.
func TestRegionOf(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"https://ABCD.gr7.us-east-1.eks.amazonaws.com":         "us-east-1",
		"https://ABCD.sk1.cn-north-1.eks.amazonaws.com.cn":     "cn-north-1",
		"https://ABCD.eks-cluster.eu-central-1.api.aws":        "eu-central-1",
		"https://api.us-east-1.example.com":                    "",
		"https://10.0.0.1:6443":                                "",
		"":                                                     "",
		"https://ABCD.gr7.us-gov-west-1.eks.amazonaws.com:443": "us-gov-west-1",
	} {
		if got := regionOf(endpoint); got != want {
			t.Errorf("%s: region %q, want %q", endpoint, got, want)
		}
	}
}
