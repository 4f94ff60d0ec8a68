package instance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// joiningConfig is a NodeConfig with which an instance joins.
const joiningConfig = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: demo
    apiServerEndpoint: https://127.0.0.1:6443
    certificateAuthority: Q0E=
    cidr: 10.100.0.0/16
`

// FuzzBoot checks that the boot does not panic with any user data.
func FuzzBoot(f *testing.F) {
	// The number is the index in families, below.
	f.Add(0, joiningConfig+"  kubelet:\n    config:\n      featureGates:\n        InstanceIdNodeName: true\n")
	f.Add(0, joiningConfig+"  kubelet:\n    config: {maxPods: -1, clusterDNS: 5, evictionHard: [], registerWithTaints: {}, logging: 1}\n")
	f.Add(0, joiningConfig+"  kubelet:\n    flags: ['--feature-gates=A=b', '--max-pods', '--v=x', '--node-labels==']\n")
	f.Add(0, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"\"\n\n----\n")
	f.Add(1, "#!/bin/bash\n/etc/eks/bootstrap.sh demo --apiserver-endpoint https://127.0.0.1 --b64-cluster-ca Q0E= --kubelet-extra-args '--feature-gates=X=true'\n")
	f.Add(1, "#!/bin/bash\nwhile :; do :; done &\n${a[b]} $((1/0)) <<EOF\n")
	f.Add(2, rocketSettings+"[settings.kernel.sysctl]\n\"a\" = 1\n")
	f.Add(2, "[settings]\nkubernetes = 5\n")
	f.Add(2, "[settings.kubernetes]\napi-server = 5\ncluster-certificate = 7\n")
	f.Add(2, rocketSettings+"[settings.kubernetes.kube-reserved]\ncpu = \"-9999999999999999999\"\n")
	f.Add(2, "\x1f\x8b") // the start of gzip data
	for _, userData := range corpus(f) {
		f.Add(0, userData)
		f.Add(2, userData)
	}
	table, err := catalog.Embedded()
	if err != nil {
		f.Fatal(err)
	}
	facts, _ := table.Facts("m5.large")
	f.Fuzz(func(t *testing.T, family int, userData string) {
		families := []string{"AL2023", "AL2", "Bottlerocket"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		Boot(ctx, Instance{
			ID: "i-0123456789abcdef0", Region: "us-east-1", Zone: "us-east-1a", PrivateIP: "192.168.1.7",
			PrivateDNSName: "ip-192-168-1-7.ec2.internal", UserData: []byte(userData), RootGiB: 20, Facts: facts,
			Image: Image{Name: "bottlerocket-aws-k8s-1.36-x86_64-v1.53.0-0123abcd", Family: families[uint(family)%3],
				Architecture: "x86_64", Version: "1.36"},
		}, fakeServices{}, func(line string) {
			if strings.HasPrefix(line, "lab: the boot panics") {
				t.Error(line)
			}
		})
	})
}

// corpus returns the user data of users' reports in the product's testdata.
func corpus(t testing.TB) (userData []string) {
	t.Helper()
	files, err := filepath.Glob("../../internal/node/userdata/reading/testdata/reports/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files with user data (%v), want at least one", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(data), "\n---\n") {
			var class struct {
				Spec struct {
					UserData string `json:"userData"`
				} `json:"spec"`
			}
			if yaml.Unmarshal([]byte(doc), &class) == nil && class.Spec.UserData != "" {
				userData = append(userData, class.Spec.UserData)
			}
		}
	}
	return userData
}

// TestUnknownFeatureGate checks that a feature gate that the kubelet does not know makes the kubelet panic in the
// console, but not the lab. As a feature gate of nodeadm, the same gate is valid.
func TestUnknownFeatureGate(t *testing.T) {
	t.Parallel()
	s, console := bootWith(t, "AL2023",
		joiningConfig+"  kubelet:\n    config:\n      featureGates:\n        InstanceIdNodeName: true\n", fakeServices{})
	if s != nil || !strings.Contains(console, "unrecognized feature gate: InstanceIdNodeName") ||
		strings.Contains(console, "lab: the boot panics") {
		t.Errorf("want no kubelet, and its panic about the gate in the console, got %v\n%s", s, console)
	}
	s, console = bootWith(t, "AL2023", joiningConfig+"  featureGates:\n    InstanceIdNodeName: true\n", fakeServices{})
	if s == nil || s.NodeName != "i-0123456789abcdef0" {
		t.Errorf("a gate of nodeadm: want a node named after the instance, got %v\n%s", s, console)
	}
}
