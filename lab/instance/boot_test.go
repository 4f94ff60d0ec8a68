package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/lab/kubelet"
)

type fakeServices struct {
	credentialsErr error   // result of Credentials
	cluster        Cluster // result of Cluster; without an Endpoint, Cluster returns an error
}

func (f fakeServices) Credentials() error { return f.credentialsErr }
func (f fakeServices) Cluster(name string) (Cluster, error) {
	if f.cluster.Endpoint == "" {
		return Cluster{}, fmt.Errorf("An error occurred (AccessDeniedException) when calling the DescribeCluster operation: %s", name)
	}
	return f.cluster, nil
}

// bootWith boots an instance of type m5.large. It returns the kubelet's settings, which are nil if no kubelet starts,
// and the console.
func bootWith(t *testing.T, family, userData string, services fakeServices, alter ...func(*Instance)) (*kubelet.Settings, string) {
	t.Helper()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	facts, ok := table.Facts("m5.large")
	if !ok {
		t.Fatal("the catalog has no m5.large")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var console strings.Builder
	i := Instance{
		ID: "i-0123456789abcdef0", Region: "us-east-1", Zone: "us-east-1a", PrivateIP: "192.168.1.7",
		PrivateDNSName: "ip-192-168-1-7.ec2.internal", UserData: []byte(userData), RootGiB: 20,
		Image: Image{Name: "bottlerocket-aws-k8s-1.36-x86_64-v1.53.0-0123abcd", Family: family, Architecture: "x86_64",
			Version: "1.36"}, Facts: facts,
	}
	for _, f := range alter {
		f(&i)
	}
	s := Boot(ctx, i, services, func(line string) { console.WriteString(line + "\n") })
	return s, console.String()
}

// User data as Karpenter renders it. "Q0E=" is "CA" in base64.
const al2Script = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
/etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://127.0.0.1:6443' --b64-cluster-ca 'Q0E=' \
--dns-cluster-ip '10.100.0.10' \
--use-max-pods false \
--kubelet-extra-args '--node-labels="karpenter.sh/nodepool=default,nodegroup=karpenter" --register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=29'
--//--
`

const nodeConfigPart = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: demo
    apiServerEndpoint: https://127.0.0.1:6443
    certificateAuthority: Q0E=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      maxPods: 29
      registerWithTaints:
      - {key: karpenter.sh/unregistered, effect: NoExecute}
    flags:
    - --node-labels="karpenter.sh/nodepool=default"
--//--
`

// TestBoot checks which kubelet starts with which taints and labels, and what the console shows.
func TestBoot(t *testing.T) {
	unregistered := []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}}
	bootstrap := "#!/bin/bash\n/etc/eks/bootstrap.sh demo --apiserver-endpoint https://127.0.0.1:6443 --b64-cluster-ca Q0E= "
	tests := map[string]struct {
		family, userData string
		services         fakeServices
		wantTaints       []corev1.Taint
		wantLabels       map[string]string
		wantNoKubelet    bool
		wantConsole      []string
		wantInOrder      []string // texts of the console, in their order
	}{
		"AL2: user data of Karpenter": {
			family: "AL2", userData: al2Script,
			wantTaints:  unregistered,
			wantLabels:  map[string]string{"karpenter.sh/nodepool": "default", "nodegroup": "karpenter"},
			wantConsole: []string{"/etc/eks/bootstrap.sh demo --apiserver-endpoint"},
		},
		"AL2: endpoint and CA from EKS": {
			family: "AL2", userData: "#!/bin/bash\n/etc/eks/bootstrap.sh demo",
			services: fakeServices{cluster: Cluster{Endpoint: "https://127.0.0.1:6443", CA: "Q0E="}},
		},
		"user report case-4: --kubelet-extra-args=… is ignored": {
			family: "AL2", userData: bootstrap + `--kubelet-extra-args='--register-with-taints="karpenter.sh/unregistered:NoExecute"'`,
		},
		"user report case-4: --kubelet-extra-args with a separate value": {
			family: "AL2", userData: bootstrap + `--kubelet-extra-args '--register-with-taints karpenter.sh/unregistered:NoExecute'`,
			wantTaints: unregistered,
		},
		"AL2: second call of bootstrap.sh has no effect": {
			family: "AL2", userData: bootstrap + "--kubelet-extra-args --node-labels=call=1\n" + strings.TrimPrefix(bootstrap, "#!/bin/bash\n") +
				"--kubelet-extra-args --node-labels=call=2\n",
			wantLabels: map[string]string{"call": "1"},
		},
		"AL2: script changes the kubelet's configuration": {
			family: "AL2", userData: "#!/bin/bash -e\nF=/etc/kubernetes/kubelet/kubelet-config.json\n" +
				"jq '.registerWithTaints=[{\"key\":\"own\",\"effect\":\"NoExecute\"}] | .systemReserved.cpu=\"100m\"' $F > /tmp/k && mv /tmp/k $F\n" + bootstrap,
			wantTaints: []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoExecute}},
		},
		"AL2: script reads and writes the kubelet's configuration in one line": {
			family: "AL2", userData: "#!/bin/bash -e\nF=/etc/kubernetes/kubelet/kubelet-config.json\nif true; then\n" +
				"  echo \"it is $(uname -m)\" > /dev/console\n  echo \"$(jq '.registerWithTaints=[{\"key\":\"own\",\"effect\":\"NoExecute\"}]' $F)\" > $F\nfi\n" + bootstrap,
			wantTaints:  []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoExecute}},
			wantConsole: []string{"it is x86_64"},
		},
		"AL2: script truncates the kubelet's configuration before jq reads it": {
			family: "AL2", userData: "#!/bin/bash\nF=/etc/kubernetes/kubelet/kubelet-config.json\njq .maxPods=3 $F > $F\n" +
				bootstrap, wantNoKubelet: true,
			wantConsole: []string{"parse error: unexpected end of JSON input"},
		},
		"AL2: script empties the kubelet's configuration": {
			family: "AL2", userData: "#!/bin/bash\n: > /etc/kubernetes/kubelet/kubelet-config.json\n" + bootstrap, wantNoKubelet: true,
			wantConsole: []string{"parse error: unexpected end of JSON input"},
		},
		"AL2: variable of an earlier line": {
			family: "AL2", userData: "#!/bin/sh\nPOOL=a\nif [ -d /etc/eks ]; then LABELS=\"pool=$POOL,arch=$(uname -m)\"; fi\n" +
				"/etc/eks/bootstrap.sh demo --apiserver-endpoint https://127.0.0.1:6443 --b64-cluster-ca Q0E= --kubelet-extra-args \"--node-labels=$LABELS\"",
			wantLabels: map[string]string{"pool": "a", "arch": "x86_64"},
		},
		"AL2: unclosed quote": {
			family: "AL2", userData: "#!/bin/bash\necho before\n/etc/eks/bootstrap.sh 'demo --apiserver-endpoint https://127.0.0.1:6443\n",
			wantNoKubelet: true,
			wantConsole:   []string{"before", "unexpected EOF while looking for matching `''", "Failed to run module scripts-user"},
		},
		"no credentials": {
			family: "AL2", userData: al2Script, services: fakeServices{credentialsErr: errors.New("it has no instance profile")},
			wantNoKubelet: true,
			wantConsole:   []string{"Unable to locate credentials", "PrivateDnsName is not available"},
		},
		"AL2: NodeConfig is not supported": {
			family: "AL2", userData: nodeConfigPart, wantNoKubelet: true,
			wantConsole: []string{"Unhandled unknown content-type (application/node.eks.aws)"},
		},
		"no shebang": {
			family: "AL2", userData: "echo hello", wantNoKubelet: true,
			wantConsole: []string{"Unhandled non-multipart (text/x-not-multipart) userdata"},
		},
		"unknown kubelet flag": {
			family: "AL2", userData: bootstrap + `--kubelet-extra-args '--no-such-flag'`, wantNoKubelet: true,
			wantConsole: []string{"failed to parse kubelet flag: unknown flag: --no-such-flag"},
		},
		"reserved Kubernetes label": {
			family: "AL2", userData: bootstrap + `--kubelet-extra-args '--node-labels=node-role.kubernetes.io/worker=true'`, wantNoKubelet: true,
			wantConsole: []string{"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels"},
		},
		"missing program": {
			family: "AL2", userData: "#!/bin/bash -e\nwget2 http://example.com/x\n" +
				strings.TrimPrefix(bootstrap, "#!/bin/bash\n"), wantNoKubelet: true,
			wantConsole: []string{"wget2: command not found", "exit status 127"},
		},
		"endless script": {
			family: "AL2", userData: "#!/bin/bash\nwhile true; do :; done", wantNoKubelet: true,
			wantConsole: []string{"the lab stopped the script"},
		},
		"AL2023: user data of Karpenter": {
			family: "AL2023", userData: nodeConfigPart, wantTaints: unregistered,
			wantLabels: map[string]string{"karpenter.sh/nodepool": "default"},
		},
		"AL2023 without a service range": {
			family: "AL2023", userData: strings.Replace(nodeConfigPart, "    cidr: 10.100.0.0/16\n", "", 1), wantNoKubelet: true,
			wantConsole: []string{"CIDR is missing in cluster configuration", "Failed to start nodeadm-config.service"},
		},
		"AL2023 with AL2's script": {
			family: "AL2023", userData: al2Script, wantNoKubelet: true,
			wantConsole: []string{"bootstrap.sh has been removed from AL2023-based EKS AMIs", "could not find NodeConfig within UserData"},
		},
		"AL2023: invalid kubelet setting": {
			family: "AL2023", userData: strings.Replace(nodeConfigPart, "maxPods: 29", "maxPods: many", 1), wantNoKubelet: true,
			wantConsole: []string{"failed to load kubelet config file"},
		},
		"AL2023: shell scripts before the NodeConfig": {
			family: "AL2023", userData: strings.Replace(nodeConfigPart, "--//\n",
				"--//\nContent-Type: text/x-shellscript\n\n#!/bin/bash\necho first\n"+
					"--//\nContent-Type: text/x-shellscript\n\n#!/bin/bash\necho second\n--//\n", 1),
			wantTaints: unregistered, wantLabels: map[string]string{"karpenter.sh/nodepool": "default"},
			wantInOrder: []string{"Loading configuration..", "first", "second", "Starting daemon.."},
		},
		"AL2023: node joins although a script fails": {
			family: "AL2023", userData: strings.Replace(nodeConfigPart, "--//\n",
				"--//\nContent-Type: text/x-shellscript\n\n#!/bin/bash\nexit 3\n--//\n", 1),
			wantTaints: unregistered, wantLabels: map[string]string{"karpenter.sh/nodepool": "default"},
			wantInOrder: []string{"exit status 3", "Failed to run module scripts-user", "Starting daemon.."},
		},
		"AL2023 without credentials": {
			family: "AL2023", userData: nodeConfigPart, wantNoKubelet: true,
			services:    fakeServices{credentialsErr: errors.New("it has no instance profile")},
			wantConsole: []string{"no EC2 IMDS role found"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, console := bootWith(t, tt.family, tt.userData, tt.services)
			for _, want := range tt.wantConsole {
				if !strings.Contains(console, want) {
					t.Errorf("the console does not contain %q", want)
				}
			}
			rest := console
			for _, want := range tt.wantInOrder {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("the console does not contain %q in the expected order", want)
				}
				rest = after
			}
			if (s == nil) != tt.wantNoKubelet {
				t.Errorf("kubelet starts: %t, want %t", s != nil, !tt.wantNoKubelet)
			}
			if s != nil {
				if diff := cmp.Diff(append([]corev1.Taint{}, tt.wantTaints...), s.Taints); diff != "" {
					t.Errorf("taints (-want +got):\n%s", diff)
				}
				labels := map[string]string{}
				for k, v := range tt.wantLabels {
					labels[k] = v
				}
				got := s.Labels
				if got == nil {
					got = map[string]string{}
				}
				if diff := cmp.Diff(labels, got); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				if s.ProviderID != "aws:///us-east-1a/i-0123456789abcdef0" || s.NodeName != "ip-192-168-1-7.ec2.internal" || !s.ExternalCloud {
					t.Errorf("provider id %q, name %q, external cloud %t; want the instance's ID and name, and true",
						s.ProviderID, s.NodeName, s.ExternalCloud)
				}
			}
			if t.Failed() {
				t.Logf("console:\n%s", console)
			}
		})
	}
}

// TestAllocatableMatchesCatalog checks that a node has at least the allocatable resources that the catalog computes for
// its instance type. Otherwise planned pods would not fit. The disk may be 1 % smaller.
func TestAllocatableMatchesCatalog(t *testing.T) {
	t.Parallel()
	s, console := bootWith(t, "AL2023", nodeConfigPart, fakeServices{})
	if s == nil {
		t.Fatal(console)
	}
	// The numbers are the catalog's for m5.large.
	if cpu := s.Allocatable.Cpu().MilliValue(); cpu != 1930 {
		t.Errorf("allocatable cpu is %dm, want 1930m", cpu)
	}
	if memory := s.Allocatable.Memory().Value(); memory < 7238320128 || memory > 7238320128*21/20 {
		t.Errorf("allocatable memory is %d, want 7238320128, or up to 5 %% more", memory)
	}
	if disk := s.Allocatable.StorageEphemeral().Value(); disk < 18253611008*99/100 {
		t.Errorf("allocatable disk is %d, want at least 99 %% of 18253611008", disk)
	}
	if pods := s.Allocatable.Pods().Value(); pods != 29 {
		t.Errorf("allocatable pods are %d, want 29", pods)
	}
}
