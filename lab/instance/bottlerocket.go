package instance

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// bootBottlerocket boots Bottlerocket, which reads settings from the user data and runs no scripts. If one setting is
// invalid, Bottlerocket rejects all of them. Source: early-boot-config, pluto and thar-be-settings of
// bottlerocket-core-kit.
func (b *boot) bootBottlerocket() {
	b.say("Welcome to " + b.Image.prettyName() + "!")
	b.say("         Starting Bottlerocket userdata configuration system...")
	settings, err := readSettings(b.UserData)
	if err != nil {
		b.logUnit("early-boot-config[1325]", err.Error())
		b.logFailedUnit("Bottlerocket userdata configuration system", "early-boot-config",
			"Bottlerocket initial configuration complete", "Isolates configured.target", "Applies settings to create config files", "Kubelet")
		return
	}
	b.say("[  OK  ] Finished Bottlerocket userdata configuration system.")
	if err := b.runPluto(settings); err != nil {
		b.logUnit("pluto[1498]", err.Error())
		b.logFailedUnit("Generate additional settings for Kubernetes", "pluto",
			"Bottlerocket initial configuration complete", "Isolates configured.target", "Applies settings to create config files", "Kubelet")
		return
	}
	if b.kubelet, err = b.applySettings(settings); err != nil {
		b.logUnit("thar-be-settings[1702]", err.Error())
		b.logFailedUnit("Applies settings to create config files", "settings-applier", "Isolates multi-user.target", "Kubelet")
		return
	}
	if settings["standalone-mode"] == true {
		b.kubelet = nil // such a kubelet creates no Node
		b.logUnit("kubelet[1893]", "\"Standalone mode, no API client\"")
		return
	}
	b.say("[  OK  ] Started Kubelet.")
}

// logFailedUnit prints the lines of systemd for a failed unit, and for the units that depend on it.
func (b *boot) logFailedUnit(description, unit string, dependents ...string) {
	b.say("[FAILED] Failed to start " + description + ".")
	b.say("See 'systemctl status " + unit + ".service' for details.")
	for _, dependent := range dependents {
		b.say("[DEPEND] Dependency failed for " + dependent + ".")
	}
}

// readSettings returns the settings below [settings.kubernetes], by their names in TOML. It ignores tables other than
// [settings].
func readSettings(userData []byte) (map[string]any, error) {
	data, err := gunzip(userData)
	if err != nil {
		return nil, fmt.Errorf("Provider error: Failed to decompress instance user data: %w", err)
	}
	if len(data) == 0 {
		return map[string]any{}, nil
	}
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("Provider error: Unable to serialize settings from instance user data: Error parsing TOML user data: %w", err)
	}
	settings, ok := doc["settings"]
	if !ok {
		return nil, errors.New("Provider error: Unable to serialize settings from instance user data: TOML data did not contain 'settings' section")
	}
	if err := object(settingsModel())(settings); err != nil {
		const path = "/settings?tx=bottlerocket-launch"
		return nil, fmt.Errorf("Error PATCHing '%s': Status 400 when PATCHing %s: %w", path, path, err)
	}
	kubernetes, ok := settings.(map[string]any)["kubernetes"].(map[string]any)
	if !ok {
		kubernetes = map[string]any{}
	}
	return kubernetes, nil
}

// runPluto emulates pluto: it adds the settings that the user data does not have. Their values come from the instance
// and from EC2.
func (b *boot) runPluto(settings map[string]any) error {
	set := func(key string, value any) {
		if _, ok := settings[key]; !ok {
			settings[key] = value
		}
	}
	if _, hasName := settings["hostname-override"]; !hasName {
		if err := b.services.Credentials(); err != nil {
			return fmt.Errorf("EC2 error: Error describing instance '%s': %w", b.ID, err)
		}
		name := b.PrivateDNSName
		if settings["hostname-override-source"] == "instance-id" {
			name = b.ID
		}
		set("hostname-override", name)
	}
	set("cloud-provider", "external")
	set("cluster-domain", "cluster.local")
	set("cluster-dns-ip", b.defaultDNS())
	set("max-pods", b.addressablePods())
	address, err := b.nodeIP(strings.Contains(fmt.Sprint(settings["cluster-dns-ip"]), ":"))
	if err != nil {
		return fmt.Errorf("IMDS request failed: %w", err)
	}
	set("node-ip", address)
	set("provider-id", "aws:///"+b.Zone+"/"+b.ID)
	return nil
}

// applySettings returns the kubelet's flags and configuration for the settings.
func (b *boot) applySettings(settings map[string]any) (*kubeletStart, error) {
	for _, needed := range []string{"api-server", "cluster-certificate"} {
		if settings[needed] == nil {
			return nil, fmt.Errorf("Failed to render template 'kubelet-kubeconfig': Failed to access variable in strict mode Some(\"settings.kubernetes.%s\")", needed)
		}
	}
	ca, err := base64.StdEncoding.DecodeString(settings["cluster-certificate"].(string))
	if err != nil {
		return nil, fmt.Errorf("decode settings.kubernetes.cluster-certificate: %w", err)
	}
	config, err := json.Marshal(b.bottlerocketConfig(settings))
	if err != nil {
		return nil, fmt.Errorf("write kubelet configuration: %w", err)
	}
	s := &kubeletStart{config: config, server: settings["api-server"].(string), ca: ca}
	if provider := settings["cloud-provider"]; provider != "" {
		s.args = append(s.args, fmt.Sprintf("--cloud-provider=%s", provider))
	}
	s.args = append(s.args,
		fmt.Sprintf("--hostname-override=%s", settings["hostname-override"]), fmt.Sprintf("--node-ip=%s", settings["node-ip"]),
		"--node-labels="+joinFlag(settings["node-labels"]), "--register-with-taints="+joinFlag(settings["node-taints"]))
	if level, ok := settings["log-level"]; ok {
		s.args = append(s.args, fmt.Sprintf("--v=%d", level))
	}
	return s, nil
}

// bottlerocketFields maps settings to fields of the kubelet's configuration. The image copies the values of these
// settings unchanged. Source: the template kubelet-config of packages/kubernetes-1.33 of bottlerocket-core-kit.
var bottlerocketFields = map[string]string{
	"allowed-unsafe-sysctls": "allowedUnsafeSysctls", "cluster-domain": "clusterDomain", "container-log-max-files": "containerLogMaxFiles",
	"container-log-max-size": "containerLogMaxSize", "container-log-max-workers": "containerLogMaxWorkers",
	"container-log-monitor-interval": "containerLogMonitorInterval", "cpu-cfs-quota-enforced": "cpuCFSQuota",
	"cpu-manager-policy": "cpuManagerPolicy", "cpu-manager-reconcile-period": "cpuManagerReconcilePeriod", "event-burst": "eventBurst",
	"event-qps": "eventRecordQPS", "eviction-hard": "evictionHard", "eviction-max-pod-grace-period": "evictionMaxPodGracePeriod",
	"eviction-soft": "evictionSoft", "eviction-soft-grace-period": "evictionSoftGracePeriod", "image-maximum-gc-age": "imageMaximumGCAge",
	"image-minimum-gc-age": "imageMinimumGCAge", "kube-api-burst": "kubeAPIBurst", "kube-api-qps": "kubeAPIQPS",
	"max-parallel-image-pulls": "maxParallelImagePulls", "max-pods": "maxPods", "pod-pids-limit": "podPidsLimit",
	"provider-id": "providerID", "registry-burst": "registryBurst", "registry-qps": "registryPullQPS", "reserved-cpus": "reservedSystemCPUs",
	"seccomp-default": "seccompDefault", "shutdown-grace-period": "shutdownGracePeriod",
	"shutdown-grace-period-for-critical-pods": "shutdownGracePeriodCriticalPods", "single-process-oom-kill": "singleProcessOOMKill",
	"system-reserved": "systemReserved", "topology-manager-policy": "topologyManagerPolicy", "topology-manager-scope": "topologyManagerScope",
}

// bottlerocketConfig returns the kubelet's configuration that the image writes for the settings.
func (b *boot) bottlerocketConfig(settings map[string]any) map[string]any {
	pods, _ := settings["max-pods"].(int64)
	reserved := b.kubeReserved(pods)
	if own, ok := settings["kube-reserved"].(map[string]any); ok {
		for name, amount := range own {
			reserved[name] = fmt.Sprint(amount)
		}
	}
	config := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "0.0.0.0",
		"cgroupDriver": "systemd", "cgroupRoot": "/", "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"failSwapOn": false, "hairpinMode": "hairpin-veth", "kubeReserved": reserved, "podPidsLimit": 1048576, "protectKernelDefaults": true,
		"resolvConf": "/run/netdog/resolv.conf", "runtimeRequestTimeout": "15m", "serializeImagePulls": false, "serverTLSBootstrap": true,
	}
	for key, value := range settings {
		if field, ok := bottlerocketFields[key]; ok {
			config[field] = value
		}
	}
	dns, ok := settings["cluster-dns-ip"].([]any)
	if !ok {
		dns = []any{settings["cluster-dns-ip"]}
	}
	config["clusterDNS"] = dns
	for key, field := range map[string]string{ // these percentages can be strings
		"image-gc-high-threshold-percent": "imageGCHighThresholdPercent", "image-gc-low-threshold-percent": "imageGCLowThresholdPercent",
	} {
		if percent, err := strconv.Atoi(fmt.Sprint(settings[key])); err == nil {
			config[field] = percent
		}
	}
	return config
}

// joinFlag returns a table in the format of a kubelet flag: "a=b,c=d". A key with several values occurs once for each
// value.
func joinFlag(value any) string {
	table, _ := value.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		values, ok := table[key].([]any)
		if !ok {
			values = []any{table[key]}
		}
		for _, v := range values {
			out = append(out, fmt.Sprintf("%s=%v", key, v))
		}
	}
	return strings.Join(out, ",")
}

// variant returns the variant of a Bottlerocket image: "aws-k8s-1.31".
func (i Image) variant() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(i.Name, "bottlerocket-"), "-"+i.Architecture)
	return name
}

// release returns the version of a Bottlerocket image: "1.53.0".
func (i Image) release() string {
	_, rest, _ := strings.Cut(i.Name, "-"+i.Architecture+"-v")
	version, _, _ := strings.Cut(rest, "-")
	return version
}
