package bootstrap

import (
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// al2 returns a MIME message: the user's parts first, then a script that calls the image's bootstrap.sh.
func (n Node) al2() (string, error) {
	parts, err := userParts(n.UserData, contentTypeForCloudInit)
	if err != nil {
		return "", err
	}
	return mimeMessage(append(parts, newPart(shellScript, n.script()))), nil
}

// contentTypeForCloudInit returns the content type of user data that is not a MIME message.
func contentTypeForCloudInit(text string) string {
	if strings.HasPrefix(text, "#cloud-config") {
		return cloudConfig
	}
	return shellScript
}

// script returns a script that calls bootstrap.sh. Each option and its value are separate words, because bootstrap.sh
// does not support --option=value.
// Source: files/bootstrap.sh of github.com/awslabs/amazon-eks-ami, branch al2.
func (n Node) script() string {
	var b strings.Builder
	b.WriteString("#!/bin/bash -xe\n")
	b.WriteString("exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n")
	b.WriteString("/etc/eks/bootstrap.sh " + quote(n.Cluster.Name))
	option := func(name, value string) { b.WriteString(" \\\n  " + name + " " + quote(value)) }
	option("--apiserver-endpoint", n.Cluster.Endpoint)
	option("--b64-cluster-ca", n.Cluster.CA)
	if n.Cluster.IPv6 {
		option("--ip-family", "ipv6")
	}
	if dns := n.dns(); len(dns) > 0 {
		option("--dns-cluster-ip", dns[0])
	}
	if n.Kubelet.MaxPods != nil {
		option("--use-max-pods", "false") // kubeletFlags sets --max-pods
	}
	option("--kubelet-extra-args", strings.Join(n.kubeletFlags(), " "))
	if n.InstanceStore == catalog.RAID0 {
		option("--local-disks", "raid0")
	}
	b.WriteString("\n")
	return b.String()
}

// kubeletFlags returns labels, taints and settings as flags of the kubelet. It does not quote values: check rejects
// spaces, and systemd would pass some of the quotes on to the kubelet.
func (n Node) kubeletFlags() []string {
	k := n.Kubelet
	flags := []string{"--node-labels=" + joinPairs(n.labels(), "=")}
	var taints []string
	for _, t := range n.taints() {
		taints = append(taints, t.String())
	}
	flags = append(flags, "--register-with-taints="+strings.Join(taints, ","))
	addInt := func(name string, value *int64) {
		if value != nil {
			flags = append(flags, name+"="+strconv.FormatInt(*value, 10))
		}
	}
	addMap := func(name string, values map[string]string, sep string) {
		if len(values) > 0 {
			flags = append(flags, name+"="+joinPairs(values, sep))
		}
	}
	addInt("--max-pods", k.MaxPods)
	addInt("--pods-per-core", k.PodsPerCore)
	addMap("--system-reserved", k.SystemReserved, "=")
	addMap("--kube-reserved", k.KubeReserved, "=")
	addMap("--eviction-hard", k.EvictionHard, "<")
	addMap("--eviction-soft", k.EvictionSoft, "<")
	addMap("--eviction-soft-grace-period", k.EvictionSoftGracePeriod, "=")
	addInt("--eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod)
	addInt("--image-gc-high-threshold", k.ImageGCHighThresholdPercent)
	addInt("--image-gc-low-threshold", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		flags = append(flags, "--cpu-cfs-quota="+strconv.FormatBool(*k.CPUCFSQuota))
	}
	return flags
}

// quote quotes a word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
