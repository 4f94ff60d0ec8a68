package lab_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/permissions"
	"github.com/joiner-sh/joiner/lab"
)

// TestFewerPermissions runs the controller with custom roles. Without optional permissions, such as those for
// NodeOverlays, the controller is ready and works; it logs each disabled function in one line. Without a required
// permission, the controller does not start, and the error names the permission.
func TestFewerPermissions(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	minimal := kubeconfigWith(t, l, "minimal", func(resource, _ string) bool {
		return !slices.Contains([]string{"nodeoverlays", "nodeoverlays/status", "events"}, resource)
	})
	c := restartController(t, l, "KUBECONFIG="+minimal)
	within(t, l, 30*time.Second, "the controller to be ready", func(context.Context) (bool, error) {
		r, err := http.Get(c.Probes + "/readyz")
		if err != nil {
			return false, err
		}
		return r.StatusCode == http.StatusOK, r.Body.Close()
	})
	name := nameOf(t)
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: kubernetes.io/arch, operator: In, values: [amd64]}"),
		deployment("default", name, 1, "500m", "256Mi", "test: "+name))
	within(t, l, time.Minute, "the pod to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
	log := c.Tail(1000)
	for disabled, missing := range map[string]string{
		"a NodeOverlay without effect is not reported": "is not allowed to list nodeoverlays.karpenter.sh, watch nodeoverlays.karpenter.sh",
		"no events are emitted":                        "is not allowed to create events.events.k8s.io, patch events.events.k8s.io",
	} {
		if strings.Count(log, disabled) != 1 || !strings.Contains(log, missing) {
			t.Errorf("the log must contain %q exactly once, and also %q:\n%s", disabled, missing, log)
		}
	}

	if strings.Contains(log, "Server rejected event") {
		t.Errorf("the controller sends events without the permission, want no events:\n%s", log)
	}

	insufficient := kubeconfigWith(t, l, "insufficient", func(resource, verb string) bool {
		// All permissions except those for csinodes, and the patch of nodeclaims.
		return resource != "csinodes" && (resource != "nodeclaims" || verb != "patch")
	})
	for want, settings := range map[string][]string{
		"is not allowed to list csinodes.storage.k8s.io, watch csinodes.storage.k8s.io, " +
			"patch nodeclaims.karpenter.sh; give it the chart's roles": {"KUBECONFIG=" + insufficient},
		// NodeOverlays are optional, unless their feature gate is set.
		"list nodeoverlays.karpenter.sh, watch nodeoverlays.karpenter.sh; " +
			"give it the chart's roles": {"KUBECONFIG=" + minimal, "FEATURE_GATES=NodeOverlay=true"},
	} {
		refused, err := l.RunController(t.Context(), program(t), append(settings, "DISABLE_LEADER_ELECTION=true")...)
		if err == nil {
			refused.Kill()
			t.Errorf("the controller runs, want the error %q", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("the controller ended with %v, want %q", err, want)
		}
	}
}

// kubeconfigWith creates a service account with the permissions of the controller for which keep returns true. It
// returns the path of a kubeconfig for the service account.
func kubeconfigWith(t *testing.T, l *lab.Lab, name string, keep func(resource, verb string) bool) string {
	t.Helper()
	ctx, system := t.Context(), metav1.NamespaceSystem
	meta := metav1.ObjectMeta{Name: name, Namespace: system}
	var rules []rbacv1.PolicyRule
	for _, r := range permissions.Rules() {
		for _, resource := range r.Resources {
			verbs := slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool { return !keep(resource, verb) })
			if len(verbs) > 0 {
				rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{resource},
					ResourceNames: r.Names, Verbs: verbs})
			}
		}
	}
	_, err := l.Kube.CoreV1().ServiceAccounts(system).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err == nil {
		_, err = l.Kube.RbacV1().ClusterRoles().Create(ctx,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = l.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: system}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	path, err := l.ServiceAccounts.Kubeconfig(ctx, system, name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
