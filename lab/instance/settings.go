package instance

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// validator validates a value of Bottlerocket's settings. It returns an error in the wording of Bottlerocket's API.
type validator func(value any) error

// settingsModel returns the groups below [settings] that the Bottlerocket images for EKS support. Joiner's tables of
// these groups are in internal/node/userdata/bottlerocket. The lab's are separate, so that an error in one makes a test
// fail. Source: bottlerocket-settings-models, variant aws-k8s, of bottlerocket-settings-sdk.
func settingsModel() map[string]validator {
	model := systemModel()
	model["kubernetes"] = object(kubernetesModel())
	for _, name := range []string{"container-runtime-plugins", "kubelet-device-plugins", "xfs"} {
		model[name] = object(nil)
	}
	return model
}

// kubernetesModel returns the settings below [settings.kubernetes] that the images support. 1<<62 stands for the
// maximum of an i64. Source: settings-extensions/kubernetes of bottlerocket-settings-sdk.
func kubernetesModel() map[string]validator {
	i32, percent := number("i32", -1<<31, 1<<31-1), number("a percentage", 0, 100)
	resources := every(oneOf("cpu", "memory", "ephemeral-storage", "pid"), quantity)
	signals := oneOf("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available")
	return map[string]validator{
		"allowed-unsafe-sysctls": list(text), "api-server": text, "authentication-mode": oneOf("aws", "tls"), "bootstrap-token": text,
		"cloud-provider": oneOf("external", "aws", ""), "cluster-certificate": encoded, "cluster-dns-ip": oneOrMore(address),
		"cluster-domain": text, "cluster-name": text, "container-log-max-files": i32, "container-log-max-size": quantity,
		"container-log-max-workers": i32, "container-log-monitor-interval": duration, "cpu-cfs-quota-enforced": boolean,
		"cpu-manager-policy": oneOf("none", "static"), "cpu-manager-policy-options": list(text),
		"cpu-manager-reconcile-period": duration, "credential-providers": object(nil), "device-ownership-from-security-context": boolean,
		"event-burst": i32, "event-qps": i32,
		"eviction-hard": every(signals, signalLimit), "eviction-max-pod-grace-period": number("i32", 0, 1<<31-1),
		"eviction-soft": every(signals, signalLimit), "eviction-soft-grace-period": every(signals, duration),
		"hostname-override": hostname, "hostname-override-source": oneOf("private-dns-name", "instance-id"),
		"ids-per-pod":                     number("i64", 0, 1<<62),
		"image-gc-high-threshold-percent": orInText(percent), "image-gc-low-threshold-percent": orInText(percent),
		"image-maximum-gc-age": duration, "image-minimum-gc-age": duration, "kube-api-burst": i32, "kube-api-qps": i32,
		"kube-reserved": resources, "kubelet-extra-config": encoded, "log-level": number("u8", 0, 255),
		"max-parallel-image-pulls": i32, "max-pods": number("u32", 0, 1<<32-1), "memory-manager-policy": oneOf("None", "Static"),
		"memory-manager-reserved-memory": object(nil), "memory-swap-behavior": oneOf("LimitedSwap", "NoSwap"), "node-ip": address,
		"node-labels": every(labelKey, labelValue), "node-taints": every(labelKey, oneOrMore(taint)), "pod-infra-container-image": text,
		"pod-pids-limit": number("i64", -1, 1<<62), "provider-id": text, "registry-burst": i32, "registry-qps": i32,
		"reserved-cpus": text, "seccomp-default": boolean, "server-certificate": encoded, "server-key": encoded,
		"server-tls-bootstrap": boolean, "shutdown-grace-period": duration, "shutdown-grace-period-for-critical-pods": duration,
		"single-process-oom-kill": boolean, "standalone-mode": boolean, "static-pods": object(nil), "static-pods-enabled": boolean,
		"system-reserved": resources, "topology-manager-policy": oneOf("none", "restricted", "best-effort", "single-numa-node"),
		"topology-manager-policy-options": object(nil), "topology-manager-scope": oneOf("container", "pod"),
	}
}

// object accepts a table with the keys of the model. A nil model accepts any table.
func object(model map[string]validator) validator {
	return func(value any) error {
		table, ok := value.(map[string]any)
		if !ok {
			return wrongType(value, "a map")
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			validate, known := model[key]
			switch {
			case model == nil:
			case !known:
				return refusal("unknown field `%s`, expected one of `%s`", key, strings.Join(slices.Sorted(maps.Keys(model)), "`, `"))
			default:
				if err := validate(table[key]); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// every accepts a table in which all keys and all values are valid.
func every(key, value validator) validator {
	return func(all any) error {
		table, ok := all.(map[string]any)
		if !ok {
			return wrongType(all, "a map")
		}
		for _, k := range slices.Sorted(maps.Keys(table)) {
			if err := key(k); err != nil {
				return err
			}
			if err := value(table[k]); err != nil {
				return err
			}
		}
		return nil
	}
}

func list(element validator) validator {
	return func(value any) error {
		all, ok := value.([]any)
		if !ok {
			return wrongType(value, "a sequence")
		}
		for _, v := range all {
			if err := element(v); err != nil {
				return err
			}
		}
		return nil
	}
}

// oneOrMore accepts a single valid element, or a list of valid elements, also an empty list.
func oneOrMore(element validator) validator {
	return func(value any) error {
		if _, ok := value.([]any); ok {
			return list(element)(value)
		}
		return element(value)
	}
}

func text(value any) error {
	if _, ok := value.(string); !ok {
		return wrongType(value, "a string")
	}
	return nil
}

// boolean accepts a boolean. It does not accept "true" and "false" as strings.
func boolean(value any) error {
	if _, ok := value.(bool); !ok {
		return wrongType(value, "a boolean")
	}
	return nil
}

// number accepts an integer from least to most. kind is the name of the type in error messages.
func number(kind string, least, most int64) validator {
	return func(value any) error {
		n, ok := value.(int64)
		switch {
		case !ok:
			return wrongType(value, kind)
		case n < least || n > most:
			return refusal("invalid value: integer `%d`, expected %s", n, kind)
		}
		return nil
	}
}

func oneOf(variants ...string) validator {
	return func(value any) error {
		s, ok := value.(string)
		switch {
		case !ok:
			return wrongType(value, "a string")
		case !slices.Contains(variants, s):
			return refusal("unknown variant `%s`, expected one of `%s`", s, strings.Join(variants, "`, `"))
		}
		return nil
	}
}

// orInText accepts the integers that validate accepts, also as strings.
func orInText(validate validator) validator {
	return func(value any) error {
		s, ok := value.(string)
		if !ok {
			return validate(value)
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return refusal("Unable to deserialize into IntegerPercent: Invalid value '%s'", s)
		}
		return validate(n)
	}
}

// validText accepts a string for which valid returns true. kind is the name of the type in error messages.
func validText(kind string, valid func(string) bool) validator {
	return func(value any) error {
		s, ok := value.(string)
		switch {
		case !ok:
			return wrongType(value, "a string")
		case !valid(s):
			return refusal("Unable to deserialize into %s: Invalid value '%s'", kind, s)
		}
		return nil
	}
}

// Formats of values that are strings.
var (
	hostNamePattern = regexp.MustCompile(`^[0-9a-z.-]{1,253}$`)
	taintPattern    = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?:[A-Za-z0-9]{1,253}$`)
)

func hostname(value any) error {
	return validText("ValidLinuxHostname", hostNamePattern.MatchString)(value)
}

// taint accepts the value and the effect of a taint, "value:Effect". The taint's key is the key of the table.
func taint(value any) error {
	return validText("KubernetesTaintValue", taintPattern.MatchString)(value)
}

func labelKey(value any) error {
	return validText("KubernetesLabelKey", func(s string) bool { return len(validation.IsQualifiedName(s)) == 0 })(value)
}

func labelValue(value any) error {
	return validText("KubernetesLabelValue", func(s string) bool { return len(validation.IsValidLabelValue(s)) == 0 })(value)
}

func quantity(value any) error { return validText("KubernetesQuantityValue", isQuantity)(value) }

// duration accepts a Go duration that is not negative: "1m30s".
func duration(value any) error {
	return validText("KubernetesDurationValue", func(s string) bool {
		d, err := time.ParseDuration(s)
		return err == nil && d >= 0
	})(value)
}

// signalLimit accepts the limit of an eviction signal: a quantity, or a percentage from 0% to 100%.
func signalLimit(value any) error {
	return validText("KubernetesThresholdValue", func(s string) bool {
		percent, ok := strings.CutSuffix(s, "%")
		if !ok {
			return isQuantity(s)
		}
		n, err := strconv.ParseFloat(percent, 64)
		return err == nil && n >= 0 && n <= 100
	})(value)
}

func address(value any) error {
	return validText("IpAddr", func(s string) bool {
		_, err := netip.ParseAddr(s)
		return err == nil
	})(value)
}

func encoded(value any) error {
	return validText("ValidBase64", func(s string) bool {
		_, err := base64.StdEncoding.DecodeString(s)
		return err == nil
	})(value)
}

func isQuantity(s string) bool {
	_, err := resource.ParseQuantity(s)
	return err == nil
}

// wrongType returns the error for a value of another type than want.
func wrongType(value any, want string) error {
	got := "map"
	switch v := value.(type) {
	case string:
		got = fmt.Sprintf("string %q", v)
	case int64:
		got = fmt.Sprintf("integer `%d`", v)
	case float64:
		got = fmt.Sprintf("floating point `%v`", v)
	case bool:
		got = fmt.Sprintf("boolean `%t`", v)
	case []any:
		got = "sequence"
	}
	return refusal("invalid type: %s, expected %s", got, want)
}

// refusal returns an error in the format of Bottlerocket's API.
func refusal(format string, args ...any) error {
	return fmt.Errorf("Json deserialize error: "+format, args...)
}
