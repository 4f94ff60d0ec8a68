package lab_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// family is the configuration of an AMI family in an EC2NodeClass, with the expected results.
type family struct {
	images   string // lines of the spec that select AMIs
	userData string // spec.userData; empty: not set

	// The expected results.
	wantImage   string   // part of the image's name
	wantFamily  string   // family of the instance's image
	wantSystem  string   // prefix of the Node's osImage
	wantLabel   string   // value of the Node's label "own"
	wantCPU     string   // allocatable CPU of 2 vCPUs; empty: 1930m, the default of the images
	wantConsole []string // texts of the console, in this order
}

// families are the configurations of TestFamiliesJoin. ARCH is replaced by EC2's name of the architecture, KERNEL_ARCH
// by the kernel's name of the architecture, and CLUSTER, ENDPOINT, AUTHORITY and CIDR by the values of the cluster.
var families = map[string]family{
	"al2023": {
		images:    "amiSelectorTerms: [{alias: al2023@latest}]",
		wantImage: "amazon-eks-node-al2023-ARCH-standard-1.36-v20260715", wantFamily: "AL2023", wantSystem: "Amazon Linux 2023",
		wantConsole: []string{"Loading configuration..", "Starting daemon.."},
	},
	"al2023-own": {
		images:    "amiFamily: AL2023\n  amiSelectorTerms: [{name: amazon-eks-node-al2023-*-standard-1.36-v20260601, owner: amazon}]",
		wantImage: "amazon-eks-node-al2023-ARCH-standard-1.36-v20260601", wantFamily: "AL2023", wantSystem: "Amazon Linux 2023",
		userData: `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo "own script on $(uname -m)"
--BOUNDARY
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      systemReserved: {cpu: 130m}
    flags: ["--node-labels=own=nodeconfig"]
--BOUNDARY--
`,
		wantLabel: "nodeconfig", wantCPU: "1800m",
		wantConsole: []string{"Loading configuration..", "own script on KERNEL_ARCH", "Starting daemon.."},
	},
	"al2": {
		images:    "amiFamily: AL2\n  amiSelectorTerms: [{name: \"golden-al2-*\", owner: self}]",
		wantImage: "golden-al2-ARCH", wantFamily: "AL2", wantSystem: "Amazon Linux 2",
		wantConsole: []string{"/etc/eks/bootstrap.sh CLUSTER --apiserver-endpoint"},
	},
	"al2-own": {
		images:    "amiFamily: AL2\n  amiSelectorTerms: [{tags: {golden: al2}}]",
		wantImage: "golden-al2-ARCH", wantFamily: "AL2", wantSystem: "Amazon Linux 2",
		userData: `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo "first own script on $(uname -m)"
--BOUNDARY
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -e
KUBELET_CONFIG=/etc/kubernetes/kubelet/kubelet-config.json
echo "$(jq '.systemReserved.cpu="130m"' $KUBELET_CONFIG)" > $KUBELET_CONFIG
echo "second own script"
--BOUNDARY--
`,
		wantCPU:     "1800m",
		wantConsole: []string{"first own script on KERNEL_ARCH", "second own script", "/etc/eks/bootstrap.sh CLUSTER --apiserver-endpoint"},
	},
	"bottlerocket": {
		images:    "amiSelectorTerms: [{alias: bottlerocket@latest}]",
		wantImage: "bottlerocket-aws-k8s-1.36-ARCH-v1.53.0", wantFamily: "Bottlerocket", wantSystem: "Bottlerocket OS 1.53.0 (aws-k8s-1.36)",
		wantConsole: []string{"Finished Bottlerocket userdata configuration system", "Started Kubelet."},
	},
	"bottlerocket-own": {
		images:    "amiFamily: Bottlerocket\n  amiSelectorTerms: [{ssmParameter: /aws/service/bottlerocket/aws-k8s-1.36/ARCH/1.52.0/image_id}]",
		wantImage: "bottlerocket-aws-k8s-1.36-ARCH-v1.52.0", wantFamily: "Bottlerocket", wantSystem: "Bottlerocket OS 1.52.0 (aws-k8s-1.36)",
		userData: `[settings.kubernetes]
log-level = 4
node-labels = { own = "toml" }
system-reserved = { cpu = "130m" }

[settings.kernel.sysctl]
"user.max_user_namespaces" = "16384"
`,
		wantLabel: "toml", wantCPU: "1800m",
		wantConsole: []string{"Finished Bottlerocket userdata configuration system", "Started Kubelet."},
	},
	"custom-own": {
		images:    "amiFamily: Custom\n  amiSelectorTerms: [{tags: {golden: custom}}]",
		wantImage: "golden-custom-ARCH", wantFamily: "Custom", wantSystem: "Amazon Linux 2",
		userData: `#!/bin/bash -e
echo "own script on $(uname -m)"
/etc/eks/bootstrap.sh CLUSTER --kubelet-extra-args '--node-labels=own=script --register-with-taints=karpenter.sh/unregistered=:NoExecute --system-reserved=cpu=130m'
`,
		wantLabel: "script", wantCPU: "1800m",
		wantConsole: []string{"own script on KERNEL_ARCH"},
	},
	"custom-nodeadm-own": {
		images:    "amiFamily: Custom\n  amiSelectorTerms: [{name: amazon-eks-node-al2023-*-standard-1.36-v20260715}]",
		wantImage: "amazon-eks-node-al2023-ARCH-standard-1.36-v20260715", wantFamily: "AL2023", wantSystem: "Amazon Linux 2023",
		userData: `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: CLUSTER, apiServerEndpoint: "ENDPOINT", certificateAuthority: AUTHORITY, cidr: CIDR}
  kubelet:
    config:
      systemReserved: {cpu: 130m}
      registerWithTaints: [{key: karpenter.sh/unregistered, effect: NoExecute}]
    flags: ["--node-labels=own=nodeconfig"]
--BOUNDARY--
`,
		wantLabel: "nodeconfig", wantCPU: "1800m",
		wantConsole: []string{"Loading configuration..", "Starting daemon.."},
	},
}

// familyCase is a case of TestFamiliesJoin: a family on an architecture.
type familyCase struct {
	family
	name         string // name of the class, the pool and the pods
	arch         string // Kubernetes' name, such as "amd64"
	instanceType string // such as "m5.large"
	ec2Arch      string // EC2's name, such as "x86_64"
}

// TestFamiliesJoin checks that nodes of every Linux family join, on both architectures. It tests each family without
// and with the user's own user data, which must take effect. The output of `joiner render userdata` must be equal to
// the instance's user data.
func TestFamiliesJoin(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	ensureController(t, l)
	cluster := describeCluster(t, l)
	registerGoldenImages(l)
	namespace := newTestNamespace(t, l)
	var cases []familyCase
	var names []string
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, c := range []familyCase{{arch: "amd64", instanceType: "m5.large", ec2Arch: "x86_64"},
			{arch: "arm64", instanceType: "m6g.large", ec2Arch: "arm64"}} {
			c.family, c.name = families[name], namespace+"-"+name+"-"+c.arch
			c.fillPlaceholders(cluster)
			apply(t, l,
				class(l, c.name, c.images+c.userDataYAML()),
				pool(c.name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m6g.large]}",
					"{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}"),
				deployment(namespace, c.name, 1, "500m", "256Mi", "test: "+c.name+", kubernetes.io/arch: "+c.arch))
			cases, names = append(cases, c), append(names, c.name)
		}
	}
	awaitRunning(t, l, namespace, len(cases), 2*time.Minute)
	for _, c := range cases {
		t.Run(strings.TrimPrefix(c.name, namespace+"-"), func(t *testing.T) {
			i := c.checkNode(t, l, namespace)
			awaitPreflight(t, l, c.name, metav1.ConditionTrue) // preflight finds no fault
			if got := renderUserData(t, l, c, cluster); got != i.UserData {
				t.Errorf("user data (-joiner render userdata +instance):\n%s", gocmp.Diff(got, i.UserData))
			}
		})
	}
	cleanUp(t, l, namespace, names...)
}

// isMarkedNotReady reports whether the node has the taint node.kubernetes.io/not-ready. The node lifecycle controller
// can set this taint from stale data on a node that has just become ready. It removes the taint within five seconds.
func isMarkedNotReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
}

func (f *familyCase) fillPlaceholders(cluster *ekstypes.Cluster) {
	kernelArch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[f.arch]
	// The replacer finds KERNEL_ARCH before the ARCH in it, because KERNEL_ARCH begins earlier in the text.
	words := strings.NewReplacer("ARCH", f.ec2Arch, "KERNEL_ARCH", kernelArch, "CLUSTER", *cluster.Name, "ENDPOINT", *cluster.Endpoint,
		"AUTHORITY", *cluster.CertificateAuthority.Data, "CIDR", *cluster.KubernetesNetworkConfig.ServiceIpv4Cidr)
	for _, text := range []*string{&f.images, &f.userData, &f.wantImage} {
		*text = words.Replace(*text)
	}
	f.wantConsole = slices.Clone(f.wantConsole)
	for i := range f.wantConsole {
		f.wantConsole[i] = words.Replace(f.wantConsole[i])
	}
}

// userDataYAML returns the lines of spec.userData, or nothing without user data.
func (f *familyCase) userDataYAML() string {
	if f.userData == "" {
		return ""
	}
	return "\n  userData: |\n    " + strings.ReplaceAll(strings.TrimSuffix(f.userData, "\n"), "\n", "\n    ")
}

// checkNode checks the node on which the pod runs, and returns the node's instance.
func (f *familyCase) checkNode(t *testing.T, l *lab.Lab, namespace string) world.Instance {
	t.Helper()
	pods, err := l.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + f.name})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v; want 1", len(pods.Items), err)
	}
	var node *corev1.Node
	within(t, l, time.Minute, "the node to be initialized, without the taint not-ready", func(ctx context.Context) (bool, error) {
		var err error
		node, err = l.Kube.CoreV1().Nodes().Get(ctx, pods.Items[0].Spec.NodeName, metav1.GetOptions{})
		return err == nil && node.Labels[karpenterv1.LabelInitialized] == "true" && !isMarkedNotReady(node), err
	})
	var image world.Image
	all := instancesOf(l, f.name)
	if len(all) != 1 {
		t.Fatalf("%d instances were launched, want 1", len(all))
	}
	i := all[0]
	l.Emulator.Do(func(w *world.World, _ time.Time) { image, _ = w.Region(i.Account, i.Region).Images.ByID(i.ImageID) })
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	got := map[string]any{
		"ready": ready, "taints": fmt.Sprint(node.Spec.Taints), "instance": node.Spec.ProviderID, "type": i.Type, "architecture": i.Architecture,
		"image": strings.Contains(image.Name, f.wantImage), "family": image.Family, "image's architecture": image.Architecture,
		"system": strings.HasPrefix(node.Status.NodeInfo.OSImage, f.wantSystem), "node's architecture": node.Status.NodeInfo.Architecture,
		"label": node.Labels[corev1.LabelArchStable], "own label": node.Labels["own"], "cpu": node.Status.Allocatable.Cpu().String(),
	}
	want := map[string]any{
		"ready": true, "taints": "[]", "instance": "aws:///" + i.Zone + "/" + i.ID, "type": f.instanceType, "architecture": f.ec2Arch,
		"image": true, "family": f.wantFamily, "image's architecture": f.ec2Arch,
		"system": true, "node's architecture": f.arch,
		"label": f.arch, "own label": f.wantLabel, "cpu": cmp.Or(f.wantCPU, "1930m"),
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\nimage %q, want part %q; system %q, want prefix %q", diff, image.Name, f.wantImage,
			node.Status.NodeInfo.OSImage, f.wantSystem)
	}
	console := l.Console(i.ID)
	rest := console
	for _, want := range f.wantConsole {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("the console does not contain %q in the expected order:\n%s", want, console)
			break
		}
		rest = after
	}
	return i
}

// renderUserData returns the user data that `joiner render userdata` prints for the class and the pool of a case.
func renderUserData(t *testing.T, l *lab.Lab, c familyCase, cluster *ekstypes.Cluster) string {
	t.Helper()
	nodeClass, nodePool := &awsv1.EC2NodeClass{}, &karpenterv1.NodePool{}
	var manifests bytes.Buffer
	for _, object := range []client.Object{nodeClass, nodePool} {
		if err := l.Client.Get(t.Context(), client.ObjectKey{Name: c.name}, object); err != nil {
			t.Fatal(err)
		}
	}
	nodeClass.TypeMeta = metav1.TypeMeta{APIVersion: awsv1.GroupVersion.String(), Kind: awsv1.Kind}
	nodePool.TypeMeta = metav1.TypeMeta{APIVersion: karpenterv1.GroupVersion.String(), Kind: "NodePool"}
	for _, object := range []client.Object{nodeClass, nodePool} {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&manifests, "---\n%s", text)
	}
	service, err := l.Kube.CoreV1().Services(metav1.NamespaceSystem).Get(t.Context(), "kube-dns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	render := exec.CommandContext(t.Context(), program(t), "render", "userdata", "-f", "-", "-o", "json",
		"--instance-type", c.instanceType, "--region", l.Region, "--cluster-name", *cluster.Name, "--cluster-endpoint", *cluster.Endpoint,
		"--cluster-ca", *cluster.CertificateAuthority.Data, "--service-cidr", *cluster.KubernetesNetworkConfig.ServiceIpv4Cidr,
		"--cluster-dns", service.Spec.ClusterIP)
	var stderr bytes.Buffer
	render.Stdin, render.Stderr = &manifests, &stderr
	out, err := render.Output()
	var printed struct{ UserData string }
	if err == nil {
		err = json.Unmarshal(out, &printed)
	}
	if err != nil {
		t.Fatalf("joiner render userdata: %v\n%s", err, &stderr)
	}
	return printed.UserData
}

func describeCluster(t *testing.T, l *lab.Lab) *ekstypes.Cluster {
	t.Helper()
	out, err := eks.NewFromConfig(l.AWS()).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: &l.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	return out.Cluster
}

// registerGoldenImages registers images of the account for the families AL2 and Custom. EKS does not publish images of
// AL2 any more.
func registerGoldenImages(l *lab.Lab) {
	l.Emulator.Do(func(_ *world.World, now time.Time) {
		for _, kind := range []string{"AL2", "Custom"} {
			for _, architecture := range []string{"x86_64", "arm64"} {
				l.Estate.Region.Images.Register(world.Image{
					Name: "golden-" + strings.ToLower(kind) + "-" + architecture, Tags: map[string]string{"golden": strings.ToLower(kind)},
					Architecture: architecture, OwnerID: l.Account, CreatedAt: now, RootDevice: "/dev/xvda",
					Volumes: []world.ImageVolume{{Device: "/dev/xvda", SizeGiB: 20, Kind: "gp3"}},
					Family:  kind, Variant: "standard", Version: "1.36",
				})
			}
		}
	})
}
