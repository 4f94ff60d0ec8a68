// Package bootstrap generates the user data with which an instance joins its cluster.
//
// In: the AMI family, facts about the cluster, kubelet settings, labels, taints, and the user's own user data.
// Out: the bytes that the instance reads at its first boot.
// Never: base64 (package ec2 encodes the bytes), the choice of an image, or a Kubernetes object.
package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Node is the input of UserData. Two equal Nodes give the same bytes.
type Node struct {
	Family  string  // one of catalog's AMI families
	Cluster Cluster // the cluster that the node joins
	Kubelet Kubelet // settings of the EC2NodeClass

	// Labels are the labels of the node. UserData leaves out those that a kubelet is not allowed to set on its own
	// node; the controller adds them when the node registers.
	Labels requirements.Labels
	// Taints are the taints of the NodeClaim, including startup taints. UserData adds the unregistered taint.
	Taints []requirements.Taint

	UserData      string // the user's own user data, from spec.userData
	InstanceStore string // catalog.RAID0 or empty
	// ImageName is the name of the image, for settings that depend on its version (Bottlerocket); empty if unknown.
	ImageName string
}

// Cluster holds the facts that a kubelet needs to find its cluster.
type Cluster struct {
	Name        string // name of the EKS cluster
	Endpoint    string // "https://…"
	CA          string // certificate authority: base64 of PEM
	ServiceCIDR string // required by AL2023
	DNS         string // address of the cluster's DNS service; empty if there is none
	IPv6        bool   // pods and services have IPv6 addresses
}

// Kubelet holds the user's kubelet settings, as text where the kubelet expects text.
type Kubelet struct {
	ClusterDNS                  []string          // addresses of DNS servers; nil: Cluster.DNS
	MaxPods                     *int64            // nil: the default of the AMI family
	PodsPerCore                 *int64            // nil: no limit by cores
	SystemReserved              map[string]string // "cpu": "100m"
	KubeReserved                map[string]string // "cpu": "100m"
	EvictionHard                map[string]string // "memory.available": "5%"
	EvictionSoft                map[string]string // "memory.available": "10%"
	EvictionSoftGracePeriod     map[string]string // "memory.available": "1m30s"
	EvictionMaxPodGracePeriod   *int64            // seconds
	ImageGCHighThresholdPercent *int64            // nil: the kubelet's default
	ImageGCLowThresholdPercent  *int64            // nil: the kubelet's default
	CPUCFSQuota                 *bool             // nil: the kubelet's default
	// More are further fields of KubeletConfiguration by name, each value as JSON on one line. Only AL2023 supports
	// them.
	More map[string]string
}

// Unregistered returns the taint that nodes have until the controller has registered them.
func Unregistered() requirements.Taint {
	return requirements.Taint{Key: "karpenter.sh/unregistered", Effect: requirements.NoExecute}
}

// labelNoSync is a label that prevents the controller from changing taints at registration. The user data sets all
// taints of the node, so a taint that is missing at registration was removed on purpose.
const labelNoSync = "karpenter.sh/do-not-sync-taints"

// MaxBytes is EC2's limit for user data, in bytes before base64.
const MaxBytes = 16384

// MaxInput is the maximum length of the user's own user data, in bytes. It exceeds MaxBytes because UserData may
// shorten the user's data: it removes comments from TOML, and carriage returns.
const MaxInput = 4 * MaxBytes

// ErrTooLong is the error of user data that exceeds MaxBytes.
var ErrTooLong = errors.New("user data is too long")

// UserData returns the user data of the node. Every error requires a change by the user: to the EC2NodeClass, or to the
// controller's setting for a missing fact about the cluster.
func UserData(n Node) ([]byte, error) {
	if len(n.UserData) > MaxInput {
		return nil,
			fmt.Errorf("write user data for %s: %w: spec.userData alone has %d bytes, EC2 takes %d: shorten spec.userData",
				n.Family, ErrTooLong, len(n.UserData), MaxBytes)
	}
	text, err := n.generate()
	if err != nil {
		return nil, fmt.Errorf("write user data for %s: %w", n.Family, clipped{err})
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("write user data for %s: %w: %d bytes, EC2 takes %d: shorten spec.userData", n.Family,
			ErrTooLong, len(text), MaxBytes)
	}
	return []byte(text), nil
}

// generate returns the user data in the format of the AMI family. It does not check the length.
func (n Node) generate() (string, error) {
	if n.Family == catalog.Custom {
		return n.UserData, nil
	}
	if err := n.check(); err != nil {
		return "", err
	}
	switch n.Family {
	case catalog.AL2023:
		return n.al2023()
	case catalog.AL2:
		return n.al2()
	case catalog.Bottlerocket:
		return n.bottlerocket()
	case catalog.Windows2019, catalog.Windows2022, catalog.Windows2025:
		return n.windows()
	}
	return "", fmt.Errorf("unknown AMI family %q: use AL2023, AL2, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom", n.Family)
}

// check returns an error for an unknown fact about the cluster, and for a value that the format of the AMI family
// cannot hold.
func (n Node) check() error {
	c := n.Cluster
	for _, f := range []struct{ name, value string }{{"name", c.Name}, {"endpoint", c.Endpoint}, {"certificate authority", c.CA}} {
		if f.value == "" {
			return fmt.Errorf("the cluster's %s is not known", f.name)
		}
		if strings.ContainsAny(f.value, " \t\r\n'\"\\") {
			return fmt.Errorf("the cluster's %s has an invalid character: %q", f.name, f.value)
		}
	}
	for _, t := range n.Taints {
		if t.Key == "" || strings.ContainsAny(t.String(), " \t\r\n'\",\\") {
			return fmt.Errorf("taint %q cannot be written as a flag", t)
		}
	}
	for k, v := range n.Labels {
		if k == "" || strings.ContainsAny(k+v, " \t\r\n'\",\\") {
			return fmt.Errorf("label %q=%q cannot be written as a flag", k, v)
		}
	}
	if len(n.Kubelet.ClusterDNS) > 1 && n.Family != catalog.AL2023 {
		return fmt.Errorf("spec.kubelet.clusterDNS: %s takes one address, there are %d", n.Family, len(n.Kubelet.ClusterDNS))
	}
	if len(n.Kubelet.More) > 0 && n.Family != catalog.AL2023 {
		return fmt.Errorf("spec.kubelet: %s does not support %s", n.Family, strings.Join(slices.Sorted(maps.Keys(n.Kubelet.More)), ", "))
	}
	return n.Kubelet.check()
}

// check returns an error for a setting that cannot be written as a flag or as a line of YAML.
func (k Kubelet) check() error {
	for _, m := range []map[string]string{k.SystemReserved, k.KubeReserved, k.EvictionHard, k.EvictionSoft, k.EvictionSoftGracePeriod} {
		for name, value := range m {
			if strings.ContainsAny(name+value, " \t\r\n'\",\\") {
				return fmt.Errorf("kubelet setting %q: %q cannot be written as a flag", name, value)
			}
		}
	}
	for name, value := range k.More {
		if !json.Valid([]byte(value)) || strings.Contains(value, "\n") || !isPlain(name) {
			return fmt.Errorf("spec.kubelet.%s: %s is not JSON on one line", name, value)
		}
	}
	return nil
}

// dns returns the addresses of the DNS servers for pods, none if they are unknown.
func (n Node) dns() []string {
	if len(n.Kubelet.ClusterDNS) > 0 {
		return n.Kubelet.ClusterDNS
	}
	if n.Cluster.DNS != "" {
		return []string{n.Cluster.DNS}
	}
	return nil
}

// taints returns the taints to register with. It adds the unregistered taint at the end if it is missing.
func (n Node) taints() []requirements.Taint {
	if slices.Contains(n.Taints, Unregistered()) {
		return n.Taints
	}
	return append(slices.Clone(n.Taints), Unregistered())
}

// labels returns the labels that the kubelet sets on its own node, including labelNoSync.
func (n Node) labels() requirements.Labels {
	out := requirements.Labels{labelNoSync: "true"}
	for k, v := range n.Labels {
		if !isReservedLabel(k) {
			out[k] = v
		}
	}
	return out
}

// isReservedLabel reports whether the controller must set the label instead of the kubelet: its domain is
// kubernetes.io, k8s.io or a subdomain of these. The NodeRestriction admission plugin does not let a kubelet set most
// of these labels.
func isReservedLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	for _, d := range []string{"kubernetes.io", "k8s.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// joinPairs formats a map as "a=b,c=d", sorted by key, with sep between key and value.
func joinPairs(m map[string]string, sep string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+sep+m[k])
	}
	return strings.Join(out, ",")
}
