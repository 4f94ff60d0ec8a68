package evidence

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// authorityFix is the fix if it cannot be checked whether a Deployment or Lease is the controller's.
const authorityFix = "get the permission to list clusterroles and clusterrolebindings, or set --controller NAMESPACE/NAME"

// authority returns the result of readAuthority. It keeps a result without error for later calls.
func (r *Reader) authority(ctx context.Context) (authority, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known != nil {
		return *r.known, nil
	}
	out, err := readAuthority(ctx, r.objects)
	if err == nil {
		r.known = &out
	}
	return out, err
}

// Controller returns the installation of Joiner or Karpenter; found is false if there is none. chosen names its
// Deployment, as namespace/name. If chosen is empty, candidates are the Deployments whose ServiceAccount may write the
// status of NodeClaims, and those in kube-system with a controller's name. Of several candidates, Controller takes the
// only one with replicas; if none has replicas, Joiner rather than Karpenter. If several have replicas, it takes the
// one whose pod holds the Lease; without such a pod, the error asks the user to choose. events are the events of pods.
// source names the Deployment or ServiceAccount that was found.
func (r *Reader) Controller(ctx context.Context, chosen string,
	events []PodEvent) (c diagnosis.Controller, source string, found bool, err error) {
	auth, err := r.authority(ctx)
	if err != nil {
		return c, "", false, err
	}
	d, others, err := r.installation(ctx, auth, chosen)
	if err != nil {
		return c, "", false, err
	}
	if d == nil {
		return r.fromServiceAccount(ctx, auth)
	}
	c.Namespace, c.Deployment, c.Others, c.Tolerates = d.Namespace, d.Name, others, toleratedTaints(&d.Spec.Template.Spec)
	c.ServiceAccount, c.Settings = serviceAccountOf(d), containerVariables(&d.Spec.Template.Spec, settingVariables()...)
	for name, value := range electionArgs(&d.Spec.Template.Spec) { // flags override variables
		if c.Settings == nil {
			c.Settings = map[string]string{}
		}
		c.Settings[name] = value
	}
	if c.Pods, err = r.controllerPods(ctx, d, events); err != nil {
		return c, "", false, err
	}
	account := &corev1.ServiceAccount{}
	if err := r.objects.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: c.ServiceAccount}, account); err != nil &&
		kubeclient.Classify(err) != kubeclient.Gone {
		return c, "", false, err
	}
	if role := roleOf(account); role != "" {
		c.Role, c.RoleSource = role, "annotation"
	}
	return c, "deployment " + d.Namespace + "/" + d.Name, true, nil
}

// fromServiceAccount returns the namespace, the ServiceAccount and the IAM role of a controller that has no Deployment.
func (r *Reader) fromServiceAccount(ctx context.Context, auth authority) (c diagnosis.Controller, source string, found bool, err error) {
	accounts, err := auth.serviceAccounts(ctx, r.objects)
	if err != nil || len(accounts) == 0 {
		return c, "", false, err
	}
	first := accounts[0] // accounts with a role come first
	if len(accounts) > 1 && roleOf(accounts[1]) != "" && roleOf(accounts[1]) != roleOf(first) {
		return c, "", false,
			fmt.Errorf("no Deployment is the controller, and several service accounts may be: %s/%s and %s/%s", first.Namespace, first.Name,
				accounts[1].Namespace, accounts[1].Name)
	}
	c.Namespace, c.ServiceAccount, c.Role = first.Namespace, first.Name, roleOf(first)
	if c.Role != "" {
		c.RoleSource = "annotation"
	}
	return c, "serviceaccount " + first.Namespace + "/" + first.Name, true, nil
}

// installation returns the Deployment of the controller; nil if there is none. others names the other candidates.
func (r *Reader) installation(ctx context.Context, auth authority, chosen string) (d *appsv1.Deployment, others []string, err error) {
	if chosen != "" {
		namespace, name, _ := strings.Cut(chosen, "/")
		d := &appsv1.Deployment{}
		if err := r.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
			if kubeclient.Classify(err) == kubeclient.Gone {
				return nil, nil, fmt.Errorf("there is no Deployment %s, which --controller names", chosen)
			}
			return nil, nil, err
		}
		return d, nil, nil
	}
	all, err := auth.installations(ctx, r.objects)
	if err != nil {
		return nil, nil, err
	}
	if len(all) == 0 {
		lookalikes, err := auth.lookalikes(ctx, r.objects)
		if err == nil && len(lookalikes) > 0 {
			err = fmt.Errorf("the Deployment %s has the name of a controller, but whether it is the controller cannot be checked: %s", strings.Join(lookalikes[:min(3, len(lookalikes))], ", "), authorityFix)
		}
		return nil, nil, err
	}
	index := 0 // Deployments with replicas come first
	if isAmbiguous := len(all) > 1 && ptr.Deref(all[1].Spec.Replicas, 1) != 0; isAmbiguous {
		if index, err = r.leaseHolder(ctx, all); err != nil {
			return nil, nil, err
		}
	}
	for i, other := range all {
		if i != index {
			others = append(others, other.Namespace+"/"+other.Name)
		}
	}
	return all[index], others, nil
}

// leaseHolder returns the index of the Deployment whose pod holds the Lease. If no such Deployment is found, the error
// asks the user to choose.
func (r *Reader) leaseHolder(ctx context.Context, all []*appsv1.Deployment) (int, error) {
	var names []string
	for i, d := range all {
		names = append(names, d.Namespace+"/"+d.Name)
		settings := containerVariables(&d.Spec.Template.Spec, leaseVariable, leaseNamespaceVariable)
		if settings == nil {
			settings = map[string]string{}
		}
		for name, value := range electionArgs(&d.Spec.Template.Spec) {
			settings[name] = value
		}
		lease, found, err := r.Lease(ctx, settings[leaseVariable], settings[leaseNamespaceVariable])
		if err != nil || !found || lease.Namespace != cmp.Or(settings[leaseNamespaceVariable], d.Namespace) {
			continue
		}
		if pod, _, ok := strings.Cut(lease.Holder, "_"); ok && r.isPodOf(ctx, d, pod) { // the holder is POD_UUID
			return i, nil
		}
	}
	return 0, fmt.Errorf("several Deployments may be the controller, and none has a pod that holds its lease: %s; choose one with --controller NAMESPACE/NAME", strings.Join(names, ", "))
}

// isPodOf reports whether a pod with this name belongs to a Deployment, by its owner references: pod, ReplicaSet,
// Deployment.
func (r *Reader) isPodOf(ctx context.Context, d *appsv1.Deployment, name string) bool {
	pod, set := &corev1.Pod{}, &appsv1.ReplicaSet{}
	if err := r.objects.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, pod); err != nil {
		return false
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" ||
		r.objects.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: owner.Name}, set) != nil {
		return false
	}
	deployment := metav1.GetControllerOf(set)
	return deployment != nil && set.UID == owner.UID && deployment.UID == d.UID && deployment.Kind == "Deployment"
}
