package lab_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/lab"
)

// unrestricted are the files of documented values whose pods the restricted Pod Security Standard rejects, each with
// the cause in the API server's message and a function that removes the cause from the pod. docs/installation.md names
// the same two causes.
var unrestricted = map[string]struct {
	says    []string
	without func(*corev1.PodSpec)
}{
	"everything": {[]string{"hostNetwork=true", `containers "wait", "proxy" must set`},
		func(p *corev1.PodSpec) { ownNetwork(p); confine(p) }},
	"1.6-private":  {[]string{"hostNetwork=true"}, ownNetwork},
	"1.11-sidecar": {[]string{`containers "wait", "proxy" must set`}, confine},
}

// ownNetwork removes a pod from its node's network, which the standard forbids.
func ownNetwork(p *corev1.PodSpec) { p.HostNetwork, p.DNSPolicy = false, corev1.DNSClusterFirst }

// confine sets the controller's security context, as in the chart, on containers that have none.
func confine(p *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{p.InitContainers, p.Containers} {
		for i := range list {
			if list[i].SecurityContext == nil {
				list[i].SecurityContext = p.Containers[0].SecurityContext
			}
		}
	}
}

// TestRestricted lets the API server check, with the restricted Pod Security Standard, the pods of each file of
// documented values, both the chart's own and those written for Karpenter's chart.
func TestRestricted(t *testing.T) {
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
	}
	l := shared(t)
	const home = "restricted"
	_, err := l.Kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
		}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	judged := map[string]bool{}
	for _, pattern := range []string{"*.values.yaml", "of-karpenter/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(chartFolder(t)), "testdata", pattern))
		if err != nil || len(files) < 8 {
			t.Fatalf("%s: %d files of values, %v", pattern, len(files), err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".values")
			judged[name] = true
			admitted(t, l, home, name, deploymentIn(t, helm, file, home))
		}
	}
	for name := range unrestricted {
		if !judged[name] {
			t.Errorf("no values file %s", name)
		}
	}
	rolledOut(t, l, deploymentIn(t, helm, filepath.Join(filepath.Dir(chartFolder(t)), "testdata", "karpenter.values.yaml"), home))
}

// deploymentIn returns the Deployment that the chart renders with a file of values, in a namespace.
func deploymentIn(t *testing.T, helm, file, namespace string) *appsv1.Deployment {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), helm, "template", "joiner", chartFolder(t), "-n", namespace, "-f", file,
		"--show-only", "templates/deployment.yaml")
	cmd.Env = []string{"HOME=" + folder, "HELM_CACHE_HOME=" + folder, "HELM_CONFIG_HOME=" + folder, "HELM_DATA_HOME=" + folder}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm template -f %s: %v", file, err)
	}
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(out, d); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return d
}

// admitted lets the API server check a pod of the Deployment as a dry run. The pod is as the ReplicaSet controller
// would create it.
func admitted(t *testing.T, l *lab.Lab, namespace, name string, d *appsv1.Deployment) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: d.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName = namespace, d.Name+"-"
	makeNamed(t, l, pod)
	judge := func() error {
		_, err := l.Kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if refused, ok := unrestricted[name]; ok {
		err := judge()
		for _, says := range refused.says {
			if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
				t.Errorf("a pod of %s: %v; according to unrestricted it is rejected because of %s", name, err, says)
			}
		}
		refused.without(&pod.Spec)
	}
	if err := judge(); err != nil {
		t.Errorf("a pod of %s is rejected: %v", name, err)
	}
}

// makeNamed creates the objects that a pod refers to and other tools create: its service account and its priority
// class.
func makeNamed(t *testing.T, l *lab.Lab, pod *corev1.Pod) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.ServiceAccountName}}
	_, err := l.Kube.CoreV1().ServiceAccounts(pod.Namespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if class := pod.Spec.PriorityClassName; class != "" && !strings.HasPrefix(class, "system-") {
		priorityClass(t, l, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: 1000})
	}
}

// priorityClass creates a PriorityClass, and waits until pods may refer to it: the API server uses a cache of classes,
// which is updated a moment after they are stored. An existing class of the same name is not an error.
func priorityClass(t *testing.T, l *lab.Lab, class *schedulingv1.PriorityClass) {
	t.Helper()
	if _, err := l.Kube.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	within(t, l, 30*time.Second, "the API server to know the PriorityClass "+class.Name, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "of-class-"},
			Spec: corev1.PodSpec{PriorityClassName: class.Name, Containers: []corev1.Container{{Name: "main", Image: "pause"}}}}
		_, err := l.Kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil, err
	})
}

// rolledOut creates a Deployment and waits until all of its pods exist.
func rolledOut(t *testing.T, l *lab.Lab, d *appsv1.Deployment) {
	t.Helper()
	if _, err := l.Kube.AppsV1().Deployments(d.Namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Kube.CoreV1().Namespaces().Delete(context.Background(), d.Namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	within(t, l, 30*time.Second, "the pods of the Deployment to be created", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
		return err == nil && len(pods.Items) == int(*d.Spec.Replicas), err
	})
	events, err := l.Kube.CoreV1().Events(d.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "FailedCreate" || strings.Contains(e.Message, "PodSecurity") {
			t.Errorf("%s: %s", e.Reason, e.Message)
		}
	}
}
