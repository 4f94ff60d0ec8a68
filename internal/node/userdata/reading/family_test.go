package reading_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

// node returns a node of a family with settings of many kinds.
func node(family, userData string) bootstrap.Node {
	pods, percent := int64(29), int64(85)
	return bootstrap.Node{
		Family:  family,
		Cluster: bootstrap.Cluster{Name: "prod", Endpoint: "https://ENDPOINT", CA: "Q0E=", ServiceCIDR: "10.100.0.0/16", DNS: "10.100.0.10"},
		Kubelet: bootstrap.Kubelet{
			MaxPods: &pods, ImageGCHighThresholdPercent: &percent,
			EvictionHard: map[string]string{"memory.available": "5%", "nodefs.available": "10%"},
		},
		Labels:   requirements.Labels{"team": "a"},
		Taints:   []requirements.Taint{{Key: "team", Value: "a", Effect: requirements.NoSchedule}},
		UserData: userData,
	}
}

func readNode(t *testing.T, n bootstrap.Node) userdata.Reading {
	t.Helper()
	data, err := bootstrap.UserData(n)
	if err != nil {
		t.Fatal(err)
	}
	return reading.Read(userdata.Input{Family: n.Family, Own: n.UserData, Data: data, Cluster: n.Cluster.Name,
		Endpoint: n.Cluster.Endpoint, Version: "1.33"})
}

// TestRead: every setting of a node reaches the kubelet of every family.
func TestRead(t *testing.T) {
	t.Parallel()
	const script = "#!/bin/sh\necho \"it's me\"\n"
	own := map[string]string{
		catalog.AL2023: script, catalog.AL2: script, catalog.Bottlerocket: "[settings.kubernetes]\nmax-pods = 7\nnode-labels = { mine = 'b' }\n",
		catalog.Windows2019: "Get-Date", catalog.Windows2022: "<script>dir</script>", catalog.Windows2025: "",
	}
	for family, data := range own {
		for _, userData := range []string{"", data} {
			r := readNode(t, node(family, userData))
			if slices.ContainsFunc(r.Problems, func(p userdata.Problem) bool { return p.Kind != userdata.Overridden }) {
				t.Errorf("%s: problems %v, want none but Overridden", family, r.Problems)
				continue
			}
			k := r.Kubelet
			flags, config := strings.Join(k.Flags, " "), fmt.Sprint(k.Config)
			ownLabel := ""
			if family == catalog.Bottlerocket && userData != "" {
				ownLabel = "mine=b,"
			}
			for _, want := range []struct{ flag, config string }{ // one of the two must be present
				{"--node-labels=karpenter.sh/do-not-sync-taints=true," + ownLabel + "team=a", ""},
				{"--register-with-taints=", "registerWithTaints:[map[effect:NoSchedule key:team value:a] map[effect:NoExecute key:karpenter.sh/unregistered]]"},
				{"--max-pods=29", "maxPods:29"},
				{"--image-gc-high-threshold=85", "imageGCHighThresholdPercent:85"},
				{"--eviction-hard=memory.available<5%,nodefs.available<10%", "evictionHard:map[memory.available:5% nodefs.available:10%]"},
				{"", "clusterDNS:[10.100.0.10]"},
			} {
				inFlags, inConfig := want.flag != "" && strings.Contains(flags, want.flag), want.config != "" && strings.Contains(config, want.config)
				if !inFlags && !inConfig {
					t.Errorf("%s: neither the flag %q in %s nor the configuration %q in %s", family, want.flag, flags, want.config, config)
				}
			}
			for _, taint := range []string{"team=a:NoSchedule", "karpenter.sh/unregistered:NoExecute"} {
				if i := slices.IndexFunc(k.Flags,
					func(f string) bool { return strings.HasPrefix(f, "--register-with-taints=") }); i >= 0 && !strings.Contains(k.Flags[i], taint) {
					t.Errorf("%s: %s lacks the taint %s", family, k.Flags[i], taint)
				}
			}
		}
	}
}

// TestNodeConfigs: the user's NodeConfigs come first, so that Joiner's overrides them. Flags are appended.
func TestNodeConfigs(t *testing.T) {
	t.Parallel()
	k := readNode(t, node(catalog.AL2023, `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config: {maxPods: 5, shutdownGracePeriod: 30s, evictionHard: {pid.available: "3%"}}
    flags: ["--v=4 --max-pods=7", "--node-labels='a=b'"]
`)).Kubelet
	want := []string{"--v=4", "--max-pods=7", "--node-labels=a=b", "--node-labels=karpenter.sh/do-not-sync-taints=true,team=a"}
	if !slices.Equal(k.Flags, want) {
		t.Errorf("flags %q, want %q", k.Flags, want)
	}
	if got := fmt.Sprintf("%v %v %v", k.Config["maxPods"], k.Config["shutdownGracePeriod"],
		k.Config["evictionHard"]); got != "29 30s map[memory.available:5% nodefs.available:10% pid.available:3%]" {
		t.Errorf("config %s, want Joiner's values and those that only the user sets", got)
	}
}

// TestSettingsOfWrongType: Bottlerocket applies none of the settings if one has a wrong type, so the problem is fatal.
func TestSettingsOfWrongType(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ userData, want string }{
		"text for a number":  {`log-level = "4"`, "settings.kubernetes.log-level must be a number, but is text"},
		"a number for text":  {"cluster-domain = 4", "settings.kubernetes.cluster-domain must be text, but is a number"},
		"text for a boolean": {`seccomp-default = "true"`, "settings.kubernetes.seccomp-default must be true or false, but is text"},
		"text for a list":    {`allowed-unsafe-sysctls = "net.core.somaxconn"`, "allowed-unsafe-sysctls must be a list, but is text"},
		"a number in a list": {"allowed-unsafe-sysctls = [1]",
			"an entry of settings.kubernetes.allowed-unsafe-sysctls must be text, but is a number"},
		"a number in a table": {"system-reserved = { cpu = 1 }", "settings.kubernetes.system-reserved.cpu must be text, but is a number"},
		"a boolean as a label": {"[settings.kubernetes.node-labels]\ngpu = true",
			"settings.kubernetes.node-labels.gpu must be text, but is true or false"},
		"a table for a number": {"[settings.kubernetes.pod-pids-limit]\nsoft = 1",
			"settings.kubernetes.pod-pids-limit must be a number, but is a table"},
	} {
		fatal, ok := readNode(t, node(catalog.Bottlerocket, "[settings.kubernetes]\n"+c.userData+"\n")).Fatal()
		if !ok || !strings.HasPrefix(fatal.String(), "spec.userData, line ") || !strings.Contains(fatal.Cause, c.want) {
			t.Errorf("%s: %v, want a problem of spec.userData with %q", name, fatal, c.want)
		}
	}
	for name, userData := range map[string]string{
		"a percentage as a number":         "image-gc-low-threshold-percent = 70",
		"a percentage as text":             `image-gc-low-threshold-percent = "70"`,
		"lists, tables, booleans and text": "allowed-unsafe-sysctls = [\"a\"]\nkube-reserved = { cpu = \"1\" }\nserver-tls-bootstrap = false\ncpu-manager-policy = \"static\"",
	} {
		if r := readNode(t, node(catalog.Bottlerocket, "[settings.kubernetes]\n"+userData+"\n")); len(r.Problems) > 0 {
			t.Errorf("%s: problems %v, want none", name, r.Problems)
		}
	}
}
