package charts

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// TestNetworkPolicyIsClosed: with each values file, only named peers can reach the pods, and only at the metrics port.
// The pods can reach only named ports.
func TestNetworkPolicyIsClosed(t *testing.T) {
	t.Parallel()
	seen := 0
	for name := range valuesFiles(t) {
		o := goldenObjects(t, name)
		if o.network == nil {
			continue // the values disable the NetworkPolicy
		}
		seen++
		if len(o.network.Spec.PolicyTypes) != 2 || len(o.network.Spec.Egress) == 0 {
			t.Errorf("%s: the policy has the types %v and %d egress rules, want Ingress, Egress and a rule", name,
				o.network.Spec.PolicyTypes, len(o.network.Spec.Egress))
		}
		checkIngress(t, name, o.network.Spec.Ingress)
		for _, r := range o.network.Spec.Egress {
			if len(r.Ports) == 0 {
				t.Errorf("%s: the pods reach every port of %v, want a list of ports", name, r.To)
			}
		}
		// Only private.values.yaml sets a proxy.
		if got := strings.Contains(portsOf(o.network.Spec.Egress), " 3128 "); got != (name == "private") {
			t.Errorf("%s: the proxy's port 3128 is open: %t, want it open only with private", name, got)
		}
	}
	if seen < 3 {
		t.Errorf("%d values files have a NetworkPolicy, want at least 3", seen)
	}
}

func checkIngress(t *testing.T, name string, rules []networkingv1.NetworkPolicyIngressRule) {
	t.Helper()
	for _, r := range rules {
		if len(r.From) == 0 {
			t.Errorf("%s: an ingress rule has no peers, so every pod reaches the controller", name)
		}
		if len(r.Ports) != 1 || r.Ports[0].Port == nil || r.Ports[0].Port.String() != "8080" {
			t.Errorf("%s: the ports %+v are open, want only the metrics port 8080", name, r.Ports)
		}
	}
}

// portsOf returns the ports of the rules, with a blank before and after each.
func portsOf(rules []networkingv1.NetworkPolicyEgressRule) string {
	out := " "
	for _, r := range rules {
		for _, p := range r.Ports {
			out += p.Port.String() + " "
		}
	}
	return out
}

// TestNetworkPolicyWithoutPeers: with an empty networkPolicy.from, the policy allows no pod. A rule with an empty from
// would allow all pods.
func TestNetworkPolicyWithoutPeers(t *testing.T) {
	t.Parallel()
	out, errs, err := helm(t, "template", release, chart, "--set", "settings.clusterName=demo", "--set-json",
		"networkPolicy.from=[]", "--show-only", "templates/networkpolicy.yaml")
	if err != nil {
		t.Fatal(errs)
	}
	var policy networkingv1.NetworkPolicy
	if err := yaml.UnmarshalStrict([]byte(out), &policy); err != nil {
		t.Fatal(err)
	}
	if len(policy.Spec.Ingress) != 0 || policy.Spec.PolicyTypes[0] != networkingv1.PolicyTypeIngress {
		t.Errorf("ingress %+v of types %v, want the type Ingress and no rule", policy.Spec.Ingress, policy.Spec.PolicyTypes)
	}
}
