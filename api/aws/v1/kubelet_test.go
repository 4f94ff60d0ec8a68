package v1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
)

// TestKubeletRoundTrip checks that settings with and without a field survive DeepCopy and JSON encoding.
func TestKubeletRoundTrip(t *testing.T) {
	t.Parallel()
	const text = `{"evictionHard":{"memory.available":"5%"},"maxPods":42,"memorySwap":{"swapBehavior":"LimitedSwap"},"shutdownGracePeriod":"30s","topologyManagerPolicy":null}`
	var k awsv1.KubeletConfiguration
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	if k.MaxPods == nil || *k.MaxPods != 42 || len(k.More) != 3 || string(k.More["shutdownGracePeriod"].Raw) != `"30s"` {
		t.Errorf("decoded %+v, want maxPods 42, and three settings in More with shutdownGracePeriod 30s", k)
	}
	copied := k.DeepCopy()
	k.More["shutdownGracePeriod"].Raw[1] = '9' // must not change the copy
	data, err := json.Marshal(copied)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(data)); diff != "" {
		t.Errorf("encoded copy (-want +got):\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`{"podsPerCore":3}`), &k); err != nil || k.MaxPods != nil || k.More != nil || *k.PodsPerCore != 3 {
		t.Errorf("decoded %+v, error %v; want podsPerCore 3 and no previous values", k, err)
	}
	for _, wrong := range []string{`{"maxPods":"x"}`, `[]`, `{"clusterDNS":1}`} {
		if err := json.Unmarshal([]byte(wrong), &k); err == nil {
			t.Errorf("%s was decoded, want an error", wrong)
		}
	}
}

// TestKubeletInClass checks that encoding a node class does not change its kubelet settings.
func TestKubeletInClass(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{}", "kubelet: {maxPods: 3}", "kubelet: {}", "kubelet: {seccompDefault: true}"} {
		var spec awsv1.EC2NodeClassSpec
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		data, err := json.Marshal(spec)
		if err != nil || json.Unmarshal(data, &got) != nil || yaml.Unmarshal([]byte(text), &want) != nil {
			t.Fatalf("%s: encoding or decoding failed: %v", text, err)
		}
		if diff := cmp.Diff(want["kubelet"], got["kubelet"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
