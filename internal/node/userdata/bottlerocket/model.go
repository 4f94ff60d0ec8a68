package bottlerocket

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// PemOf returns text, which is PEM or base64 of PEM, as PEM without white space. Tools write the same certificate with
// different white space.
func PemOf(text string) string {
	if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
		text = string(plain)
	}
	return strings.Join(strings.Fields(text), "")
}

// settingGroups returns the rules of the setting groups directly below [settings] in images for EKS, by group.
// Source: settings-extensions and modeled-types of github.com/bottlerocket-os/bottlerocket-settings-sdk, variant
// aws-k8s.
func settingGroups() map[string]rule {
	i32, mode := integer(int32Min, int32Max), oneOf("off once always")
	commands := listOf(apiclientCommand)
	byIdentifier := func(value rule) rule { // accepts tables whose keys are identifiers
		return keyed("letters, digits and dashes", identifiers.MatchString, value)
	}
	return map[string]rule{
		"autoscaling": fields(map[string]rule{"should-wait": boolean}),
		"aws":         fields(map[string]rule{"config": base64Text, "credentials": base64Text, "profile": oneLine, "region": oneLine}),
		"boot": fields(map[string]rule{
			"init": bootParameters, "init-parameters": bootParameters, "kernel": bootParameters, "kernel-parameters": bootParameters,
			"reboot-to-reconcile": boolean,
		}),
		"bootstrap-commands": byIdentifier(fields(map[string]rule{"commands": commands, "essential": boolean, "mode": mode})),
		"bootstrap-containers": byIdentifier(bootstrapContainer(fields(map[string]rule{
			"command": listOf(freeText), "essential": boolean, "mode": mode, "source": urlOrHost, "user-data": base64Text,
		}))),
		"cloudformation": fields(map[string]rule{"logical-resource-id": oneLine, "should-signal": boolean, "stack-name": oneLine}),
		"container-registry": fields(map[string]rule{
			"credentials": registryCredentials, "creds": registryCredentials, "mirrors": registryMirrors,
		}),
		"container-runtime": fields(map[string]rule{
			"concurrent-download-chunk-size": chunkSize, "concurrent-layer-fetch-buffer": chunkSize, "enable-unprivileged-icmp": boolean,
			"enable-unprivileged-ports": boolean, "log-level": oneOf("trace debug info warn error fatal panic"), "max-concurrent-downloads": i32,
			"max-concurrent-unpacks": i32, "max-container-log-line-size": i32, "snapshotter": oneOf("overlayfs soci"),
		}),
		"container-runtime-plugins": anyTable,
		"dns":                       fields(map[string]rule{"name-servers": listOf(address), "search-list": listOf(hostName)}),
		"host-containers": byIdentifier(fields(map[string]rule{
			"command": listOf(freeText), "enabled": boolean, "source": urlOrHost, "superpowered": boolean, "user-data": base64Text,
		})),
		"kernel":                 kernelSettings(),
		"kubelet-device-plugins": fields(map[string]rule{"nvidia": nvidiaPlugin()}),
		"kubernetes":             fields(kubernetesSettings()),
		"metrics":                fields(map[string]rule{"metrics-url": urlOrHost, "send-metrics": boolean, "service-checks": listOf(freeText)}),
		"motd":                   freeText,
		"network":                networkSettings(),
		"ntp":                    fields(map[string]rule{"logging": listOf(oneLine), "options": listOf(oneLine), "time-servers": timeServers}),
		"nvidia-container-runtime": fields(map[string]rule{
			"visible-devices-as-volume-mounts":         boolean,
			"visible-devices-envvar-when-unprivileged": boolean,
		}),
		"oci-defaults": ociDefaults(),
		"oci-hooks":    fields(map[string]rule{"log4j-hotpatch-enabled": boolean}),
		"pki":          byIdentifier(fields(map[string]rule{"data": certificate, "trusted": boolean})),
		"updates": fields(map[string]rule{
			"ignore-waves": boolean, "metadata-base-url": urlOrHost, "seed": integer(0, uint32Max),
			"targets-base-url": urlOrHost, "version-lock": version,
		}),
		"xfs": anyTable,
	}
}

// laterGroups are groups that releases after newestImage added. The settings in them are not known, so any table is
// accepted.
const laterGroups = "image-verifier-plugins kubelet-dra-drivers measurement"

var anyTable = keyed("a name", func(string) bool { return true }, anything)

func kernelSettings() rule {
	return fields(map[string]rule{
		"drivers": fields(map[string]rule{"nvidia": fields(map[string]rule{"branch": oneLine})}),
		"hugepages": fields(map[string]rule{
			"static": hugePages,
			"transparent": fields(map[string]rule{
				"defrag": oneOf("never madvise defer defer+madvise always"), "enabled": oneOf("never madvise always"),
			}),
		}),
		"lockdown": oneOf("none integrity confidentiality"),
		"modules": keyed("letters, digits, dashes and underscores", modules.MatchString, fields(map[string]rule{
			"allowed": boolean, "autoload": boolean,
		})),
		"sysctl": keyed("a name such as net.core.somaxconn",
			func(s string) bool { return sysctls.MatchString(s) && !strings.Contains(s, "..") }, freeText),
	})
}

// hugePages accepts a table that has a count for each page size, and optionally the boolean "essential".
func hugePages(c *settingsCheck, name, path string, value any) {
	pageSize := fields(map[string]rule{"count": textThat(`a count such as "512" or "0:128,1:128"`, pageCounts.MatchString)}, "count")
	keyed(`"essential" or a size such as 2Mi`, func(s string) bool { return s == "essential" || pageSizes.MatchString(s) },
		func(c *settingsCheck, name, path string, value any) {
			if strings.HasSuffix(path, ".essential") {
				boolean(c, name, path, value)
				return
			}
			pageSize(c, name, path, value)
		})(c, name, path, value)
}

func networkSettings() rule {
	return fields(map[string]rule{
		"disable-ipv6": listOf(oneLine), "hostname": hostName, "hosts": listOf(hostsEntry), "https-proxy": urlOrHost, "no-proxy": listOf(oneLine),
	})
}

// hostsEntry accepts an address and the list of its names: ["10.0.0.1", ["a.example.com"]].
func hostsEntry(c *settingsCheck, name, path string, value any) {
	pair, ok := value.([]any)
	if !ok || len(pair) != 2 {
		c.reject(path, `write [["10.0.0.1", ["name.example.com"]]]`, "%s must be an address and a list of its names", name)
		return
	}
	address(c, name, path, pair[0])
	listOf(hostName)(c, name, path, pair[1])
}

// bootParameters accepts a table of kernel or init parameters, each with a list of values.
var bootParameters = keyed("words of letters, digits, dashes and underscores, with dots between", bootKeys.MatchString,
	listOf(textThat("printable ASCII with one kind of quotes", func(s string) bool {
		for i := range len(s) {
			if s[i] < ' ' || s[i] > '~' {
				return false
			}
		}
		return !strings.Contains(s, `"`) || !strings.Contains(s, "'")
	})))

func apiclientCommand(c *settingsCheck, name, path string, value any) {
	words, ok := value.([]any)
	if !ok {
		c.rejectType(name, path, "a list of words", value)
		return
	}
	listOf(freeText)(c, name, path, value)
	if len(words) == 0 || words[0] != "apiclient" {
		c.reject(path, "", "%s must begin with apiclient, which is the only program that bootstrap commands run", name)
	}
}

// bootstrapContainer returns a rule that applies containerRule, and also reports an active container without a source.
// Only releases from firstDefaultSource on have a default image for a container without a source.
func bootstrapContainer(containerRule rule) rule {
	return func(c *settingsCheck, name, path string, value any) {
		containerRule(c, name, path, value)
		table, _ := value.(map[string]any)
		if _, ok := table["source"]; ok || table == nil || table["mode"] == nil || table["mode"] == "off" { // off: the default
			return
		}
		certainty, which := userdata.Possible, "before 1.31"
		if release, ok := releaseOf(c.r.In.Image); ok {
			if !isLater(firstDefaultSource, release) { // the release has a default image
				return
			}
			certainty, which = userdata.Likely, "such as this one, before 1.31,"
		}
		c.r.Report(userdata.SettingInvalid, certainty, userdata.NeverJoins, c.positionOf(path),
			"%s has no source, and releases of Bottlerocket %s have no image for it: the instance does not finish its boot", name, which).
			Suggest("name the image in its source", "")
	}
}

// firstDefaultSource is the first release with an image for bootstrap containers without a source.
var firstDefaultSource = [2]int{1, 31}

// timeServers accepts a list of hosts. If the image may be newer than newestImage, it also accepts a list of tables and
// a table of tables.
func timeServers(c *settingsCheck, name, path string, value any) {
	server := fields(map[string]rule{"address": urlOrHost, "directive": oneOf("server pool"), "options": listOf(oneLine)}, "address")
	servers, ok := value.([]any)
	if !ok {
		if _, isTable := value.(map[string]any); isTable && mayBeNewer(c.r) {
			keyed("letters, digits and dashes", identifiers.MatchString, server)(c, name, path, value)
			return
		}
		c.rejectType(name, path, "a list of hosts", value)
		return
	}
	for _, entry := range servers {
		if _, isTable := entry.(map[string]any); isTable && mayBeNewer(c.r) {
			server(c, "an entry of "+name, path, entry)
			continue
		}
		urlOrHost(c, "an entry of "+name, path, entry)
	}
}

// registryMirrors accepts a list of tables, or a table with a list of endpoints for each registry.
func registryMirrors(c *settingsCheck, name, path string, value any) {
	if _, ok := value.(map[string]any); ok {
		keyed("a registry", func(string) bool { return true }, listOf(urlOrHost))(c, name, path, value)
		return
	}
	listOf(fields(map[string]rule{
		"capabilities": listOf(oneOf("pull resolve push")), "endpoint": listOf(urlOrHost), "registry": oneLine,
	}))(c, name, path, value)
}

// registryCredentials accepts a list of tables. The problems that it reports never quote a value, because the value may
// be a password.
func registryCredentials(c *settingsCheck, name, path string, value any) {
	if _, ok := value.([]any); !ok {
		c.reject(path, "write [["+path+"]] with registry and auth, or with username and password, for each registry",
			"%s must be a list of tables, but is %s", name, kubelet.TypeName(value))
		return
	}
	listOf(fields(map[string]rule{
		"auth": base64Text, "identitytoken": oneLine, "password": oneLine, "registry": oneLine, "username": oneLine,
	}))(c, name, path, value)
}

var certificate = textThat("base64 of certificates in PEM", func(s string) bool {
	return strings.TrimSpace(s) == "" || isBase64(s) && strings.Contains(PemOf(s), "CERTIFICATE")
})

// ociCapabilities and ociLimits are the names of capabilities and of resource limits in settings.oci-defaults.
const (
	ociCapabilities = "audit-control audit-read audit-write block-suspend bpf checkpoint-restore chown dac-override dac-read-search fowner " +
		"fsetid ipc-lock ipc-owner kill lease linux-immutable mac-admin mac-override mknod net-admin net-bind-service net-broadcast net-raw " +
		"perfmon setfcap setgid setpcap setuid sys-admin sys-boot sys-chroot sys-module sys-nice sys-pacct sys-ptrace sys-rawio sys-resource " +
		"sys-time sys-tty-config syslog wake-alarm"
	ociLimits = "max-address-space max-core-file-size max-cpu-time max-data-size max-file-locks max-file-size max-locked-memory " +
		"max-msgqueue-size max-nice-priority max-open-files max-pending-signals max-processes max-realtime-priority max-realtime-timeout " +
		"max-resident-set max-stack-size"
)

func ociDefaults() rule {
	capabilities, limits := map[string]rule{}, map[string]rule{}
	for _, name := range strings.Fields(ociCapabilities) {
		capabilities[name] = boolean
	}
	for _, name := range strings.Fields(ociLimits) {
		limits[name] = fields(map[string]rule{"hard-limit": ociLimit, "soft-limit": ociLimit}, "hard-limit", "soft-limit")
	}
	return fields(map[string]rule{"capabilities": fields(capabilities), "resource-limits": fields(limits)})
}

func nvidiaPlugin() rule {
	return fields(map[string]rule{
		"device-id-strategy": oneOf("uuid index"), "device-list-strategy": oneOrList(oneOf("envvar volume-mounts cdi-cri")),
		"device-partitioning-strategy": oneOf("none mig"), "device-sharing-strategy": oneOf("none time-slicing mps"), "enabled": boolean,
		"mig": fields(map[string]rule{
			"profile": keyed("a GPU model such as a100.40gb", gpuModels.MatchString,
				textThat(`a MIG profile such as "1g.5gb"`, migProfiles.MatchString)),
		}),
		"mps": anyTable, "pass-device-specs": boolean,
		"time-slicing": fields(map[string]rule{
			"fail-requests-greater-than-one": boolean, "rename-by-default": boolean, "replicas": integer(2, int32Max),
		}),
	})
}

const cpuManagerOptions = "full-pcpus-only distribute-cpus-across-numa align-by-socket distribute-cpus-across-cores strict-cpu-reservation " +
	"prefer-align-cpus-by-uncorecache"

var reservedMemory = keyed("letters, digits and dashes", identifiers.MatchString, fields(map[string]rule{
	"enabled": boolean, "hugepages-1Gi": quantity, "hugepages-2Mi": quantity, "memory": quantity,
}, "enabled"))

// isCloudProvider also accepts an empty text that is quoted twice.
func isCloudProvider(s string) bool { return s == "aws" || s == "external" || s == "" || s == `""` }

func kubernetesSettings() map[string]rule {
	i32, natural := integer(int32Min, int32Max), integer(0, int32Max)
	signals := strings.Fields("memory.available nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree pid.available")
	resources := strings.Fields("cpu memory ephemeral-storage pid")
	reserved := among(resources, quantity)
	return map[string]rule{
		"allowed-unsafe-sysctls": listOf(oneLine), "api-server": urlOrHost, "authentication-mode": oneOf("aws tls"),
		"bootstrap-token": textThat("a bootstrap token", tokens.MatchString),
		"cloud-provider":  textThat(`"aws", "external" or ""`, isCloudProvider), "cluster-certificate": base64Text,
		"cluster-dns-ip": oneOrList(address), "cluster-domain": oneLine,
		"cluster-name": oneLine, "container-log-max-files": i32, "container-log-max-size": quantity, "container-log-max-workers": i32,
		"container-log-monitor-interval": duration, "container-runtime-endpoint": freeText,
		"cpu-cfs-quota-enforced": boolean, "cpu-manager-policy": oneOf("none static"),
		"cpu-manager-policy-options": listOf(oneOf(cpuManagerOptions)), "cpu-manager-reconcile-period": duration,
		"credential-providers": keyed("letters, digits and dashes", identifiers.MatchString, fields(map[string]rule{
			"cache-duration": duration, "enabled": boolean, "environment": tableOfTexts, "image-patterns": listOf(oneLine),
		}, "enabled", "image-patterns")),
		"device-ownership-from-security-context": boolean, "event-burst": i32, "event-qps": i32, "eviction-hard": among(signals, threshold),
		"eviction-max-pod-grace-period": natural, "eviction-soft": among(signals, threshold),
		"eviction-soft-grace-period": among(signals, duration), "hostname-override": hostName,
		"hostname-override-source": oneOf("private-dns-name instance-id"), "ids-per-pod": integer(0, math.MaxInt64),
		"image-gc-high-threshold-percent": percentage, "image-gc-low-threshold-percent": percentage, "image-maximum-gc-age": duration,
		"image-minimum-gc-age": duration, "kube-api-burst": i32, "kube-api-qps": i32, "kube-reserved": reserved,
		"kubelet-extra-config": base64Text, "log-level": integer(0, 255), "max-parallel-image-pulls": i32, "max-pods": integer(0, uint32Max),
		"memory-manager-policy": oneOf("None Static none static"), "memory-manager-reserved-memory": reservedMemory,
		"memory-reservation-policy": oneLine, "memory-throttling-factor": anything,
		"memory-swap-behavior": oneOf("LimitedSwap NoSwap"), "node-ip": address, "node-labels": tableOfTexts,
		// The content of taints is checked together with that of the kubelet's flags.
		"node-taints":               keyed("a key", func(string) bool { return true }, oneOrList(freeText)),
		"pod-infra-container-image": oneLine, "pod-pids-limit": integer(math.MinInt64, math.MaxInt64),
		"provider-id": urlOrHost, "registry-burst": i32, "registry-qps": i32, "reserved-cpus": processors, "seccomp-default": boolean,
		"server-certificate": base64Text, "server-key": base64Text, "server-tls-bootstrap": boolean, "shutdown-grace-period": duration,
		"shutdown-grace-period-for-critical-pods": duration, "single-process-oom-kill": boolean, "standalone-mode": boolean,
		"static-pods": keyed("letters, digits and dashes", identifiers.MatchString,
			fields(map[string]rule{"enabled": boolean, "manifest": base64Text})),
		"static-pods-enabled": boolean, "system-reserved": reserved,
		"topology-manager-policy": oneOf("none restricted best-effort single-numa-node"), "topology-manager-policy-options": anything,
		"topology-manager-scope": oneOf("container pod"),
	}
}

// among accepts tables whose keys are all in words and whose values all satisfy the rule value.
func among(words []string, value rule) rule {
	return keyed("one of "+describe(words), func(key string) bool { return slices.Contains(words, key) }, value)
}
