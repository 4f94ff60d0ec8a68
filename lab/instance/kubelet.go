package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"

	"github.com/joiner-sh/joiner/lab/kubelet"
)

// startKubelet parses the flags and the configuration with the kubelet's own code, and returns the settings of the
// kubelet. It returns the error with which a real kubelet would end.
func (b *boot) startKubelet() (settings *kubelet.Settings, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			settings, err = nil, kubeletPanic{fmt.Sprint(cause)}
		}
	}()
	config, err := b.kubeletConfig()
	if err != nil {
		return nil, err
	}
	flags := options.NewKubeletFlags()
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	flags.AddFlags(set)
	options.AddKubeletConfigFlags(set, config) // a flag overrides the file
	if err := set.Parse(b.kubelet.args); err != nil {
		return nil, fmt.Errorf("failed to parse kubelet flag: %w", err)
	}
	if stray := set.Args(); len(stray) > 0 {
		return nil, fmt.Errorf("unknown command %+s", stray[0])
	}
	if err := options.ValidateKubeletFlags(flags); err != nil {
		return nil, fmt.Errorf("failed to validate kubelet flags: %w", err)
	}
	config.FailCgroupV1 = false // the check reads the cgroup version of this computer, not of the instance
	if err := validation.ValidateKubeletConfiguration(config, utilfeature.DefaultMutableFeatureGate); err != nil {
		return nil, fmt.Errorf("failed to validate kubelet configuration, error: %w, path: %s", err, "/etc/kubernetes/kubelet/config.json")
	}
	if b.hasSwap && config.FailSwapOn {
		return nil, errSwap
	}
	capacity, allocatable, err := b.resources(config)
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(flags.HostnameOverride)
	if name == "" {
		name = b.PrivateDNSName
	}
	return &kubelet.Settings{
		NodeName: name, ProviderID: config.ProviderID, IP: flags.NodeIP, ClusterDNS: config.ClusterDNS, PodAddresses: b.podAddresses,
		Labels: flags.NodeLabels, Taints: taints(config), ExternalCloud: flags.CloudProvider == "external",
		Capacity: capacity, Allocatable: allocatable,
		Arch: b.goArch(), OSImage: b.Image.prettyName(), KernelVersion: b.Image.kernelVersion() + "." + b.Image.Architecture,
		Version: "v" + b.Image.Version + ".3-eks-3025e55",
		Server:  b.kubelet.server, CA: b.kubelet.ca, Proxy: b.kubelet.proxy,
	}, nil
}

// kubeletPanic has the value of a panic in the kubelet's own code, for example because of an unknown feature gate.
type kubeletPanic struct{ text string }

func (p kubeletPanic) Error() string { return p.text }

// errSwap is the kubelet's error on an instance with swap. Source: pkg/kubelet/cm/container_manager_linux.go.
var errSwap = errors.New("failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false: " +
	"[Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority /swapfile                               file\t\t2097148\t\t0\t\t-2]")

// kubeletConfig returns the configuration in the kubelet's file. Without a file, it returns the defaults.
func (b *boot) kubeletConfig() (*kubeletconfig.KubeletConfiguration, error) {
	if len(b.kubelet.config) == 0 {
		return options.NewKubeletConfiguration()
	}
	_, codecs, err := kubeletscheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		return nil, fmt.Errorf("read kubelet configuration: %w", err)
	}
	config, err := codec.DecodeKubeletConfiguration(context.Background(), codecs, b.kubelet.config)
	if err != nil {
		return nil, fmt.Errorf("failed to load kubelet config file, path: /etc/kubernetes/kubelet/config.json, error: %w", err)
	}
	return config, nil
}

func taints(config *kubeletconfig.KubeletConfiguration) []corev1.Taint {
	return append([]corev1.Taint{}, config.RegisterWithTaints...)
}

// goArch returns Go's name of the architecture, which is the name that the kubelet reports.
func (b *boot) goArch() string {
	if b.Image.Architecture == "arm64" {
		return "arm64"
	}
	return "amd64"
}

// splitWords splits a line as systemd splits the value of $VARIABLE in ExecStart: at white space outside of quotes. It
// removes the quotes.
// Source: systemd.service(5), "Command lines".
func splitWords(line string) []string {
	var out []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	escaped := false
	for _, c := range line {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case strings.ContainsRune(" \t\r\n", c):
			if inWord {
				out = append(out, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		out = append(out, word.String())
	}
	return out
}
