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

// rejectedValues are, by name, the values files whose pods the restricted Pod Security Standard rejects.
// docs/installation.md names these causes.
var rejectedValues = map[string]struct {
	causes       []string              // texts in the API server's message
	removeCauses func(*corev1.PodSpec) // changes the pod so that it is accepted
}{
	"everything": {[]string{"hostNetwork=true", `containers "wait", "proxy" must set`},
		func(p *corev1.PodSpec) { leaveHostNetwork(p); setSecurityContext(p) }},
	"1.6-private":  {[]string{"hostNetwork=true"}, leaveHostNetwork},
	"1.11-sidecar": {[]string{`containers "wait", "proxy" must set`}, setSecurityContext},
}

// leaveHostNetwork gives a pod its own network. The standard forbids the host's network.
func leaveHostNetwork(p *corev1.PodSpec) { p.HostNetwork, p.DNSPolicy = false, corev1.DNSClusterFirst }

// setSecurityContext copies the security context of the controller's container to containers that have none.
func setSecurityContext(p *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{p.InitContainers, p.Containers} {
		for i := range list {
			if list[i].SecurityContext == nil {
				list[i].SecurityContext = p.Containers[0].SecurityContext
			}
		}
	}
}

// TestRestricted checks the pods of each values file with the restricted Pod Security Standard of the API server. The
// files are the documented values of the chart, and values that were written for Karpenter's chart.
func TestRestricted(t *testing.T) {
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
	}
	l := sharedLab(t)
	const namespace = "restricted"
	_, err := l.Kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
		}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]bool{}
	for _, pattern := range []string{"*.values.yaml", "of-karpenter/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(chartFolder(t)), "testdata", pattern))
		if err != nil || len(files) < 8 {
			t.Fatalf("%s: %d values files, error %v; want at least 8", pattern, len(files), err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".values")
			checked[name] = true
			checkAdmitted(t, l, namespace, name, deploymentIn(t, helm, file, namespace))
		}
	}
	for name := range rejectedValues {
		if !checked[name] {
			t.Errorf("rejectedValues lists %s, but there is no such values file", name)
		}
	}
	checkRollout(t, l, deploymentIn(t, helm, filepath.Join(filepath.Dir(chartFolder(t)), "testdata", "karpenter.values.yaml"), namespace))
}

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

// checkAdmitted creates a pod of the Deployment as a dry run, as the ReplicaSet controller would create it. The API
// server must reject it if name is one of rejectedValues, and otherwise accept it.
func checkAdmitted(t *testing.T, l *lab.Lab, namespace, name string, d *appsv1.Deployment) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: d.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName = namespace, d.Name+"-"
	createReferenced(t, l, pod)
	dryRun := func() error {
		_, err := l.Kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if rejected, ok := rejectedValues[name]; ok {
		err := dryRun()
		for _, cause := range rejected.causes {
			if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), cause) {
				t.Errorf("create a pod of %s: error %v, want a rejection because of %s", name, err, cause)
			}
		}
		rejected.removeCauses(&pod.Spec)
	}
	if err := dryRun(); err != nil {
		t.Errorf("a pod of %s is rejected, want it accepted: %v", name, err)
	}
}

// createReferenced creates the objects that a pod refers to and that its Deployment does not create: the service
// account and the PriorityClass.
func createReferenced(t *testing.T, l *lab.Lab, pod *corev1.Pod) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.ServiceAccountName}}
	_, err := l.Kube.CoreV1().ServiceAccounts(pod.Namespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if class := pod.Spec.PriorityClassName; class != "" && !strings.HasPrefix(class, "system-") {
		createPriorityClass(t, l, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: 1000})
	}
}

// createPriorityClass creates a PriorityClass, and waits until pods may refer to it: the API server caches
// PriorityClasses and sees a new one a moment later. An existing class of the same name is not an error.
func createPriorityClass(t *testing.T, l *lab.Lab, class *schedulingv1.PriorityClass) {
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

// checkRollout creates a Deployment, waits until all of its pods exist, and checks that no event reports a rejection.
func checkRollout(t *testing.T, l *lab.Lab, d *appsv1.Deployment) {
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
			t.Errorf("an event reports a rejected pod: %s: %s; want none", e.Reason, e.Message)
		}
	}
}
