package evidence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// controllerAccount returns a ServiceAccount of a controller, and the ClusterRole and ClusterRoleBinding that allow it
// to write the status of NodeClaims.
func controllerAccount(namespace, name string) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodeclaims/status"}, Verbs: []string{"patch"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: namespace + "-" + name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
	}
}

func readerOf(t *testing.T, leases []runtime.Object, objects ...client.Object) *Reader {
	t.Helper()
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return &Reader{objects: clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		clientset: fake.NewClientset(leases...)}
}

// TestLease: if a controller was moved, the lease that was renewed last counts. A lease that a tenant created does not
// count.
func TestLease(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	lease := func(namespace, holder string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: LeaseName}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: renewed}}}
	}
	leases := []runtime.Object{lease("kube-system", "new", noon), lease("karpenter", "old", noon.Add(-time.Hour)),
		lease("tenant", "tenant-0_x", noon.Add(time.Hour)),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "z", Name: LeaseName}}}
	reader := readerOf(t, leases, controllerAccount("karpenter", "karpenter")...)
	got, found, err := reader.Lease(t.Context(), "")
	want := diagnosis.Lease{Namespace: "kube-system", Name: LeaseName, Holder: "new", Renewed: noon, Seconds: 15}
	if diff := cmp.Diff(want, got); err != nil || !found || diff != "" {
		t.Errorf("found %t, error %v (-want +got):\n%s", found, err, diff)
	}
	reader = readerOf(t, leases[1:], controllerAccount("karpenter", "karpenter")...)
	if got, found, err := reader.Lease(t.Context(), ""); err != nil || !found || got.Holder != "old" {
		t.Errorf("without the new lease: %+v, %t, %v; want the old one", got, found, err)
	}
	reader = readerOf(t, leases[2:])
	if got, found, err := reader.Lease(t.Context(), ""); err != nil || found {
		t.Errorf("the lease of a tenant is returned: %+v, %v", got, err)
	}
	if got, found, err := readerOf(t, nil).Lease(t.Context(), "mine"); err != nil || found {
		t.Errorf("without a lease: %+v, %v; want none", got, err)
	}
}

// TestController: the controller is recognized by the permissions of its ServiceAccount, and not by the name of a
// Deployment.
func TestController(t *testing.T) {
	t.Parallel()
	deployment := func(namespace, name, account string, replicas int32) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			UID: types.UID(namespace + name)}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{}}}
		d.Annotations = map[string]string{"meta.helm.sh/release-name": "joiner"}
		d.Spec.Template.Spec.ServiceAccountName = account
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "controller",
			Env: []corev1.EnvVar{{Name: "CLUSTER_NAME", Value: name + "; touch pwned"}}}}
		return d
	}
	pod := func(namespace, deployment string) []client.Object {
		return []client.Object{
			&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment + "-1", UID: "set",
				OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: deployment,
					UID: types.UID(namespace + deployment), Controller: ptr.To(true)}}}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment + "-1-a",
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: deployment + "-1", UID: "set", Controller: ptr.To(true)}}}},
		}
	}
	leaseOf := func(namespace, holder string) []runtime.Object {
		return []runtime.Object{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: LeaseName},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}}
	}
	// impostor has objects of tenants that are in the cluster of every case.
	impostor := []client.Object{deployment("apps", "joiner", "joiner", 1), deployment("tenant", "karpenter", "", 3),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "joiner",
			Annotations: map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/attacker"}}}}
	for name, c := range map[string]struct {
		objects []client.Object
		leases  []runtime.Object
		chosen  string
		want    string // part of NAMESPACE/NAME of the Deployment (NAMESPACE/ if there is none), or of the error; or "none"
		others  int
	}{
		"in kube-system": {objects: []client.Object{deployment("kube-system", "joiner", "", 1)}, want: "kube-system/joiner"},
		"in its own namespace": {objects: append(controllerAccount("karpenter", "karpenter"),
			deployment("karpenter", "renamed", "karpenter", 2)), want: "karpenter/renamed"},
		"with another service account": {objects: append(controllerAccount("karpenter", "karpenter"),
			deployment("karpenter", "a", "default", 2)), want: "karpenter/"},
		"no controller": {want: "none"},
		"Karpenter has no replicas": {objects: append(controllerAccount("karpenter", "karpenter"),
			deployment("karpenter", "karpenter", "karpenter", 0), deployment("kube-system", "joiner", "", 2)),
			want: "kube-system/joiner", others: 1},
		"Joiner has no replicas": {objects: append(controllerAccount("karpenter", "karpenter"),
			deployment("karpenter", "karpenter", "karpenter", 2), deployment("kube-system", "joiner", "", 0)),
			want: "karpenter/karpenter", others: 1},
		"both without replicas": {objects: append(controllerAccount("karpenter", "karpenter"),
			deployment("karpenter", "karpenter", "karpenter", 0), deployment("kube-system", "joiner", "", 0)),
			want: "kube-system/joiner", others: 1},
		"both run": {objects: append(controllerAccount("karpenter", "karpenter"),
			deployment("karpenter", "karpenter", "karpenter", 2), deployment("kube-system", "joiner", "", 2)), want: "choose one with --controller"},
		"both run, one holds the lease": {objects: slices.Concat(controllerAccount("karpenter", "karpenter"),
			pod("karpenter", "karpenter"), []client.Object{deployment("karpenter", "karpenter", "karpenter", 2),
				deployment("kube-system", "joiner", "", 2)}), leases: leaseOf("karpenter", "karpenter-1-a_uuid"), want: "karpenter/karpenter", others: 1},
		"both run, another pod holds the lease": {objects: append(controllerAccount("karpenter", "karpenter"),
			deployment("karpenter", "karpenter", "karpenter", 2), deployment("kube-system", "joiner", "", 2),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "karpenter-1-a"}}),
			leases: leaseOf("karpenter", "karpenter-1-a_uuid"), want: "choose one with --controller"},
		"chosen by the user": {objects: append(controllerAccount("karpenter", "karpenter"),
			deployment("karpenter", "karpenter", "karpenter", 2), deployment("kube-system", "joiner", "", 2)),
			chosen: "karpenter/karpenter", want: "karpenter/karpenter"},
		"the chosen one is missing": {chosen: "karpenter/karpenter", want: "there is no Deployment karpenter/karpenter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := readerOf(t, c.leases, append(slices.Clone(impostor), c.objects...)...)
			got, _, found, err := reader.Controller(t.Context(), c.chosen, nil)
			result := "none"
			switch {
			case err != nil:
				result = err.Error()
			case found:
				result = got.Namespace + "/" + got.Deployment
			}
			if !strings.Contains(result, c.want) || len(got.Others) != c.others || got.Role != "" || strings.Contains(result, "apps/") {
				t.Errorf("found %s, %+v; want %s and %d others", result, got, c.want, c.others)
			}
		})
	}
}

// TestControllerUnchecked: if the user may not read ClusterRoleBindings, the error asks for a choice, and no Deployment
// of a tenant counts as the controller.
func TestControllerUnchecked(t *testing.T) {
	t.Parallel()
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	lookalike := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "karpenter"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}}
	live := interceptor.NewClient(clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(lookalike).Build(), interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*rbacv1.ClusterRoleList); ok {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "", errors.New("no"))
			}
			return api.List(ctx, list, options...)
		}})
	reader := &Reader{objects: live, clientset: fake.NewClientset()}
	if c, _, found, err := reader.Controller(t.Context(), "", nil); found || err == nil ||
		!strings.Contains(err.Error(), "karpenter/karpenter has the name of a controller") || !strings.Contains(err.Error(), "--controller") {
		t.Errorf("without a choice: %+v, %v; want an error that asks for one", c, err)
	}
	if c, _, found, err := reader.Controller(t.Context(), "karpenter/karpenter", nil); !found || err != nil || c.Deployment != "karpenter" {
		t.Errorf("with the Deployment chosen: %+v, %v; want that Deployment", c, err)
	}
}

// TestElectionArgs: the settings of the lease are also read from command-line arguments.
func TestElectionArgs(t *testing.T) {
	t.Parallel()
	spec := corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"/joiner"},
		Args: []string{"controller", "--leader-election-name", "mine", "--disable-leader-election", "--cluster-name=prod"}}}}
	want := map[string]string{"LEADER_ELECTION_NAME": "mine", "DISABLE_LEADER_ELECTION": "true"}
	if diff := cmp.Diff(want, electionArgs(&spec)); diff != "" {
		t.Errorf("name as the next argument (-want +got):\n%s", diff)
	}
	spec.Containers[0].Args = []string{"--leader-election-name=other", "--disable-leader-election=false"}
	want = map[string]string{"LEADER_ELECTION_NAME": "other", "DISABLE_LEADER_ELECTION": "false"}
	if diff := cmp.Diff(want, electionArgs(&spec)); diff != "" {
		t.Errorf("values after = (-want +got):\n%s", diff)
	}
}
