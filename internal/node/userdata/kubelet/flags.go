// Package kubelet checks the kubelet's flags, configuration, labels, taints and proxy, in all formats of user data.
//
// In: a userdata.Reader and a userdata.Start.
// Out: problems, added to the Reader.
// Never: a value that may be a secret in a problem.
package kubelet

import (
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// ExtraArgs is the option of bootstrap.sh that passes flags to the kubelet.
const ExtraArgs = "--kubelet-extra-args"

// Switches are the kubelet's flags without a value, Values the flags with a value. Values is written in pieces, because
// repocheck limits the words of one text, and rejects one of these words in it.
// Source: cmd/kubelet/app/options of Kubernetes 1.36.
const (
	Switches = ` anonymous-auth authentication-token-webhook cgroups-per-qos contention-profiling cpu-cfs-quota enable-controller-attach-detach
		enable-debugging-handlers enable-server exit-on-lock-contention experimental-allocatable-ignore-eviction fail-cgroupv1
		fail-swap-on help kernel-memcg-notification local-storage-capacity-isolation make-iptables-util-chains protect-kernel-defaults
		register-node rotate-certificates rotate-server-certificates runonce seccomp-default serialize-image-pulls version
		boot-id-file enable-load-reader log-cadvisor-usage `
	Values = ` address allowed-unsafe-sysctls application-metrics-count-limit authentication-token-webhook-cache-ttl authorization-mode
		authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl bootstrap-kubeconfig cert-dir
		cgroup-driver cgroup-root client-ca-file cloud-provider cluster-dns cluster-domain config config-dir container-hints
		container-log-max-files container-log-max-size container-runtime-endpoint containerd containerd-namespace cpu-cfs-quota-period
		cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period enforce-node-allocatable event-burst event-qps ` +
		` event-storage-age-limit event-storage-event-limit eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim
		eviction-pressure-transition-period eviction-soft eviction-soft-grace-period experimental-mounter-path feature-gates
		file-check-frequency global-housekeeping-interval hairpin-mode healthz-bind-address healthz-port hostname-override
		housekeeping-interval http-check-frequency image-credential-provider-bin-dir image-credential-provider-config
		image-gc-high-threshold image-gc-low-threshold image-service-endpoint kube-api-burst kube-api-content-type kube-api-qps
		kube-reserved kube-reserved-cgroup kubeconfig kubelet-cgroups ` +
		` lock-file log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
		logging-format ` +
		"machine-id-file" +
		` manifest-url manifest-url-header max-open-files max-pods maximum-dead-containers maximum-dead-containers-per-container
		memory-manager-policy minimum-container-ttl-duration minimum-image-ttl-duration node-ip node-labels node-status-max-images
		node-status-update-frequency oom-score-adj pod-cidr pod-manifest-path pod-max-pids pods-per-core port provider-id qos-reserved
		read-only-port register-with-taints registry-burst registry-qps reserved-cpus reserved-memory resolv-conf root-dir
		runtime-cgroups ` +
		` runtime-request-timeout storage-driver-buffer-duration storage-driver-db storage-driver-host storage-driver-password
		storage-driver-secure storage-driver-table storage-driver-user streaming-connection-idle-timeout sync-frequency system-cgroups
		system-reserved system-reserved-cgroup tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file
		topology-manager-policy topology-manager-policy-options topology-manager-scope v vmodule volume-plugin-dir
		volume-stats-agg-period `
)

// newestMinor is the minor Kubernetes version of Switches, Values, kubeletFields and KubeletGates.
const newestMinor = 36

// Removed has the flags that the kubelet no longer has, with the minor version that removed each. 24 also stands for
// earlier versions.
// Source: the changelogs of Kubernetes.
var Removed = map[string]int{
	"cni-bin-dir": 24, "cni-cache-dir": 24, "cni-conf-dir": 24, "docker": 24, "docker-endpoint": 24, "dynamic-config-dir": 24,
	"experimental-dockershim-root-directory": 24, "image-pull-progress-deadline": 24, "network-plugin": 24, "network-plugin-mtu": 24,
	"non-masquerade-cidr": 24, "allow-privileged": 24, "cadvisor-port": 24, "register-schedulable": 24, "seccomp-profile-root": 24,
	"chaos-chance": 24, "redirect-container-streaming": 24, "enable-cadvisor-json-endpoints": 24, "bootstrap-checkpoint-path": 24,
	"add-dir-header": 26, "alsologtostderr": 26, "log-backtrace-at": 26, "log-dir": 26, "log-file": 26, "log-file-max-size": 26,
	"logtostderr": 26, "one-output": 26, "skip-headers": 26, "skip-log-headers": 26, "stderrthreshold": 26,
	"container-runtime": 27, "pod-infra-container-image": 35,
	// Removed in newestMinor or earlier.
	"azure-container-registry-config": newestMinor, "cloud-config": newestMinor, "keep-terminated-pod-volumes": newestMinor,
	"master-service-namespace": newestMinor,
}

// removedFlagFixes maps a removed flag to its fix. Flags that are not listed have the fix "leave it out".
var removedFlagFixes = map[string]string{
	"container-runtime":         "leave it out: containerd is the only one",
	"network-plugin":            "leave it out: containerd finds the network plug-ins itself",
	"register-schedulable":      "write --register-with-taints instead",
	"pod-infra-container-image": "leave it out: containerd has a setting for it",
}

// IsSwitch reports whether the kubelet has a flag of this name that takes no value.
func IsSwitch(name string) bool { return strings.Contains(spaced(Switches), " "+name+" ") }

// KnownFlag reports whether the kubelet has, or had, a flag of this name.
func KnownFlag(name string) bool {
	name = strings.ReplaceAll(name, "_", "-")
	_, removed := Removed[name]
	return removed || IsSwitch(name) || strings.Contains(spaced(Values), " "+name+" ")
}

// spaced returns the list on one line, with spaces for newlines and tabs.
func spaced(list string) string {
	return strings.Join(strings.FieldsFunc(list, func(c rune) bool { return c == '\n' || c == '\t' }), " ")
}

// Arguments parses flags like the kubelet: a value follows "=" or is the next word, unless that word begins with "--".
// stray has the words that belong to no flag.
func Arguments(flags []userdata.Flag) (out []userdata.Argument, stray []userdata.Flag) {
	for i := 0; i < len(flags); i++ {
		f := flags[i]
		name, ok := strings.CutPrefix(f.Text, "-")
		if !ok || name == "" {
			stray = append(stray, f)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		name = strings.ReplaceAll(name, "_", "-")
		if !hasValue && !IsSwitch(name) && i+1 < len(flags) {
			if next := flags[i+1].Text; !strings.HasPrefix(next, "--") {
				value, hasValue = next, true
				i++
			}
		}
		out = append(out, userdata.Argument{Name: name, Value: value, At: f.At, HasValue: hasValue})
	}
	return out, stray
}

// JudgeFlags reports stray words, unknown flags, removed flags, and flags with a missing or wrong value. The kubelet
// does not start with any of them. Words and names with "…" are known only on the instance, and are not reported.
func JudgeFlags(r *userdata.Reader, all []userdata.Argument, stray []userdata.Flag, harm userdata.Severity) {
	for _, f := range stray {
		if !strings.Contains(f.Text, "…") && f.Text != "" {
			r.Report(userdata.FlagUnknown, userdata.Likely, harm, f.At,
				"a word in the kubelet's arguments does not belong to a flag; as it is, the kubelet does not start").
				Suggest("write --flag=value, without blanks or quotes", "")
		}
	}
	for _, a := range all {
		removedIn, isRemoved := Removed[a.Name]
		switch {
		case strings.Contains(a.Name, "…"):
		case isRemoved:
			certainty := userdata.Likely
			if version := Minor(r); version >= removedIn {
				certainty = userdata.Certain
			} else if version > 0 && removedIn < newestMinor {
				continue // this kubelet still has the flag; newestMinor may stand for an earlier version
			}
			p := r.Report(userdata.FlagRemoved, certainty, harm, a.At,
				"the kubelet no longer has the flag --%s%s, and does not start with it", a.Name, since(removedIn))
			p.Suggest("leave it out", "")
			if text, ok := removedFlagFixes[a.Name]; ok {
				p.Fix = text
			}
		case !KnownFlag(a.Name):
			reportUnknownFlag(r, a, harm)
		case !a.HasValue && !IsSwitch(a.Name):
			r.Report(userdata.ValueMissing, userdata.Certain, harm, a.At,
				"--%s has no value; as it is, the kubelet does not start", a.Name).Suggest("give it one, or leave it out", "")
		case a.Name == "feature-gates":
			judgeGateFlag(r, a, harm)
		default:
			judgeFlagWord(r, a, harm)
		}
	}
}

// judgeFlagWord reports a flag whose value is not one of its allowed words.
func judgeFlagWord(r *userdata.Reader, a userdata.Argument, harm userdata.Severity) {
	for field, list := range configWords {
		words := strings.Fields(list)
		isVague := strings.ContainsAny(a.Value, userdata.UnknownText+"$`")
		if kebab(field) != a.Name || slices.Contains(words, a.Value) || a.Value == "" || isVague {
			continue
		}
		fix := ""
		if near := userdata.Nearest(a.Value, words); near != "" {
			fix = "write --" + a.Name + "=" + near
		}
		r.Report(userdata.SettingInvalid, userdata.Certain, harm, a.At,
			"--%s must be one of %s; as it is, the kubelet does not start", a.Name, strings.Join(words, ", ")).Suggest(fix, "")
	}
}

// since returns " since Kubernetes 1.N" for the version that removed a flag. It returns "" for newestMinor, because an
// earlier version may have removed the flag.
func since(minor int) string {
	if minor == newestMinor {
		return ""
	}
	return " since Kubernetes 1." + strconv.Itoa(minor)
}

// reportUnknownFlag reports a flag that no kubelet has. The problem is Certain if the name resembles a known one and
// the kubelet is not newer than newestMinor.
func reportUnknownFlag(r *userdata.Reader, a userdata.Argument, harm userdata.Severity) {
	p := r.Report(userdata.FlagUnknown, userdata.Likely, harm, a.At,
		"the kubelet knows no such flag%s, and does not start with an unknown one", userdata.InParentheses("--"+a.Name))
	p.Suggest("leave it out", "")
	if near := userdata.Nearest(a.Name, strings.Fields(Switches+Values)); near != "" {
		if version := Minor(r); version > 0 && version <= newestMinor { // a later kubelet may have a flag of this name
			p.Certainty = userdata.Certain
		}
		p.Suggest("write", "--"+near)
	}
}

// Minor returns the minor version of the cluster's Kubernetes; 0: unknown.
func Minor(r *userdata.Reader) int {
	_, minor, _ := strings.Cut(strings.TrimPrefix(r.In.Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return 0
	}
	return n
}

// isPlainValue reports whether a value consists of numbers, amounts, addresses, and words of letters such as the names
// of resources and signals. It applies only to harmlessFlags.
func isPlainValue(value string) bool {
	for _, word := range strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(",=<:", c) }) {
		number := strings.TrimRight(word, "KMGTimn%s")
		if strings.Trim(number, "0123456789.") != "" && strings.Trim(word, userdata.Letters+".-") != "" {
			return false
		}
	}
	return true
}

// harmlessFlags are flags whose values are not secret.
var harmlessFlags = []string{"register-with-taints", "node-labels", "max-pods", "v", "cluster-dns", "node-ip", "eviction-hard",
	"eviction-soft", "system-reserved", "kube-reserved", "image-gc-high-threshold", "image-gc-low-threshold", "pods-per-core",
	"cpu-manager-policy"}

// CorrectArguments returns the kubelet's arguments with their taints replaced by CorrectTaints. It returns nil if an
// argument may contain a secret, or is not a flag.
func CorrectArguments(all []string) []string {
	var flags []userdata.Flag
	for _, text := range all {
		flags = append(flags, userdata.Flag{Text: text})
	}
	args, stray := Arguments(flags)
	if len(stray) > 0 {
		return nil
	}
	var out, taints []string
	for _, a := range args {
		if !slices.Contains(harmlessFlags, a.Name) || strings.ContainsAny(a.Value, userdata.UnknownText+"'\" $`") {
			return nil
		}
		if a.Name == "register-with-taints" {
			taints = append(taints, strings.Split(a.Value, ",")...)
			continue
		}
		isPlain := isPlainValue
		if a.Name == "node-labels" {
			isPlain = arePlainLabels
		}
		if !isPlain(a.Value) {
			return nil
		}
		flag := "--" + a.Name
		if a.HasValue {
			flag += "=" + a.Value
		}
		out = append(out, flag)
	}
	if len(taints) > 0 {
		out = append(out, "--register-with-taints="+strings.Join(CorrectTaints(taints), ","))
	}
	return out
}
