package lab_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/instance"
	"github.com/joiner-sh/joiner/lab/kubelet"
)

// hostNetworkPods is the number of pods of each node that use the host's network: the VPC CNI and kube-proxy.
const hostNetworkPods = 2

// TestPodsPerNode fills nodes completely while the VPC CNI uses prefixes or custom networking. The Node must have the
// pod capacity that the plan used, and the CNI must have addresses for that number of pods.
func TestPodsPerNode(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	for _, tt := range []struct {
		name     string
		cni      map[string]string // environment of the VPC CNI
		setting  string            // setting of the controller
		class    string            // additional lines of the EC2NodeClass
		pods     int64             // pod capacity of an m5.large
		spare    bool              // whether the CNI has addresses for more pods
		prefixes int               // number of prefixes of the first interface at launch
	}{
		// The user sets maxPods to 110, as AWS's calculator does for types with fewer than 30 vCPUs. The CNI would have
		// addresses for 3*9*16 pods: interfaces, prefixes of each, addresses of a prefix.
		{"prefixes", map[string]string{instance.EnvPrefixes: "true"}, "RESERVED_ENIS=0",
			"kubelet: {maxPods: 110}\n  ipPrefixCount: 1\n  ", 110, true, 1},
		// Two of three interfaces are for pods: 2*9 pods, plus the two on the host's network.
		{"custom", map[string]string{instance.EnvCustomNetworking: "true"}, "RESERVED_ENIS=1", "", 20, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setCNI(t, l, tt.cni)
			restartController(t, l, tt.setting)
			t.Cleanup(func() { killController(l) }) // its settings are for this test only
			name := newTestNamespace(t, l)
			const nodes = 2
			want := int(nodes * (tt.pods - hostNetworkPods))
			apply(t, l,
				class(l, name, tt.class+"amiSelectorTerms: [{alias: al2023@latest}]"),
				pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
				deployment(name, "small", want, "10m", "16Mi", "test: "+name),
			)
			awaitRunning(t, l, name, want, 2*time.Minute)
			joined := joinedAsPlanned(t, l, name, tt.pods)
			if len(joined) != nodes {
				t.Errorf("%d nodes were launched, want %d full nodes", len(joined), nodes)
			}
			for _, j := range joined {
				addresses := j.kubelet.PodAddresses(tt.cni)
				if need := tt.pods - hostNetworkPods; addresses < need || addresses > need && !tt.spare {
					t.Errorf("%s: the CNI has %d addresses for pods, want %d, or more in the case prefixes", j.node.Name, addresses, need)
				}
				if got := len(j.instance.Interfaces[0].Prefixes); got != tt.prefixes {
					t.Errorf("%s: launched with the prefixes %v, want %d", j.instance.ID, j.instance.Interfaces[0].Prefixes, tt.prefixes)
				}
			}
			cleanUp(t, l, name)
		})
	}
}

// TestIPv6 launches nodes of every Linux family in an IPv6 cluster, and fills them.
func TestIPv6(t *testing.T) {
	l := parallelLab(t, lab.Options{Cluster: "six", IPv6: true})
	restartController(t, l)
	const pods = 29 // pod capacity of an m5.large
	for name, spec := range map[string]string{
		"al2023":       "ipPrefixCount: 1\n  metadataOptions: {httpProtocolIPv6: enabled}\n  amiSelectorTerms: [{alias: al2023@latest}]",
		"al2":          "amiFamily: AL2\n  amiSelectorTerms: [{id: " + l.AL2Image + "}]",
		"bottlerocket": "amiSelectorTerms: [{alias: bottlerocket@latest}]",
	} {
		apply(t, l,
			fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", name),
			class(l, name, spec),
			pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
			deployment(name, "small", pods-hostNetworkPods, "10m", "16Mi", "test: "+name),
		)
	}
	for name, prefixes := range map[string]int{"al2023": 1, "al2": 0, "bottlerocket": 0} {
		awaitRunning(t, l, name, pods-hostNetworkPods, 2*time.Minute)
		joined := joinedAsPlanned(t, l, name, pods)
		if len(joined) != 1 {
			t.Errorf("%s: %d nodes were launched, want one full node", name, len(joined))
		}
		for _, j := range joined {
			j.checkIPv6(t, l, prefixes)
			if metadata, want := j.instance.Metadata.IPv6, map[string]string{"al2023": "enabled", "al2": "disabled",
				"bottlerocket": "disabled"}[name]; metadata != want {
				t.Errorf("%s: the IPv6 address of the metadata service is %s, want %s", name, metadata, want)
			}
		}
		if t.Failed() {
			t.Log(l.Evidence(t.Context()))
		}
	}
}

// checkIPv6 checks the IPv6 addresses of an instance, its Node, its DNS server and its pods. prefixes is the wanted
// number of prefixes of the instance.
func (j joinedNode) checkIPv6(t *testing.T, l *lab.Lab, prefixes int) {
	t.Helper()
	first := j.instance.Interfaces[0]
	if len(first.IPv6) != 1 || !first.PrimaryIPv6 || len(first.Prefixes) != prefixes {
		t.Errorf("%s was launched with the IPv6 addresses %v (primary: %t) and the prefixes %v, want one primary address and %d prefixes",
			j.instance.ID, first.IPv6, first.PrimaryIPv6, first.Prefixes, prefixes)
	}
	for _, p := range first.Prefixes {
		if block, err := netip.ParsePrefix(p); err != nil || block.Bits() != 80 {
			t.Errorf("%s was launched with the prefix %s, want a /80", j.instance.ID, p)
		}
	}
	for _, a := range j.node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && a.Address != j.instance.IPv6 {
			t.Errorf("the InternalIP of %s is %s, want %s", j.node.Name, a.Address, j.instance.IPv6)
		}
	}
	if !slices.Equal(j.kubelet.ClusterDNS, []string{l.ClusterDNS()}) || !strings.Contains(l.ClusterDNS(), ":") {
		t.Errorf("%s: the DNS server of pods is %v, want %s", j.node.Name, j.kubelet.ClusterDNS, l.ClusterDNS())
	}
	pods, err := l.Kube.CoreV1().Pods(j.claim.Labels[karpenterv1.LabelNodePool]).List(t.Context(),
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + j.node.Name})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if a, err := netip.ParseAddr(p.Status.PodIP); err != nil || !a.Is6() || p.Status.HostIP != j.instance.IPv6 {
			t.Errorf("pod %s has the address %s on host %s, want IPv6 and %s", p.Name, p.Status.PodIP, p.Status.HostIP, j.instance.IPv6)
		}
	}
}

type joinedNode struct {
	claim    karpenterv1.NodeClaim
	node     corev1.Node
	instance world.Instance
	kubelet  kubelet.Settings
}

// joinedAsPlanned returns the nodes of a pool. It checks that each node has the planned resources: wantPods pods, the
// same cpu, from 100 % to 105 % of the planned memory, and at least 99 % of the planned disk.
func joinedAsPlanned(t *testing.T, l *lab.Lab, pool string, wantPods int64) []joinedNode {
	t.Helper()
	claims, _ := claimsOf(t, l, pool)
	instances := map[string]world.Instance{}
	for _, i := range instancesOf(l, pool) {
		instances["aws:///"+i.Zone+"/"+i.ID] = i
	}
	var out []joinedNode
	for _, c := range claims {
		j := joinedNode{claim: c, instance: instances[c.Status.ProviderID]}
		if err := l.Client.Get(t.Context(), client.ObjectKey{Name: c.Status.NodeName}, &j.node); err != nil {
			t.Fatalf("node of %s: %v", c.Name, err)
		}
		var started bool
		if j.kubelet, started = l.Kubelet(j.instance.ID); !started {
			t.Fatalf("no kubelet started on %s", j.instance.ID)
		}
		planned, actual := c.Status.Allocatable, j.node.Status.Allocatable
		if planned.Pods().Value() != wantPods || actual.Pods().Value() != wantPods {
			t.Errorf("%s: planned %s pods, the Node has %s, want %d", c.Name, planned.Pods(), actual.Pods(), wantPods)
		}
		if planned.Cpu().Cmp(*actual.Cpu()) != 0 {
			t.Errorf("%s: planned %s cpu, the Node has %s, want the same", c.Name, planned.Cpu(), actual.Cpu())
		}
		if p, a := planned.Memory(), actual.Memory(); a.Cmp(*p) < 0 || a.Value() > p.Value()*21/20 {
			t.Errorf("%s: planned %s of memory, the Node has %s, want as much or up to a twentieth more", c.Name, p, a)
		}
		if p, a := planned.StorageEphemeral(), actual.StorageEphemeral(); a.Value() < p.Value()*99/100 { // the file system has an overhead
			t.Errorf("%s: planned %s of disk, the Node has %s, want at most a hundredth less", c.Name, p, a)
		}
		out = append(out, j)
	}
	return out
}

// setCNI sets the environment of the VPC CNI until the end of the test.
func setCNI(t *testing.T, l *lab.Lab, environment map[string]string) {
	t.Helper()
	set := func(env map[string]string) error {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(env)) {
			list = append(list, fmt.Sprintf(`{"name": %q, "value": %q}`, name, env[name]))
		}
		patch := fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [%s]}]`, strings.Join(list, ","))
		_, err := l.Kube.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(context.Background(), "aws-node",
			types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	if err := set(environment); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(nil); err != nil {
			t.Error(err)
		}
	})
}
