package instance

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// systemModel returns the groups below [settings] that the images know, except Kubernetes.
// Source: settings-extensions of bottlerocket-settings-sdk, one crate for each group.
func systemModel() map[string]validator {
	i32, u32 := number("i32", -1<<31, 1<<31-1), number("u32", 0, 1<<32-1)
	mode, identifier := oneOf("off", "once", "always"), validText("Identifier", identifierPattern.MatchString)
	shared := map[string]validator{"source": link, "user-data": encoded, "command": list(text)} // by both kinds of containers
	return map[string]validator{
		"autoscaling": object(map[string]validator{"should-wait": boolean}),
		"aws":         object(map[string]validator{"region": text, "config": encoded, "credentials": encoded, "profile": text}),
		"boot": object(map[string]validator{
			"reboot-to-reconcile": boolean,
			"kernel-parameters":   parameters,
			"init-parameters":     parameters,
		}),
		"cloudformation": object(map[string]validator{"should-signal": boolean, "stack-name": text, "logical-resource-id": text}),
		"bootstrap-commands": every(identifier, object(map[string]validator{
			"commands": list(apiclient), "mode": mode, "essential": boolean,
		})),
		"bootstrap-containers": every(identifier, object(merge(shared, map[string]validator{"mode": mode, "essential": boolean}))),
		"host-containers":      every(identifier, object(merge(shared, map[string]validator{"enabled": boolean, "superpowered": boolean}))),
		"container-registry": object(map[string]validator{
			"mirrors": tableOrList(every(text, list(link)), object(map[string]validator{
				"registry": text, "endpoint": list(link), "capabilities": list(oneOf("pull", "resolve", "push")),
			})),
			"credentials": list(credential), "creds": list(credential),
		}),
		"container-runtime": object(map[string]validator{
			"max-container-log-line-size": i32, "max-concurrent-downloads": i32, "max-concurrent-unpacks": i32,
			"enable-unprivileged-ports": boolean, "enable-unprivileged-icmp": boolean, "snapshotter": oneOf("overlayfs", "soci"),
			"concurrent-download-chunk-size": anyValue, "concurrent-layer-fetch-buffer": anyValue,
			"log-level": oneOf("trace", "debug", "info", "warn", "error", "fatal", "panic"),
		}),
		"dns": object(map[string]validator{"name-servers": list(address), "search-list": list(hostname)}),
		"kernel": object(map[string]validator{
			"lockdown": oneOf("none", "integrity", "confidentiality"), "sysctl": every(validText("SysctlKey", sysctlPattern.MatchString), text),
			"modules": every(validText("KmodKey", modulePattern.MatchString),
				object(map[string]validator{"allowed": boolean, "autoload": boolean})),
			"hugepages": object(nil), "drivers": object(nil),
		}),
		"metrics": object(map[string]validator{"metrics-url": link, "send-metrics": boolean, "service-checks": list(text)}),
		"motd":    text,
		"network": object(map[string]validator{
			"hostname": hostname, "hosts": list(hostsLine), "https-proxy": link, "no-proxy": list(text), "disable-ipv6": list(text),
		}),
		"ntp": object(map[string]validator{"time-servers": list(link), "options": list(text), "logging": list(text)}),
		"nvidia-container-runtime": object(map[string]validator{
			"visible-devices-as-volume-mounts": boolean, "visible-devices-envvar-when-unprivileged": boolean,
		}),
		"oci-defaults": object(map[string]validator{
			"capabilities":    every(text, boolean),
			"resource-limits": every(text, object(map[string]validator{"hard-limit": ociLimit, "soft-limit": ociLimit})),
		}),
		"oci-hooks": object(map[string]validator{"log4j-hotpatch-enabled": boolean}),
		"pki":       every(identifier, object(map[string]validator{"data": encoded, "trusted": boolean})),
		"updates": object(map[string]validator{
			"metadata-base-url": link, "targets-base-url": link, "seed": u32, "ignore-waves": boolean,
			"version-lock": validText("FriendlyVersion", versionPattern.MatchString),
		}),
	}
}

// Formats of values and keys that are strings.
var (
	identifierPattern = regexp.MustCompile(`^[A-Za-z0-9-]{0,76}$`)
	sysctlPattern     = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9./_-]{0,127}$`)
	modulePattern     = regexp.MustCompile(`^[a-zA-Z0-9_-]{0,56}$`)
	versionPattern    = regexp.MustCompile(`^(latest|v?\d+\.\d+\.\d+([-+].+)?)$`)
	bootKeyPattern    = regexp.MustCompile(`^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*$`)
)

// parameters accepts parameters of the kernel or of init: a table of lists. Each value in a list has only printable
// ASCII characters and at most one kind of quotation mark.
var parameters = every(validText("BootConfigKey", bootKeyPattern.MatchString), list(validText("BootConfigValue", func(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) &&
		(!strings.Contains(s, "'") || !strings.Contains(s, `"`))
})))

var credential = object(map[string]validator{"registry": text, "username": text, "password": text, "auth": encoded, "identitytoken": text})

func anyValue(any) error { return nil }

func merge(a, b map[string]validator) map[string]validator {
	out := map[string]validator{}
	for _, model := range []map[string]validator{a, b} {
		for key, validate := range model {
			out[key] = validate
		}
	}
	return out
}

// tableOrList accepts a table that table accepts, and a list whose elements element accepts.
func tableOrList(table, element validator) validator {
	return func(value any) error {
		if _, ok := value.(map[string]any); ok {
			return table(value)
		}
		return list(element)(value)
	}
}

// link accepts a URL, also without a scheme.
func link(value any) error {
	return validText("Url", func(s string) bool {
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

// apiclient accepts a command as a list of words, of which the first is apiclient.
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

// hostsLine accepts a line of /etc/hosts: a list of an address and the list of its host names.
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
