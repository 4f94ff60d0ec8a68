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

// family is the configuration of an AMI family in an EC2NodeClass, and the expected node.
type family struct {
	images   string // lines of the spec
	userData string // spec.userData; empty: not set

	// The expected results.
	wantImage   string   // part of the image's name
	wantFamily  string   // family of the instance's image
	wantSystem  string   // prefix of the Node's osImage
	wantLabel   string   // value of the Node's label "own"
	wantCPU     string   // allocatable CPU of 2 vCPUs; empty: 1930m, the default of the images
	wantConsole []string // texts of the console, in this order
}

// families are the configurations of TestFamiliesJoin. ARCH is replaced by EC2's name of the architecture, and CLUSTER,
// ENDPOINT, AUTHORITY and CIDR by the values of the cluster.
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

// joining is a row of TestFamiliesJoin: a family on an architecture.
type joining struct {
	family
	name         string // name of the class, the pool and the pods
	arch         string // "amd64"
	instanceType string // "m5.large"
	image        string // EC2's name of the architecture: "x86_64"
}

// TestFamiliesJoin checks that nodes of every Linux family join, on both architectures, with and without the user's own
// user data, and that the user data takes effect. The output of `joiner render userdata` must be equal to the
// instance's user data.
func TestFamiliesJoin(t *testing.T) {
	l := beside(t, lab.Options{})
	controller(t, l)
	cluster := describe(t, l)
	goldenImages(l)
	namespace := namespaced(t, l)
	var rows []joining
	var names []string
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, kind := range []joining{{arch: "amd64", instanceType: "m5.large", image: "x86_64"},
			{arch: "arm64", instanceType: "m6g.large", image: "arm64"}} {
			kind.family, kind.name = families[name], namespace+"-"+name+"-"+kind.arch
			kind.fill(cluster)
			apply(t, l,
				class(l, kind.name, kind.images+kind.ownData()),
				pool(kind.name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m6g.large]}",
					"{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}"),
				deployment(namespace, kind.name, 1, "500m", "256Mi", "test: "+kind.name+", kubernetes.io/arch: "+kind.arch))
			rows, names = append(rows, kind), append(names, kind.name)
		}
	}
	allRun(t, l, namespace, len(rows), 2*time.Minute)
	for _, row := range rows {
		t.Run(strings.TrimPrefix(row.name, namespace+"-"), func(t *testing.T) {
			i := row.joined(t, l, namespace)
			preflightSays(t, l, row.name, metav1.ConditionTrue) // no false alarm
			if got := rendered(t, l, row, cluster); got != i.UserData {
				t.Errorf("user data (-joiner render userdata +instance):\n%s", gocmp.Diff(got, i.UserData))
			}
		})
	}
	nothingLeft(t, l, namespace, names...)
}

// isHeldBack reports whether the node has the taint node.kubernetes.io/not-ready. The node lifecycle controller can set
// this taint from stale data on a node that has just become ready, and removes it within five seconds.
func isHeldBack(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
}

// fill replaces the placeholders of the configuration and of the expected texts.
func (j *joining) fill(cluster *ekstypes.Cluster) {
	kernelArch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[j.arch]
	words := strings.NewReplacer("ARCH", j.image, "KERNEL_ARCH", kernelArch, "CLUSTER", *cluster.Name, "ENDPOINT", *cluster.Endpoint,
		"AUTHORITY", *cluster.CertificateAuthority.Data, "CIDR", *cluster.KubernetesNetworkConfig.ServiceIpv4Cidr)
	for _, text := range []*string{&j.images, &j.userData, &j.wantImage} {
		*text = words.Replace(*text)
	}
	j.wantConsole = slices.Clone(j.wantConsole)
	for i := range j.wantConsole {
		j.wantConsole[i] = words.Replace(j.wantConsole[i])
	}
}

// ownData returns spec.userData as YAML.
func (j *joining) ownData() string {
	if j.userData == "" {
		return ""
	}
	return "\n  userData: |\n    " + strings.ReplaceAll(strings.TrimSuffix(j.userData, "\n"), "\n", "\n    ")
}

// joined checks the node on which the row's pod runs, and returns its instance.
func (j *joining) joined(t *testing.T, l *lab.Lab, namespace string) world.Instance {
	t.Helper()
	pods, err := l.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + j.name})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v; want 1", len(pods.Items), err)
	}
	var node *corev1.Node
	within(t, l, time.Minute, "the node to be initialized, without the taint not-ready", func(ctx context.Context) (bool, error) {
		var err error
		node, err = l.Kube.CoreV1().Nodes().Get(ctx, pods.Items[0].Spec.NodeName, metav1.GetOptions{})
		return err == nil && node.Labels[karpenterv1.LabelInitialized] == "true" && !isHeldBack(node), err
	})
	var image world.Image
	all := instancesOf(l, j.name)
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
		"image": strings.Contains(image.Name, j.wantImage), "family": image.Family, "image's architecture": image.Architecture,
		"system": strings.HasPrefix(node.Status.NodeInfo.OSImage, j.wantSystem), "node's architecture": node.Status.NodeInfo.Architecture,
		"label": node.Labels[corev1.LabelArchStable], "own label": node.Labels["own"], "cpu": node.Status.Allocatable.Cpu().String(),
	}
	want := map[string]any{
		"ready": true, "taints": "[]", "instance": "aws:///" + i.Zone + "/" + i.ID, "type": j.instanceType, "architecture": j.image,
		"image": true, "family": j.wantFamily, "image's architecture": j.image,
		"system": true, "node's architecture": j.arch,
		"label": j.arch, "own label": j.wantLabel, "cpu": cmp.Or(j.wantCPU, "1930m"),
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\nimage %q, want %q; system %q, want %q…", diff, image.Name, j.wantImage,
			node.Status.NodeInfo.OSImage, j.wantSystem)
	}
	console := l.Console(i.ID)
	rest := console
	for _, want := range j.wantConsole {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("the console does not contain %q in the expected order:\n%s", want, console)
			break
		}
		rest = after
	}
	return i
}

// rendered returns the user data that `joiner render userdata` prints for the class and the pool of a row.
func rendered(t *testing.T, l *lab.Lab, row joining, cluster *ekstypes.Cluster) string {
	t.Helper()
	c, p := &awsv1.EC2NodeClass{}, &karpenterv1.NodePool{}
	var manifests bytes.Buffer
	for _, object := range []client.Object{c, p} {
		if err := l.Client.Get(t.Context(), client.ObjectKey{Name: row.name}, object); err != nil {
			t.Fatal(err)
		}
	}
	c.TypeMeta = metav1.TypeMeta{APIVersion: awsv1.GroupVersion.String(), Kind: awsv1.Kind}
	p.TypeMeta = metav1.TypeMeta{APIVersion: karpenterv1.GroupVersion.String(), Kind: "NodePool"}
	for _, object := range []client.Object{c, p} {
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
		"--instance-type", row.instanceType, "--region", l.Region, "--cluster-name", *cluster.Name, "--cluster-endpoint", *cluster.Endpoint,
		"--cluster-ca", *cluster.CertificateAuthority.Data, "--service-cidr", *cluster.KubernetesNetworkConfig.ServiceIpv4Cidr,
		"--cluster-dns", service.Spec.ClusterIP)
	var stderr bytes.Buffer
	render.Stdin, render.Stderr = &manifests, &stderr
	out, err := render.Output()
	var answer struct{ UserData string }
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		t.Fatalf("joiner render userdata: %v\n%s", err, &stderr)
	}
	return answer.UserData
}

// describe returns EKS's description of the lab's cluster.
func describe(t *testing.T, l *lab.Lab) *ekstypes.Cluster {
	t.Helper()
	out, err := eks.NewFromConfig(l.AWS()).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: &l.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	return out.Cluster
}

// goldenImages registers images of the account. EKS does not publish Amazon Linux 2 images any more, and Custom images
// always belong to the account.
func goldenImages(l *lab.Lab) {
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
