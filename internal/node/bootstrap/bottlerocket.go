package bootstrap

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

const kubernetesTable = "settings.kubernetes"

// bottlerocket returns TOML settings: the user's settings, overridden by Joiner's.
// Source: the settings reference of bottlerocket.dev.
func (n Node) bottlerocket() (string, error) {
	if n.Kubelet.PodsPerCore != nil {
		return "", errors.New("spec.kubelet.podsPerCore is unknown to Bottlerocket: set maxPods instead")
	}
	doc, err := parseTOML(n.UserData)
	if err != nil {
		return "", fmt.Errorf("read spec.userData as Bottlerocket settings: %w", err)
	}
	n.setSettings(doc)
	n.setLabelsAndTaints(doc)
	if n.InstanceStore == catalog.RAID0 {
		n.mountDisks(doc)
	}
	if doc.blocked != nil {
		return "", fmt.Errorf("read spec.userData as Bottlerocket settings: %s must be a table", joinKeys(doc.blocked))
	}
	return doc.String(), nil
}

// setSettings sets the facts about the cluster, and the EC2NodeClass's kubelet settings.
func (n Node) setSettings(doc *tomlDoc) {
	k := n.Kubelet
	set := func(key, value string) { doc.set(kubernetesTable, key, value) }
	set("api-server", quoteTOML(n.Cluster.Endpoint))
	set("cluster-certificate", quoteTOML(n.Cluster.CA))
	set("cluster-name", quoteTOML(n.Cluster.Name))
	if dns := n.dns(); len(dns) > 0 {
		set("cluster-dns-ip", quoteTOML(dns[0]))
	}
	setNumber := func(key string, value *int64) {
		if value != nil {
			set(key, strconv.FormatInt(*value, 10))
		}
	}
	setNumber("max-pods", k.MaxPods)
	setNumber("eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod)
	setPercent := func(key string, value *int64) { // Bottlerocket expects percentages as text
		if value != nil {
			set(key, quoteTOML(strconv.FormatInt(*value, 10)))
		}
	}
	setPercent("image-gc-high-threshold-percent", k.ImageGCHighThresholdPercent)
	setPercent("image-gc-low-threshold-percent", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		set("cpu-cfs-quota-enforced", strconv.FormatBool(*k.CPUCFSQuota))
	}
	setTable := func(name string, values map[string]string) { // replaces the user's whole table
		if len(values) == 0 {
			return
		}
		doc.drop(kubernetesTable + "." + name)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			doc.set(kubernetesTable+"."+name, quoteTOML(key), quoteTOML(values[key]))
		}
	}
	setTable("system-reserved", k.SystemReserved)
	setTable("kube-reserved", k.KubeReserved)
	setTable("eviction-hard", k.EvictionHard)
	setTable("eviction-soft", k.EvictionSoft)
	setTable("eviction-soft-grace-period", k.EvictionSoftGracePeriod)
}

// setLabelsAndTaints adds the node's labels to the labels in the user data. It replaces the taints in the user data
// with the node's taints, because Joiner has planned the node without other taints.
func (n Node) setLabelsAndTaints(doc *tomlDoc) {
	labels := n.labels()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		doc.set(kubernetesTable+".node-labels", quoteTOML(key), quoteTOML(labels[key]))
	}
	taints := map[string][]string{}
	for _, t := range n.taints() {
		taints[t.Key] = append(taints[t.Key], quoteTOML(t.Value+":"+string(t.Effect)))
	}
	doc.drop(kubernetesTable + ".node-taints")
	for _, key := range slices.Sorted(maps.Keys(taints)) {
		doc.set(kubernetesTable+".node-taints", quoteTOML(key), "["+strings.Join(taints[key], ", ")+"]")
	}
}

// mountDisks combines the local disks into one file system at each boot, and moves the directories of containerd, the
// kubelet and pod logs to it. Images from version 1.46.0 on know these directories; older images need a list of them.
func (n Node) mountDisks(doc *tomlDoc) {
	bindCommand := `["apiclient", "ephemeral-storage", "bind", "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]`
	if isVersion146OrLater(n.ImageName) {
		bindCommand = `["apiclient", "ephemeral-storage", "bind"]`
	}
	const table = "settings.bootstrap-commands.000-mount-instance-storage"
	doc.drop(table)
	doc.set(table, "commands", `[["apiclient", "ephemeral-storage", "init"], `+bindCommand+"]")
	doc.set(table, "mode", `"always"`)
	doc.set(table, "essential", "true")
}

// isVersion146OrLater reports whether the image, named like "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-abcdef", has
// version 1.46.0 or later. It returns false for a name without a version.
func isVersion146OrLater(image string) bool {
	for _, word := range strings.Split(image, "-") {
		version, ok := strings.CutPrefix(word, "v")
		numbers := strings.Split(version, ".")
		if !ok || len(numbers) != 3 {
			continue
		}
		major, majorErr := strconv.Atoi(numbers[0])
		minor, minorErr := strconv.Atoi(numbers[1])
		return majorErr == nil && minorErr == nil && (major > 1 || major == 1 && minor >= 46)
	}
	return false
}
