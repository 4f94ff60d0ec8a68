package bootstrap

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// al2023 returns a MIME message: the user's parts first, then Joiner's NodeConfig for nodeadm. nodeadm merges all
// NodeConfigs; the fields of a later NodeConfig override those of earlier ones.
func (n Node) al2023() (string, error) {
	if n.Cluster.ServiceCIDR == "" {
		return "", errors.New("the cluster's service CIDR is not known; nodeadm needs it")
	}
	parts, err := userParts(n.UserData, contentTypeForNodeadm)
	if err != nil {
		return "", err
	}
	return mimeMessage(append(parts, newPart(nodeConfig, n.nodeConfig()))), nil
}

// contentTypeForNodeadm returns the content type of user data that is not a MIME message.
func contentTypeForNodeadm(text string) string {
	switch {
	case strings.HasPrefix(text, "#!"):
		return shellScript
	case strings.HasPrefix(text, "#cloud-config"):
		return cloudConfig
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "apiVersion:") && strings.Contains(line, "node.eks.aws/") {
			return nodeConfig
		}
		if strings.HasPrefix(line, "kind:") && strings.Contains(line, "NodeConfig") {
			return nodeConfig
		}
	}
	return shellScript
}

// nodeConfig returns the NodeConfig of node.eks.aws/v1alpha1.
// Source: the API reference of nodeadm, github.com/awslabs/amazon-eks-ami.
func (n Node) nodeConfig() string {
	spec := mapping{
		{"cluster", mapping{
			{"name", n.Cluster.Name},
			{"apiServerEndpoint", n.Cluster.Endpoint},
			{"certificateAuthority", n.Cluster.CA},
			{"cidr", n.Cluster.ServiceCIDR},
		}},
	}
	if n.InstanceStore == catalog.RAID0 {
		spec = append(spec, field{"instance", mapping{{"localStorage", mapping{{"strategy", "RAID0"}}}}})
	}
	kubelet := mapping{
		{"config", n.kubeletConfig()},
		// The labels are not quoted, because not every program that parses the flag removes quotes.
		{"flags", []string{"--node-labels=" + joinPairs(n.labels(), "=")}},
	}
	spec = append(spec, field{"kubelet", kubelet})
	return mapping{
		{"apiVersion", "node.eks.aws/v1alpha1"},
		{"kind", "NodeConfig"},
		{"spec", spec},
	}.String()
}

// kubeletConfig returns the settings that are fields of the kubelet's own KubeletConfiguration.
func (n Node) kubeletConfig() mapping {
	k := n.Kubelet
	var m mapping
	add := func(key string, value any) { m = append(m, field{key, value}) }
	if dns := n.dns(); len(dns) > 0 {
		add("clusterDNS", dns)
	}
	addInt := func(key string, value *int64) {
		if value != nil {
			add(key, *value)
		}
	}
	addMap := func(key string, values map[string]string) {
		if len(values) > 0 {
			add(key, sortedMapping(values))
		}
	}
	addInt("maxPods", k.MaxPods)
	addInt("podsPerCore", k.PodsPerCore)
	addMap("systemReserved", k.SystemReserved)
	addMap("kubeReserved", k.KubeReserved)
	addMap("evictionHard", k.EvictionHard)
	addMap("evictionSoft", k.EvictionSoft)
	addMap("evictionSoftGracePeriod", k.EvictionSoftGracePeriod)
	addInt("evictionMaxPodGracePeriod", k.EvictionMaxPodGracePeriod)
	addInt("imageGCHighThresholdPercent", k.ImageGCHighThresholdPercent)
	addInt("imageGCLowThresholdPercent", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		add("cpuCFSQuota", *k.CPUCFSQuota)
	}
	for _, name := range slices.Sorted(maps.Keys(k.More)) {
		add(name, flow(k.More[name]))
	}
	var taints []mapping
	for _, t := range n.taints() {
		taint := mapping{{"key", t.Key}}
		if t.Value != "" {
			taint = append(taint, field{"value", t.Value})
		}
		taints = append(taints, append(taint, field{"effect", string(t.Effect)}))
	}
	add("registerWithTaints", taints)
	return slices.Clip(m)
}
