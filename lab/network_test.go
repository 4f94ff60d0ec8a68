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

// onHost is how many pods of a node are on the host's network: the VPC CNI and kube-proxy.
const onHost = 2

// TestPodsPerNode fills nodes to the last pod where the VPC CNI does not give each pod a secondary address of any
// interface: the Node has the capacity that the plan used, and the CNI has that number of addresses.
func TestPodsPerNode(t *testing.T) {
	l := beside(t, lab.Options{})
	for _, tt := range []struct {
		name     string
		cni      map[string]string // environment of the VPC CNI
		setting  string            // of the controller
		class    string            // more of the EC2NodeClass
		pods     int64             // of a m5.large
		spare    bool              // the CNI has addresses for more
		prefixes int               // that its first interface is launched with
	}{
		// The user says how many, as AWS's calculator does for types of less than 30 vCPUs; the CNI could do with 3*9*16.
		{"prefixes", map[string]string{instance.EnvPrefixes: "true"}, "RESERVED_ENIS=0",
			"kubelet: {maxPods: 110}\n  ipPrefixCount: 1\n  ", 110, true, 1},
		// Two of three interfaces carry pods: 2*9 beside those of the host.
		{"custom", map[string]string{instance.EnvCustom: "true"}, "RESERVED_ENIS=1", "", 20, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setCNI(t, l, tt.cni)
			restart(t, l, tt.setting)
			t.Cleanup(func() { killController(l) }) // its settings are this test's alone
			name := namespaced(t, l)
			const nodes = 2
			want := int(nodes * (tt.pods - onHost))
			apply(t, l,
				class(l, name, tt.class+"amiSelectorTerms: [{alias: al2023@latest}]"),
				pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
				deployment(name, "small", want, "10m", "16Mi", "test: "+name),
			)
			allRun(t, l, name, want, 2*time.Minute)
			joined := joinedAsPlanned(t, l, name, tt.pods)
			if len(joined) != nodes {
				t.Errorf("%d nodes were launched, want %d full ones", len(joined), nodes)
			}
			for _, j := range joined {
				addresses := j.kubelet.PodAddresses(tt.cni)
				if need := tt.pods - onHost; addresses < need || addresses > need && !tt.spare {
					t.Errorf("%s: the CNI has %d addresses for %d pods", j.node.Name, addresses, need)
				}
				if got := len(j.instance.Interfaces[0].Prefixes); got != tt.prefixes {
					t.Errorf("%s: it was launched with the prefixes %v, want %d", j.instance.ID, j.instance.Interfaces[0].Prefixes, tt.prefixes)
				}
			}
			nothingLeft(t, l, name)
		})
	}
}

// TestIPv6 has nodes of every Linux family join a cluster of IPv6, and fills them.
func TestIPv6(t *testing.T) {
	l := beside(t, lab.Options{Cluster: "six", IPv6: true})
	restart(t, l)
	const pods = 29
	for name, more := range map[string]string{
		"al2023":       "ipPrefixCount: 1\n  metadataOptions: {httpProtocolIPv6: enabled}\n  amiSelectorTerms: [{alias: al2023@latest}]",
		"al2":          "amiFamily: AL2\n  amiSelectorTerms: [{id: " + l.AL2Image + "}]",
		"bottlerocket": "amiSelectorTerms: [{alias: bottlerocket@latest}]",
	} {
		apply(t, l,
			fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", name),
			class(l, name, more),
			pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
			deployment(name, "small", pods-onHost, "10m", "16Mi", "test: "+name),
		)
	}
	for name, prefixes := range map[string]int{"al2023": 1, "al2": 0, "bottlerocket": 0} {
		allRun(t, l, name, pods-onHost, 2*time.Minute)
		joined := joinedAsPlanned(t, l, name, pods)
		if len(joined) != 1 {
			t.Errorf("%s: %d nodes were launched, want a full one", name, len(joined))
		}
		for _, j := range joined {
			j.isOfIPv6(t, l, prefixes)
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

// isOfIPv6 demands that a node has IPv6 addresses wherever the cluster has.
func (j joined) isOfIPv6(t *testing.T, l *lab.Lab, prefixes int) {
	t.Helper()
	first := j.instance.Interfaces[0]
	if len(first.IPv6) != 1 || !first.PrimaryIPv6 || len(first.Prefixes) != prefixes {
		t.Errorf("%s was launched with the IPv6 addresses %v (primary: %t) and the prefixes %v, want one that stays and %d prefixes",
			j.instance.ID, first.IPv6, first.PrimaryIPv6, first.Prefixes, prefixes)
	}
	for _, p := range first.Prefixes {
		if block, err := netip.ParsePrefix(p); err != nil || block.Bits() != 80 {
			t.Errorf("%s was launched with the prefix %s, want a /80", j.instance.ID, p)
		}
	}
	for _, a := range j.node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && a.Address != j.instance.IPv6 {
			t.Errorf("%s: its address is %s, want %s", j.node.Name, a.Address, j.instance.IPv6)
		}
	}
	if !slices.Equal(j.kubelet.ClusterDNS, []string{l.ClusterDNS()}) || !strings.Contains(l.ClusterDNS(), ":") {
		t.Errorf("%s: pods ask %v for names, want %s", j.node.Name, j.kubelet.ClusterDNS, l.ClusterDNS())
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

// joined is a node from all sides.
type joined struct {
	claim    karpenterv1.NodeClaim
	node     corev1.Node
	instance world.Instance
	kubelet  kubelet.Settings
}

// joinedAsPlanned returns the nodes of a pool. Each must have what its plan promised: the same pods and cpu, not less memory and
// not much more, and the disk.
func joinedAsPlanned(t *testing.T, l *lab.Lab, pool string, pods int64) []joined {
	t.Helper()
	claims, _ := claimsOf(t, l, pool)
	instances := map[string]world.Instance{}
	for _, i := range instancesOf(l, pool) {
		instances["aws:///"+i.Zone+"/"+i.ID] = i
	}
	var out []joined
	for _, c := range claims {
		j := joined{claim: c, instance: instances[c.Status.ProviderID]}
		if err := l.Client.Get(t.Context(), client.ObjectKey{Name: c.Status.NodeName}, &j.node); err != nil {
			t.Fatalf("node of %s: %v", c.Name, err)
		}
		var started bool
		if j.kubelet, started = l.Kubelet(j.instance.ID); !started {
			t.Fatalf("no kubelet was started on %s", j.instance.ID)
		}
		promised, has := c.Status.Allocatable, j.node.Status.Allocatable
		if promised.Pods().Value() != pods || has.Pods().Value() != pods {
			t.Errorf("%s: %s pods were promised and the Node takes %s, want %d", c.Name, promised.Pods(), has.Pods(), pods)
		}
		if promised.Cpu().Cmp(*has.Cpu()) != 0 {
			t.Errorf("%s: %s cpu were promised and the Node has %s", c.Name, promised.Cpu(), has.Cpu())
		}
		if p, h := promised.Memory(), has.Memory(); h.Cmp(*p) < 0 || h.Value() > p.Value()*21/20 {
			t.Errorf("%s: %s of memory were promised and the Node has %s", c.Name, p, h)
		}
		if p, h := promised.StorageEphemeral(), has.StorageEphemeral(); h.Value() < p.Value()*99/100 { // a file system takes a little
			t.Errorf("%s: %s of disk were promised and the Node has %s", c.Name, p, h)
		}
		out = append(out, j)
	}
	return out
}

// setCNI sets the environment of the VPC CNI, for the length of the test.
func setCNI(t *testing.T, l *lab.Lab, environment map[string]string) {
	t.Helper()
	set := func(environment map[string]string) error {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(environment)) {
			list = append(list, fmt.Sprintf(`{"name": %q, "value": %q}`, name, environment[name]))
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
