package instance

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// systemModel returns the groups below [settings] that the images know, except Kubernetes.
// Source: settings-extensions of bottlerocket-settings-sdk, one crate for each group.
func systemModel() map[string]reading {
	i32, u32 := number("i32", -1<<31, 1<<31-1), number("u32", 0, 1<<32-1)
	mode, named := oneOf("off", "once", "always"), that("Identifier", identifierForms.MatchString)
	image := map[string]reading{"source": link, "user-data": encoded, "command": list(text)}
	return map[string]reading{
		"autoscaling": object(map[string]reading{"should-wait": boolean}),
		"aws":         object(map[string]reading{"region": text, "config": encoded, "credentials": encoded, "profile": text}),
		"boot": object(map[string]reading{
			"reboot-to-reconcile": boolean,
			"kernel-parameters":   parameters,
			"init-parameters":     parameters,
		}),
		"cloudformation": object(map[string]reading{"should-signal": boolean, "stack-name": text, "logical-resource-id": text}),
		"bootstrap-commands": every(named, object(map[string]reading{
			"commands": list(apiclient), "mode": mode, "essential": boolean,
		})),
		"bootstrap-containers": every(named, object(with(image, map[string]reading{"mode": mode, "essential": boolean}))),
		"host-containers":      every(named, object(with(image, map[string]reading{"enabled": boolean, "superpowered": boolean}))),
		"container-registry": object(map[string]reading{
			"mirrors": tableOr(every(text, list(link)), object(map[string]reading{
				"registry": text, "endpoint": list(link), "capabilities": list(oneOf("pull", "resolve", "push")),
			})),
			"credentials": list(credential), "creds": list(credential),
		}),
		"container-runtime": object(map[string]reading{
			"max-container-log-line-size": i32, "max-concurrent-downloads": i32, "max-concurrent-unpacks": i32,
			"enable-unprivileged-ports": boolean, "enable-unprivileged-icmp": boolean, "snapshotter": oneOf("overlayfs", "soci"),
			"concurrent-download-chunk-size": anyValue, "concurrent-layer-fetch-buffer": anyValue,
			"log-level": oneOf("trace", "debug", "info", "warn", "error", "fatal", "panic"),
		}),
		"dns": object(map[string]reading{"name-servers": list(address), "search-list": list(hostname)}),
		"kernel": object(map[string]reading{
			"lockdown": oneOf("none", "integrity", "confidentiality"), "sysctl": every(that("SysctlKey", sysctlForms.MatchString), text),
			"modules":   every(that("KmodKey", moduleForms.MatchString), object(map[string]reading{"allowed": boolean, "autoload": boolean})),
			"hugepages": object(nil), "drivers": object(nil),
		}),
		"metrics": object(map[string]reading{"metrics-url": link, "send-metrics": boolean, "service-checks": list(text)}),
		"motd":    text,
		"network": object(map[string]reading{
			"hostname": hostname, "hosts": list(hostsLine), "https-proxy": link, "no-proxy": list(text), "disable-ipv6": list(text),
		}),
		"ntp": object(map[string]reading{"time-servers": list(link), "options": list(text), "logging": list(text)}),
		"nvidia-container-runtime": object(map[string]reading{
			"visible-devices-as-volume-mounts": boolean, "visible-devices-envvar-when-unprivileged": boolean,
		}),
		"oci-defaults": object(map[string]reading{
			"capabilities": every(text, boolean), "resource-limits": every(text,
				object(map[string]reading{"hard-limit": ociLimit, "soft-limit": ociLimit})),
		}),
		"oci-hooks": object(map[string]reading{"log4j-hotpatch-enabled": boolean}),
		"pki":       every(named, object(map[string]reading{"data": encoded, "trusted": boolean})),
		"updates": object(map[string]reading{
			"metadata-base-url": link, "targets-base-url": link, "seed": u32, "version-lock": that("FriendlyVersion", versionForms.MatchString),
			"ignore-waves": boolean,
		}),
	}
}

var (
	identifierForms = regexp.MustCompile(`^[A-Za-z0-9-]{0,76}$`)
	sysctlForms     = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9./_-]{0,127}$`)
	moduleForms     = regexp.MustCompile(`^[a-zA-Z0-9_-]{0,56}$`)
	versionForms    = regexp.MustCompile(`^(latest|v?\d+\.\d+\.\d+([-+].+)?)$`)
	bootForms       = regexp.MustCompile(`^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*$`)
)

// parameters accepts kernel parameters: names with lists of values.
var parameters = every(that("BootConfigKey", bootForms.MatchString), list(that("BootConfigValue", func(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) &&
		(!strings.Contains(s, "'") || !strings.Contains(s, `"`))
})))

// credential accepts a credential of a container registry.
var credential = object(map[string]reading{"registry": text, "username": text, "password": text, "auth": encoded, "identitytoken": text})

func anyValue(any) error { return nil }

// with returns a model with the entries of both models.
func with(a, b map[string]reading) map[string]reading {
	out := map[string]reading{}
	for _, model := range []map[string]reading{a, b} {
		for key, read := range model {
			out[key] = read
		}
	}
	return out
}

// tableOr accepts a table, or a list of elements.
func tableOr(table, element reading) reading {
	return func(value any) error {
		if _, ok := value.(map[string]any); ok {
			return table(value)
		}
		return list(element)(value)
	}
}

// link accepts a URL, also without a scheme.
func link(value any) error {
	return that("Url", func(s string) bool {
		if strings.ContainsAny(strings.TrimSpace(s), " \t\r\n") || strings.TrimSpace(s) == "" {
			return false
		}
		if !strings.Contains(s, "://") {
			s = "http://" + s
		}
		_, err := url.Parse(strings.TrimSpace(s))
		return err == nil
	})(value)
}

// apiclient accepts a command whose first word is apiclient.
func apiclient(value any) error {
	if err := list(text)(value); err != nil {
		return err
	}
	words, _ := value.([]any)
	if len(words) == 0 || words[0] != "apiclient" {
		return refusal("Unable to deserialize into ApiclientCommand: Invalid command")
	}
	return nil
}

// hostsLine accepts a pair of an address and its host names.
func hostsLine(value any) error {
	pair, ok := value.([]any)
	if !ok || len(pair) != 2 {
		return wrongType(value, "a tuple of size 2")
	}
	return errors.Join(address(pair[0]), list(hostname)(pair[1]))
}

// ociLimit accepts a resource limit of the OCI runtime: "unlimited" or a number, -1 for no limit.
func ociLimit(value any) error {
	if value == "unlimited" {
		return nil
	}
	return number("i64", -1, 1<<62)(value)
}
