package evidence

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// authority decides which Deployments are installations of a controller. A tenant may give a Deployment in its own
// namespace any name, label and annotation, but cannot create a ClusterRoleBinding and cannot write to kube-system.
type authority struct {
	// accounts are the ServiceAccounts, as namespace/name, that a ClusterRoleBinding allows to write the status of
	// NodeClaims.
	accounts map[string]bool
	// denied means that reading ClusterRoleBindings or ClusterRoles is forbidden, or that the API does not exist. Then
	// only Deployments in kube-system are recognized.
	denied bool
}

func readAuthority(ctx context.Context, api client.Reader) (authority, error) {
	out := authority{accounts: map[string]bool{}}
	writers := map[string]bool{}
	_, err := readPages(ctx, api, maxObjects, func() client.ObjectList { return &rbacv1.ClusterRoleList{} }, func(l client.ObjectList) int {
		list := l.(*rbacv1.ClusterRoleList)
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].Rules, writesClaimStatus) {
				writers[list.Items[i].Name] = true
			}
		}
		return len(list.Items)
	})
	if err == nil {
		_, err = readPages(ctx, api, maxObjects, func() client.ObjectList { return &rbacv1.ClusterRoleBindingList{} },
			func(l client.ObjectList) int {
				list := l.(*rbacv1.ClusterRoleBindingList)
				for i := range list.Items {
					out.add(&list.Items[i], writers)
				}
				return len(list.Items)
			})
	}
	switch {
	case kubeclient.IsForbidden(err), kubeclient.Classify(err) == kubeclient.Gone, meta.IsNoMatchError(err): // or the API does not exist
		return authority{denied: true}, nil
	case err != nil:
		return authority{}, fmt.Errorf("read clusterrolebindings: %w", err)
	}
	return out, nil
}

// writesClaimStatus reports whether a rule names the status of NodeClaims and allows writes: only a controller of
// NodeClaims has such a rule. For a rule about all resources, such as an administrator's, it returns false.
func writesClaimStatus(r rbacv1.PolicyRule) bool {
	return slices.Contains(r.APIGroups, karpv1.Group) && slices.Contains(r.Resources, "nodeclaims/status") &&
		slices.ContainsFunc(r.Verbs, func(v string) bool { return v == "patch" || v == "update" || v == "*" })
}

// add adds the ServiceAccounts to which the binding gives one of the ClusterRoles in writers.
func (a authority) add(b *rbacv1.ClusterRoleBinding, writers map[string]bool) {
	if b.RoleRef.Kind != "ClusterRole" || !writers[b.RoleRef.Name] {
		return
	}
	for _, s := range b.Subjects {
		if s.Kind == rbacv1.ServiceAccountKind {
			a.accounts[s.Namespace+"/"+s.Name] = true
		}
	}
}

// isInstallation reports whether a Deployment is an installation of a controller of NodeClaims.
func (a authority) isInstallation(d *appsv1.Deployment) bool {
	return a.accounts[d.Namespace+"/"+serviceAccountOf(d)] || a.isInKubeSystem(&d.ObjectMeta)
}

// isInKubeSystem reports whether an object has a controller's name and is in kube-system, where no tenant can write.
func (authority) isInKubeSystem(o *metav1.ObjectMeta) bool {
	return o.Namespace == metav1.NamespaceSystem && hasControllerName(o)
}

// namespaces returns the namespaces that can contain a controller, sorted.
func (a authority) namespaces() []string {
	out := map[string]bool{metav1.NamespaceSystem: true}
	for account := range a.accounts {
		out[namespaceOfKey(account)] = true
	}
	return slices.Sorted(maps.Keys(out))
}

func serviceAccountOf(d *appsv1.Deployment) string {
	return cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
}

// installations returns the Deployments that are controllers. Those with replicas come first: after a migration the old
// controller has none. Among equals, Joiner comes before Karpenter.
func (a authority) installations(ctx context.Context, api client.Reader) ([]*appsv1.Deployment, error) {
	var out []*appsv1.Deployment
	for _, namespace := range a.namespaces() {
		_, err := readPages(ctx, api, maxObjects, func() client.ObjectList { return &appsv1.DeploymentList{} }, func(l client.ObjectList) int {
			list := l.(*appsv1.DeploymentList)
			for i := range list.Items {
				if a.isInstallation(&list.Items[i]) {
					out = append(out, &list.Items[i])
				}
			}
			return len(list.Items)
		}, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
	}
	sortInstallations(out)
	return out, nil
}

func sortInstallations(all []*appsv1.Deployment) {
	rank := func(d *appsv1.Deployment) int {
		n := 0
		if ptr.Deref(d.Spec.Replicas, 1) == 0 {
			n = 2
		}
		if d.Labels[appLabel] != "joiner" && d.Name != "joiner" {
			n++
		}
		return n
	}
	slices.SortStableFunc(all, func(x, y *appsv1.Deployment) int { return rank(x) - rank(y) })
}

// lookalikes returns the Deployments outside kube-system with a controller's name, as "namespace/name". If
// ClusterRoleBindings can be read, it returns none, because installations then finds the controllers by permissions.
func (a authority) lookalikes(ctx context.Context, api client.Reader) ([]string, error) {
	if !a.denied {
		return nil, nil
	}
	var out []string
	const limit = 5000 // the names are only for an error message
	_, err := readPages(ctx, api, limit, func() client.ObjectList { return &appsv1.DeploymentList{} }, func(l client.ObjectList) int {
		list := l.(*appsv1.DeploymentList)
		for i := range list.Items {
			if d := &list.Items[i]; hasControllerName(&d.ObjectMeta) && !a.isInstallation(d) {
				out = append(out, d.Namespace+"/"+d.Name)
			}
		}
		return len(list.Items)
	})
	return out, err
}

// serviceAccounts returns the existing ServiceAccounts that a controller may run as; those with an IAM role come first.
func (a authority) serviceAccounts(ctx context.Context, api client.Reader) ([]*corev1.ServiceAccount, error) {
	var out []*corev1.ServiceAccount
	keys := slices.Sorted(maps.Keys(a.accounts))
	for _, name := range []string{"joiner", "karpenter"} {
		if key := metav1.NamespaceSystem + "/" + name; !a.accounts[key] {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		account := &corev1.ServiceAccount{}
		namespace := namespaceOfKey(key)
		switch err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key[len(namespace)+1:]}, account); {
		case err == nil:
			out = append(out, account)
		case kubeclient.Classify(err) != kubeclient.Gone:
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(x, y *corev1.ServiceAccount) int { return oneIf(roleOf(x) == "") - oneIf(roleOf(y) == "") })
	return out, nil
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func roleOf(a *corev1.ServiceAccount) string { return a.Annotations["eks.amazonaws.com/role-arn"] }

func namespaceOfKey(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// PauseNamespaces returns the namespaces from which controllers of this cluster read the pause ConfigMap, sorted: the
// value of LEADER_ELECTION_NAMESPACE, or else their own namespace. If Joiner is installed, Karpenter is ignored. A
// Deployment in a tenant's namespace that only has a controller's name is ignored.
func PauseNamespaces(ctx context.Context, live client.Reader) ([]string, error) {
	auth, err := readAuthority(ctx, live)
	if err != nil {
		return nil, err
	}
	all, err := auth.installations(ctx, live)
	if err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	joiner, karpenter := map[string]bool{}, map[string]bool{}
	for _, d := range all {
		namespaces := karpenter
		if d.Labels[appLabel] == "joiner" || d.Name == "joiner" {
			namespaces = joiner
		}
		namespaces[cmp.Or(containerVariables(&d.Spec.Template.Spec, "LEADER_ELECTION_NAMESPACE")["LEADER_ELECTION_NAMESPACE"],
			d.Namespace)] = true
	}
	if len(joiner) == 0 {
		joiner = karpenter
	}
	return slices.Sorted(maps.Keys(joiner)), nil
}
