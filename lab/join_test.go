package lab_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// TestControlPlane launches an instance without the controller. It checks that the instance's node joins, runs pods
// that kube-scheduler binds to it, and is removed with the instance.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	version, err := l.Kube.Discovery().ServerVersion()
	if err != nil || version.GitVersion != "v1.36.3" {
		t.Errorf("the server version is %v (error: %v), want v1.36.3", version, err)
	}
	name := nameOf(t)
	i := launch(t, l, lab.NodeRole, "pool="+name)
	awaitReadyNode(t, l, i)
	ctx := t.Context()
	if _, err := l.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, l, 20*time.Second, "a service account", func(ctx context.Context) (bool, error) {
		_, err := l.Kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
	pod := func(podName string, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: podName, Namespace: name, Annotations: annotations},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				NodeSelector:  map[string]string{"pool": name},
				Containers:    []corev1.Container{{Name: "main", Image: "pause"}},
			},
		}
	}
	for _, p := range []*corev1.Pod{pod("stays", nil), pod("ends", map[string]string{"lab.joiner.sh/run-for": "100ms"})} {
		if _, err := l.Kube.CoreV1().Pods(name).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitPhase := func(podName string, want corev1.PodPhase) {
		t.Helper()
		within(t, l, 30*time.Second, fmt.Sprintf("pod %s to be %s", podName, want), func(ctx context.Context) (bool, error) {
			p, err := l.Kube.CoreV1().Pods(name).Get(ctx, podName, metav1.GetOptions{})
			return err == nil && p.Status.Phase == want && p.Status.PodIP != "", err
		})
	}
	awaitPhase("stays", corev1.PodRunning)
	awaitPhase("ends", corev1.PodSucceeded)
	if err := l.Kube.CoreV1().Pods(name).Delete(ctx, "stays", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, l, 20*time.Second, "the deleted pod to be removed", func(ctx context.Context) (bool, error) {
		_, err := l.Kube.CoreV1().Pods(name).Get(ctx, "stays", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	terminate(t, l, i)
	within(t, l, 20*time.Second, "the node to be removed with its instance", func(ctx context.Context) (bool, error) {
		_, err := l.Kube.CoreV1().Nodes().Get(ctx, i.PrivateDNSName, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// TestRoleThatIsNotMapped tests user report case-1: the node role is not mapped. The API server responds with 401, no
// Node appears, and the console shows the cause. After the role is mapped, the node joins.
func TestRoleThatIsNotMapped(t *testing.T) {
	t.Parallel()
	for name, fix := range map[string]func(ctx context.Context, l *lab.Lab, role string) error{
		"aws-auth": func(ctx context.Context, l *lab.Lab, role string) error {
			return l.AddOns.MapRoles(ctx, l.Roles.ARN(lab.NodeRole), l.Roles.ARN(role))
		},
		"access entry": func(ctx context.Context, l *lab.Lab, role string) error {
			_, err := eks.NewFromConfig(l.AWS()).CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
				ClusterName: &l.Cluster, PrincipalArn: aws.String(l.Roles.ARN(role)), Type: aws.String("EC2_LINUX"),
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := sharedLab(t)
			role := "unmapped-" + strings.ReplaceAll(name, " ", "-")
			if err := l.Roles.AddNodeRole(role); err != nil {
				t.Fatal(err)
			}
			i := launch(t, l, role, "")
			within(t, l, 30*time.Second, "the console to show that the node was rejected twice", func(context.Context) (bool, error) {
				return strings.Count(l.Console(i.ID), `"Unable to register node with API server" err="Unauthorized"`) >= 2, nil
			})
			if _, err := l.Kube.CoreV1().Nodes().Get(t.Context(), i.PrivateDNSName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Node of the rejected instance: error %v, want NotFound", err)
			}
			log, err := os.ReadFile(l.Logs("authenticator"))
			if want := fmt.Sprintf(`access denied" arn=%q error="ARN is not mapped"`, l.Roles.ARN(role)); err != nil ||
				!strings.Contains(string(log), want) {
				t.Errorf("the authenticator's log does not contain %s (read error: %v)", want, err)
			}
			if err := fix(t.Context(), l, role); err != nil {
				t.Fatal(err)
			}
			awaitReadyNode(t, l, i)
			terminate(t, l, i)
		})
	}
}

// TestAPIServerIsUnreachable launches an instance in a security group without outbound rules. The console must show the
// timeout.
func TestAPIServerIsUnreachable(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	var group string
	l.Emulator.Do(func(_ *world.World, _ time.Time) {
		g, err := l.Estate.Region.Network.CreateSecurityGroup(l.Estate.VPC.ID, "closed", "no way out", nil)
		if err != nil {
			t.Error(err)
			return
		}
		g.Egress, group = nil, g.ID
	})
	i := launch(t, l, lab.NodeRole, "", group)
	within(t, l, 30*time.Second, "the console to show that the API server cannot be reached", func(context.Context) (bool, error) {
		return strings.Contains(l.Console(i.ID), "i/o timeout"), nil
	})
	terminate(t, l, i)
}

// launch starts an instance with handwritten user data. labels are the node labels in this user data, as
// KEY=VALUE,KEY=VALUE. groups are the security groups; empty: the cluster's group for nodes.
func launch(t *testing.T, l *lab.Lab, role, labels string, groups ...string) world.Instance {
	t.Helper()
	ctx := t.Context()
	iamClient := iam.NewFromConfig(l.AWS())
	profile := nameOf(t) + "-" + role
	if _, err := iamClient.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &profile}); err != nil {
		t.Fatal(err)
	}
	if _, err := iamClient.AddRoleToInstanceProfile(ctx,
		&iam.AddRoleToInstanceProfileInput{InstanceProfileName: &profile, RoleName: &role}); err != nil {
		t.Fatal(err)
	}
	cluster, err := eks.NewFromConfig(l.AWS()).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &l.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Cluster
	userData := fmt.Sprintf(`MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="X"

--X
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: %s, apiServerEndpoint: %q, certificateAuthority: %s, cidr: %s}
  kubelet:
    flags: ["--node-labels=%s"]
--X--
`, *c.Name, *c.Endpoint, *c.CertificateAuthority.Data, *c.KubernetesNetworkConfig.ServiceIpv4Cidr, labels)
	if len(groups) == 0 {
		groups = []string{l.Estate.NodeSG.ID}
	}
	image := al2023(t, l)
	out, err := ec2.NewFromConfig(l.AWS()).RunInstances(ctx, &ec2.RunInstancesInput{
		ImageId: &image, InstanceType: ec2types.InstanceTypeM5Large, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: &l.Estate.PrivateSubnets[0].ID, SecurityGroupIds: groups,
		IamInstanceProfile: &ec2types.IamInstanceProfileSpecification{Name: &profile},
		UserData:           aws.String(base64.StdEncoding.EncodeToString([]byte(userData))),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range l.Instances() {
		if i.ID == *out.Instances[0].InstanceId {
			return i
		}
	}
	t.Fatalf("instance %s does not exist", *out.Instances[0].InstanceId)
	return world.Instance{}
}

// al2023 returns the ID of an image of Amazon Linux 2023 for x86_64 and the cluster's version.
func al2023(t *testing.T, l *lab.Lab) string {
	t.Helper()
	id := ""
	l.Emulator.Do(func(w *world.World, _ time.Time) {
		for _, i := range l.Estate.Region.Images.All() {
			if i.Family == "AL2023" && i.Version == "1.36" && i.Architecture == "x86_64" && i.Variant == "standard" {
				id = i.ID
			}
		}
	})
	if id == "" {
		t.Fatal("no standard AL2023 image for x86_64 and 1.36")
	}
	return id
}

// awaitReadyNode waits until an instance's node is ready, has the label of its zone and has no taints.
func awaitReadyNode(t *testing.T, l *lab.Lab, i world.Instance) {
	t.Helper()
	within(t, l, time.Minute, "the node of "+i.ID+" to be ready", func(ctx context.Context) (bool, error) {
		node, err := l.Kube.CoreV1().Nodes().Get(ctx, i.PrivateDNSName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return node.Labels[corev1.LabelTopologyZone] == i.Zone && len(node.Spec.Taints) == 0, nil
			}
		}
		return false, fmt.Errorf("the node is not ready; taints %v", node.Spec.Taints)
	})
}

func terminate(t *testing.T, l *lab.Lab, i world.Instance) {
	t.Helper()
	_, err := ec2.NewFromConfig(l.AWS()).TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{i.ID}})
	if err != nil {
		t.Fatal(err)
	}
}
