package userdata

import (
	"slices"
	"strconv"
	"strings"
)

// switches are the kubelet's flags that take no value, values those that do.
// Source: cmd/kubelet/app/options of Kubernetes 1.36.
const (
	switches = ` anonymous-auth authentication-token-webhook cgroups-per-qos contention-profiling cpu-cfs-quota enable-controller-attach-detach
		enable-debugging-handlers enable-server exit-on-lock-contention experimental-allocatable-ignore-eviction fail-cgroupv1 fail-swap-on
		help kernel-memcg-notification local-storage-capacity-isolation make-iptables-util-chains protect-kernel-defaults register-node
		rotate-certificates rotate-server-certificates runonce seccomp-default serialize-image-pulls version boot-id-file
		enable-load-reader log-cadvisor-usage `
	values = ` address allowed-unsafe-sysctls application-metrics-count-limit authentication-token-webhook-cache-ttl authorization-mode
		authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl bootstrap-kubeconfig cert-dir cgroup-driver
		cgroup-root client-ca-file cloud-provider cluster-dns cluster-domain config config-dir container-hints container-log-max-files
		container-log-max-size container-runtime-endpoint containerd containerd-namespace cpu-cfs-quota-period cpu-manager-policy
		cpu-manager-policy-options cpu-manager-reconcile-period enforce-node-allocatable event-burst event-qps event-storage-age-limit
		event-storage-event-limit eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim eviction-pressure-transition-period
		eviction-soft eviction-soft-grace-period experimental-mounter-path feature-gates file-check-frequency global-housekeeping-interval
		hairpin-mode healthz-bind-address healthz-port hostname-override housekeeping-interval http-check-frequency
		image-credential-provider-bin-dir image-credential-provider-config image-gc-high-threshold image-gc-low-threshold image-service-endpoint
		kube-api-burst kube-api-content-type kube-api-qps kube-reserved kube-reserved-cgroup kubeconfig kubelet-cgroups lock-file
		log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format
		machine-id-file manifest-url manifest-url-header max-open-files max-pods maximum-dead-containers
		maximum-dead-containers-per-container memory-manager-policy minimum-container-ttl-duration minimum-image-ttl-duration node-ip
		node-labels node-status-max-images node-status-update-frequency oom-score-adj pod-cidr pod-manifest-path pod-max-pids pods-per-core
		port provider-id qos-reserved read-only-port register-with-taints registry-burst registry-qps reserved-cpus reserved-memory
		resolv-conf root-dir runtime-cgroups runtime-request-timeout storage-driver-buffer-duration storage-driver-db storage-driver-host
		storage-driver-password storage-driver-secure storage-driver-table storage-driver-user streaming-connection-idle-timeout
		sync-frequency system-cgroups system-reserved system-reserved-cgroup tls-cert-file tls-cipher-suites tls-min-version
		tls-private-key-file topology-manager-policy topology-manager-policy-options topology-manager-scope v vmodule volume-plugin-dir
		volume-stats-agg-period `
)

// newest is the Kubernetes version of the lists above: its minor number.
const newest = 36

// removed are flags that a kubelet once had, and the first version without:
// of those that went before any version that EKS still has, that one.
// Source: the changelogs of Kubernetes.
var removed = map[string]int{
	"cni-bin-dir": 24, "cni-cache-dir": 24, "cni-conf-dir": 24, "docker": 24, "docker-endpoint": 24, "dynamic-config-dir": 24,
	"experimental-dockershim-root-directory": 24, "image-pull-progress-deadline": 24, "network-plugin": 24, "network-plugin-mtu": 24,
	"non-masquerade-cidr": 24, "allow-privileged": 24, "cadvisor-port": 24, "register-schedulable": 24, "seccomp-profile-root": 24,
	"chaos-chance": 24, "redirect-container-streaming": 24, "enable-cadvisor-json-endpoints": 24, "bootstrap-checkpoint-path": 24,
	"add-dir-header": 26, "alsologtostderr": 26, "log-backtrace-at": 26, "log-dir": 26, "log-file": 26, "log-file-max-size": 26,
	"logtostderr": 26, "one-output": 26, "skip-headers": 26, "skip-log-headers": 26, "stderrthreshold": 26,
	"container-runtime": 27, "pod-infra-container-image": 35,
	// These went some time before.
	"azure-container-registry-config": newest, "cloud-config": newest, "keep-terminated-pod-volumes": newest, "master-service-namespace": newest,
}

// instead says what there is for a removed flag.
var instead = map[string]string{
	"container-runtime":         "leave it out: containerd is the only one",
	"network-plugin":            "leave it out: containerd finds the network plug-ins itself",
	"register-schedulable":      "write --register-with-taints instead",
	"pod-infra-container-image": "leave it out: containerd has a setting for it",
}

func isSwitch(name string) bool { return strings.Contains(spaced(switches), " "+name+" ") }

func knownFlag(name string) bool {
	name = strings.ReplaceAll(name, "_", "-")
	_, gone := removed[name]
	return gone || isSwitch(name) || strings.Contains(spaced(values), " "+name+" ")
}

func spaced(list string) string {
	return strings.Join(strings.FieldsFunc(list, func(c rune) bool { return c == '\n' || c == '\t' }), " ")
}

// argument is one flag of the kubelet with its value.
type argument struct {
	name, value string
	at          Spot
	hasValue    bool
}

// arguments reads flags as the kubelet does: a value stands behind "=" or is the next word.
func arguments(flags []flag) (out []argument, stray []flag) {
	for i := 0; i < len(flags); i++ {
		f := flags[i]
		name, ok := strings.CutPrefix(f.text, "-")
		if !ok || name == "" {
			stray = append(stray, f)
			continue
		}
		name, value, has := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		name = strings.ReplaceAll(name, "_", "-")
		if !has && !isSwitch(name) && i+1 < len(flags) {
			if next := flags[i+1].text; !strings.HasPrefix(next, "--") {
				value, has = next, true
				i++
			}
		}
		out = append(out, argument{name: name, value: value, at: f.at, hasValue: has})
	}
	return out, stray
}

// judgeFlags looks for flags that no kubelet knows: it would not start.
func (r *reader) judgeFlags(all []argument, stray []flag, harm Harm) {
	for _, f := range stray {
		if !strings.Contains(f.text, "…") && f.text != "" {
			r.problem(FlagUnknown, Likely, harm, f.at, "a word among the kubelet's arguments belongs to no flag, and the kubelet does not start with it").
				with("write --flag=value, without blanks or quotes", "")
		}
	}
	for _, a := range all {
		minor, gone := removed[a.name]
		switch {
		case strings.Contains(a.name, "…"):
		case gone:
			certainty := Likely
			if version := r.minor(); version >= minor {
				certainty = Certain
			} else if version > 0 && minor < newest {
				continue
			}
			p := r.problem(FlagRemoved, certainty, harm, a.at, "the kubelet has no flag --%s any more%s, and does not start with it", a.name, since(minor))
			p.with("leave it out", "")
			if text, ok := instead[a.name]; ok {
				p.Fix = text
			}
		case !knownFlag(a.name):
			r.unknownFlag(a, harm)
		case !a.hasValue && !isSwitch(a.name):
			r.problem(ValueMissing, Certain, harm, a.at, "--%s has no value, and the kubelet does not start with it", a.name).with("give it one, or leave it out", "")
		case a.name == "feature-gates":
			r.judgeGateFlag(a, harm)
		default:
			r.judgeFlagWord(a, harm)
		}
	}
}

// judgeFlagWord reports a flag that takes one of a few words and has another.
func (r *reader) judgeFlagWord(a argument, harm Harm) {
	for field, list := range configWords {
		words := strings.Fields(list)
		if kebab(field) != a.name || slices.Contains(words, a.value) || a.value == "" || strings.ContainsAny(a.value, mark+"$`") {
			continue
		}
		fix := ""
		if near := nearest(a.value, words); near != "" {
			fix = "write --" + a.name + "=" + near
		}
		r.problem(SettingInvalid, Certain, harm, a.at, "--%s has to be one of %s, and the kubelet does not start with it", a.name, strings.Join(words, ", ")).with(fix, "")
	}
}

func since(minor int) string {
	if minor == newest {
		return ""
	}
	return " since Kubernetes 1." + strconv.Itoa(minor)
}

func (r *reader) unknownFlag(a argument, harm Harm) {
	p := r.problem(FlagUnknown, Likely, harm, a.at, "the kubelet knows no such flag%s, and does not start with one that it does not know", said("--"+a.name))
	p.with("leave it out", "")
	if near := nearest(a.name, strings.Fields(switches+values)); near != "" {
		if version := r.minor(); version > 0 && version <= newest { // a later kubelet may have it
			p.Certainty = Certain
		}
		p.with("write", "--"+near)
	}
}

// minor is the minor number of the cluster's version; 0: not known.
func (r *reader) minor() int {
	_, minor, _ := strings.Cut(strings.TrimPrefix(r.in.Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return 0
	}
	return n
}

// plainValue reports whether a value is numbers, amounts or addresses: no word among them that could be a secret.
func plainValue(value string) bool {
	for _, one := range strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(",=<:", c) }) {
		number := strings.TrimRight(one, "KMGTimn%s")
		if strings.Trim(number, "0123456789.") != "" && strings.Trim(one, letters+".-") != "" {
			return false
		}
	}
	return true
}

// harmless are flags whose values are no secrets.
var harmless = []string{"register-with-taints", "node-labels", "max-pods", "v", "cluster-dns", "node-ip", "eviction-hard", "eviction-soft",
	"system-reserved", "kube-reserved", "image-gc-high-threshold", "image-gc-low-threshold", "pods-per-core", "cpu-manager-policy"}

// corrected returns the kubelet's arguments with misspelt startup taints corrected; nothing if the value of one may be a secret.
func corrected(all []string) []string {
	var flags []flag
	for _, one := range all {
		flags = append(flags, flag{text: one})
	}
	args, stray := arguments(flags)
	if len(stray) > 0 {
		return nil
	}
	var out, taints []string
	for _, a := range args {
		if !slices.Contains(harmless, a.name) || strings.ContainsAny(a.value, mark+"'\" $`") {
			return nil
		}
		if a.name == "register-with-taints" {
			taints = append(taints, strings.Split(a.value, ",")...)
			continue
		}
		if a.name == "node-labels" && !plainLabels(a.value) || a.name != "node-labels" && !plainValue(a.value) {
			return nil
		}
		one := "--" + a.name
		if a.hasValue {
			one += "=" + a.value
		}
		out = append(out, one)
	}
	if len(taints) > 0 {
		out = append(out, "--register-with-taints="+strings.Join(rightTaints(taints), ","))
	}
	return out
}
