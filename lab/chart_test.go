package lab_test

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/lab"
)

// helmVariable is the environment variable with the path of Helm, which make e2e sets. Without the variable, tests
// of the chart are skipped.
const helmVariable = "HELM_BINARY"

const chartNamespace = "node-autoscaler"

// installation is an installation of the chart in a lab.
type installation struct {
	t              *testing.T
	l              *lab.Lab
	crds           definitions
	helm           string            // path of Helm
	podControllers []*lab.Controller // the test runs them, because no program runs in the chart's pods
}

// TestChart installs, upgrades and uninstalls the chart with real Helm, in a namespace with the restricted Pod Security
// Standard. It installs the previous version with its CRDs, and runs two controllers with the environment and the
// service account of the chart's pods. 50 pods get nodes. The upgrade to this version installs newer CRDs, and no node
// drifts or is replaced. After the commands of the uninstallation guide, nothing remains in the cluster or in AWS.
// (TestSandboxedControllers also kills the controllers.)
func TestChart(t *testing.T) {
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
	}
	l := parallelLab(t, lab.Options{Bare: true})
	in := &installation{t: t, l: l, crds: definitionsOf(t, l), helm: helm}
	t.Cleanup(func() { recordRequests(l, chartNamespace, "joiner") })
	zones := in.launchSystemNodes()
	in.makeNamespace()
	in.awaitCompleteNodes(len(zones)) // one node in each zone
	before := in.inventory()

	in.installOlderDefinitions()
	in.run("install", "joiner", in.chartWithVersion("0.0.1"), "-n", chartNamespace, "--wait", "--timeout", "90s",
		"--set", "settings.clusterName="+l.Cluster, "--set", "crds.apply=false")
	in.checkSpread(zones)
	in.start()
	name := newTestNamespace(t, l)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}"),
		deployment(name, "web", 50, "500m", "256Mi", "test: "+name),
	)
	awaitRunning(t, l, name, 50, time.Minute)
	in.upgrade(name)
	scale(t, l, name, "web", 60)
	awaitRunning(t, l, name, 60, time.Minute)

	deleteNamespace(t, l, name)
	in.followUninstallGuide()
	in.awaitNothingNew(before)
	checkNoDenials(t, l, chartNamespace, "joiner")
}

func chartFolder(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../deploy/charts/joiner")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs Helm as the cluster's administrator.
func (in *installation) run(args ...string) {
	in.t.Helper()
	home := filepath.Join(in.l.Home, "helm")
	cmd := exec.CommandContext(in.t.Context(), in.helm, args...)
	cmd.Env = []string{
		"KUBECONFIG=" + in.l.Kubeconfig, "HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home,
		"PATH=" + os.Getenv("PATH"),
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		in.t.Fatalf("helm %s: %v\n%s\n%s", strings.Join(args, " "), err, out, in.l.Evidence(context.Background()))
	}
}

// chartWithVersion copies the chart, sets the version of the copy, and returns its folder.
func (in *installation) chartWithVersion(version string) string {
	in.t.Helper()
	to := filepath.Join(in.t.TempDir(), "joiner")
	if err := os.CopyFS(to, os.DirFS(chartFolder(in.t))); err != nil {
		in.t.Fatal(err)
	}
	file := filepath.Join(to, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		in.t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^version: .*$`)
	if err := os.WriteFile(file, line.ReplaceAll(text, []byte("version: "+version)), 0o600); err != nil {
		in.t.Fatal(err)
	}
	return to
}

// launchSystemNodes starts two nodes in two zones, and returns the zones. One node has the taint of Fargate nodes, the
// other has the taint CriticalAddonsOnly. The chart's pods run only if they tolerate both taints.
func (in *installation) launchSystemNodes() map[string]bool {
	in.t.Helper()
	first := launch(in.t, in.l, lab.NodeRole, "group=system")
	out, err := ec2.NewFromConfig(in.l.AWS()).RunInstances(in.t.Context(), &ec2.RunInstancesInput{
		ImageId: aws.String(al2023(in.t, in.l)), InstanceType: ec2types.InstanceTypeM5Large, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: &in.l.Estate.PrivateSubnets[1].ID, SecurityGroupIds: []string{in.l.Estate.NodeSG.ID},
		IamInstanceProfile: &ec2types.IamInstanceProfileSpecification{Name: aws.String(nameOf(in.t) + "-" + lab.NodeRole)},
		UserData:           aws.String(base64.StdEncoding.EncodeToString([]byte(first.UserData))),
	})
	if err != nil {
		in.t.Fatal(err)
	}
	zones := map[string]bool{}
	taints := map[string]corev1.Taint{
		first.ID:                     {Key: "eks.amazonaws.com/compute-type", Value: "fargate", Effect: corev1.TaintEffectNoSchedule},
		*out.Instances[0].InstanceId: {Key: "CriticalAddonsOnly", Value: "true", Effect: corev1.TaintEffectNoExecute},
	}
	for _, i := range in.l.Instances() {
		taint, ok := taints[i.ID]
		if !ok {
			continue
		}
		awaitReadyNode(in.t, in.l, i)
		zones[i.Zone] = true
		var node corev1.Node
		if err := in.l.Client.Get(in.t.Context(), client.ObjectKey{Name: i.PrivateDNSName}, &node); err != nil {
			in.t.Fatal(err)
		}
		unchanged := client.MergeFrom(node.DeepCopy())
		node.Spec.Taints = append(node.Spec.Taints, taint)
		if err := in.l.Client.Patch(in.t.Context(), &node, unchanged); err != nil {
			in.t.Fatal(err)
		}
	}
	return zones
}

func (in *installation) makeNamespace() {
	in.t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: chartNamespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := in.l.Client.Create(in.t.Context(), space); err != nil {
		in.t.Fatal(err)
	}
}

// checkSpread checks that the chart has two pods, one in each of the zones. It sets the values of zones to false.
func (in *installation) checkSpread(zones map[string]bool) {
	in.t.Helper()
	var pods corev1.PodList
	if err := in.l.Client.List(in.t.Context(), &pods, client.InNamespace(chartNamespace)); err != nil {
		in.t.Fatal(err)
	}
	emptyZones := len(zones)
	for _, p := range pods.Items {
		var node corev1.Node
		if err := in.l.Client.Get(in.t.Context(), client.ObjectKey{Name: p.Spec.NodeName}, &node); err != nil {
			in.t.Fatal(err)
		}
		if zone := node.Labels[corev1.LabelTopologyZone]; zones[zone] {
			emptyZones--
			zones[zone] = false
		}
	}
	if len(pods.Items) != 2 || emptyZones != 0 {
		in.t.Errorf("the chart has %d pods, want 2; %d zones have none of them, want 0", len(pods.Items), emptyZones)
	}
}

// start runs two controllers, because the Deployment has two replicas.
func (in *installation) start() {
	in.t.Helper()
	in.podControllers = []*lab.Controller{in.runController(), in.runController()}
}

func (in *installation) runController() *lab.Controller {
	in.t.Helper()
	return runAsPod(in.t, in.l, in.crds.path, chartNamespace)
}

// runAsPod runs the program at path like a pod of the chart in the namespace: with the pod's environment and service
// account. more are further settings, as NAME=value.
func runAsPod(t *testing.T, l *lab.Lab, path, namespace string, more ...string) *lab.Controller {
	t.Helper()
	var d appsv1.Deployment
	if err := l.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "joiner"}, &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	config, err := l.ServiceAccounts.Kubeconfig(t.Context(), namespace, pod.ServiceAccountName)
	if err != nil {
		t.Fatal(err)
	}
	// These two settings replace the files of a pod's service account. RunController sets the ports.
	settings := []string{"KUBECONFIG=" + config, "LEADER_ELECTION_NAMESPACE=" + namespace}
	for _, e := range pod.Containers[0].Env {
		if e.ValueFrom == nil && e.Name != "METRICS_PORT" && e.Name != "HEALTH_PROBE_PORT" {
			settings = append(settings, e.Name+"="+e.Value)
		}
	}
	if args := pod.Containers[0].Args; !slices.Equal(args, []string{"controller"}) {
		t.Fatalf("the pods run joiner %v, want joiner controller", args)
	}
	c, err := l.RunController(t.Context(), path, append(settings, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

// stop ends the controllers with a signal, as the kubelet does, so that they release the Lease.
func (in *installation) stop() {
	for _, c := range in.podControllers {
		c.Interrupt()
	}
	for _, c := range in.podControllers {
		<-c.Done()
	}
}
