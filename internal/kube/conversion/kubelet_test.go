package conversion

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

func TestKubeletProblem(t *testing.T) {
	t.Parallel()
	const invalid, unsupported = awsv1.ReasonInvalidKubeletConfiguration, awsv1.ReasonUnsupportedKubeletConfiguration
	for name, c := range map[string]struct{ family, kubelet, reason, messagePart string }{
		"empty":             {"AL2023", "{}", "", ""},
		"known fields":      {"Bottlerocket", "{maxPods: 5, kubeReserved: {cpu: 1m}, evictionHard: {memory.available: 5%}}", "", ""},
		"fields in More":    {"AL2023", "{shutdownGracePeriod: 30s, memorySwap: {swapBehavior: LimitedSwap}, podPidsLimit: -1, seccompDefault: true, memoryThrottlingFactor: 0.9, allowedUnsafeSysctls: [net.a], cpuManagerPolicy: static}", "", ""},
		"null":              {"AL2023", "{podPidsLimit: null}", "", ""},
		"two DNS servers":   {"AL2023", "{clusterDNS: [10.0.0.1, 10.0.0.2]}", "", ""},
		"minimum reclaim":   {"AL2023", "{evictionMinimumReclaim: {memory.available: 500Mi, nodefs.available: 5%}}", "", ""},
		"custom AMI family": {"Custom", "{seccompDefault: true, clusterDNS: [10.0.0.1, 10.0.0.2]}", "", ""},
		"taints refused":    {"AL2023", "{registerWithTaints: []}", invalid, "spec.kubelet.registerWithTaints: taints are the NodePool's"},
		"unknown field":     {"AL2023", "{maxPod: 3}", invalid, "spec.kubelet.maxPod: the kubelet has no such setting"},
		"wrong case":        {"AL2023", "{seccompdefault: true}", invalid, "spec.kubelet.seccompdefault"},
		"unknown, Custom":   {"Custom", "{maxPod: 3}", invalid, "spec.kubelet.maxPod"},
		"not a number":      {"AL2023", `{podPidsLimit: "5"}`, invalid, `spec.kubelet.podPidsLimit: want a whole number, not "5"`},
		"not whole":         {"AL2023", "{podPidsLimit: 1.5}", invalid, "spec.kubelet.podPidsLimit"},
		"not a boolean":     {"AL2023", `{seccompDefault: "yes"}`, invalid, "spec.kubelet.seccompDefault: want true or false"},
		"not a duration":    {"AL2023", "{shutdownGracePeriod: 30}", invalid, "spec.kubelet.shutdownGracePeriod: want a duration"},
		"no unit":           {"AL2023", `{shutdownGracePeriod: "30"}`, invalid, "spec.kubelet.shutdownGracePeriod"},
		"not a list":        {"AL2023", "{allowedUnsafeSysctls: net.a}", invalid, "spec.kubelet.allowedUnsafeSysctls: want a list"},
		"not a table":       {"AL2023", "{memorySwap: [1]}", invalid, "spec.kubelet.memorySwap: want a table"},
		"unknown signal":    {"AL2023", "{evictionMinimumReclaim: {memory: 5%}}", invalid, "spec.kubelet.evictionMinimumReclaim[memory]"},
		"not an amount": {"AL2023",
			"{evictionSoft: {memory.available: much}, evictionSoftGracePeriod: {memory.available: 1m}}", invalid,
			"spec.kubelet.evictionSoft[memory.available]"},
		"not a text": {"AL2023", "{evictionMinimumReclaim: {memory.available: 5}}", invalid, "spec.kubelet.evictionMinimumReclaim"},
		"invalid grace period": {"AL2",
			"{evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {memory.available: soon}}", invalid,
			"spec.kubelet.evictionSoftGracePeriod[memory.available]"},
		"negative":    {"AL2", "{evictionMaxPodGracePeriod: -1}", invalid, "spec.kubelet.evictionMaxPodGracePeriod"},
		"two unknown": {"AL2023", "{a: 1, b: 2}", invalid, "spec.kubelet.a: the kubelet has no such setting; spec.kubelet.b"},
		"not on AL2": {"AL2", "{seccompDefault: true, podPidsLimit: 5}", unsupported,
			"AL2 has no way to set podPidsLimit, seccompDefault"},
		"not on Bottlerocket": {"Bottlerocket", "{podsPerCore: 5}", unsupported, "spec.kubelet.podsPerCore"},
		"too many DNS servers": {"Windows2022", "{clusterDNS: [10.0.0.1, 10.0.0.2]}", unsupported,
			"spec.kubelet.clusterDNS: Windows2022 takes one"},
	} {
		class := &awsv1.EC2NodeClass{}
		if err := yaml.Unmarshal([]byte("spec: {amiFamily: "+c.family+", kubelet: "+c.kubelet+"}"), class); err != nil {
			t.Fatal(name, err)
		}
		reason, message := KubeletProblem(class)
		if reason != c.reason || !strings.Contains(message, c.messagePart) || (reason == "") != (message == "") {
			t.Errorf("%s: reason %q, message %q; want reason %q and a message with %q", name, reason, message, c.reason, c.messagePart)
		}
	}
}

// TestMoreInUserData: the kubelet settings in More have the same form in user data, however the user formats them.
func TestMoreInUserData(t *testing.T) {
	t.Parallel()
	var got []string
	for _, text := range []string{`{"memorySwap":{"b":1.50,"a":10000000000000000001}}`,
		`{"memorySwap": {"a": 10000000000000000001,  "b": 1.50}}`} {
		class := &awsv1.EC2NodeClass{}
		if err := yaml.Unmarshal([]byte("spec: {amiFamily: AL2023}"), class); err != nil {
			t.Fatal(err)
		}
		class.Spec.Kubelet = &awsv1.KubeletConfiguration{}
		if err := class.Spec.Kubelet.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		n, err := BootstrapNodeOfPool(nil, class, packing.Choice{InstanceType: "m5.large", CapacityType: "spot"}, 29)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n.Kubelet.More["memorySwap"])
	}
	if got[0] != `{"a":10000000000000000001,"b":1.50}` || got[1] != got[0] {
		t.Errorf("memorySwap in the user data is %q, want the same text twice, with sorted keys", got)
	}
}
