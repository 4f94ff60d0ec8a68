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

// whatIsDenied is the fix if a controller outside kube-system cannot be distinguished from a Deployment with its name.
const whatIsDenied = "get the permission to list clusterroles and clusterrolebindings, or set --controller NAMESPACE/NAME"

// authority returns the authority, which is read once per witness.
func (w *Witness) authority(ctx context.Context) (authority, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known != nil {
		return *w.known, nil
	}
	out, err := readAuthority(ctx, w.live)
	if err == nil {
		w.known = &out
	}
	return out, err
}

// Controller returns the installation of Joiner or Karpenter; found is false if there is none. chosen names its
// Deployment, as namespace/name. If chosen is empty, candidates are the Deployments whose ServiceAccount may write the
// status of NodeClaims, and those in kube-system with a controller's name. Of several candidates it takes the only one
// with replicas, or the one whose pod holds the Lease. If none qualifies, the error asks the user to choose. events are
// those of pods; source names the object that was found.
func (w *Witness) Controller(ctx context.Context, chosen string,
	events []PodEvent) (c diagnosis.Controller, source string, found bool, err error) {
	who, err := w.authority(ctx)
	if err != nil {
		return c, "", false, err
	}
	d, others, err := w.installation(ctx, who, chosen)
	if err != nil {
		return c, "", false, err
	}
	if d == nil {
		return w.accountAlone(ctx, who)
	}
	c.Namespace, c.Deployment, c.Others, c.Tolerates = d.Namespace, d.Name, others, toleratedWitness(&d.Spec.Template.Spec)
	c.Account, c.Settings = accountOf(d), envWitness(&d.Spec.Template.Spec, witnessedSettings()...)
	for name, value := range electionArgs(&d.Spec.Template.Spec) { // flags override variables
		if c.Settings == nil {
			c.Settings = map[string]string{}
		}
		c.Settings[name] = value
	}
	if c.Pods, err = w.controllerPods(ctx, d, events); err != nil {
		return c, "", false, err
	}
	account := &corev1.ServiceAccount{}
	if err := w.live.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: c.Account}, account); err != nil &&
		kubeclient.WhatNext(err) != kubeclient.Gone {
		return c, "", false, err
	}
	if role := roleOf(account); role != "" {
		c.Role, c.How = role, "annotation"
	}
	return c, "deployment " + d.Namespace + "/" + d.Name, true, nil
}

// accountAlone returns the ServiceAccount of a controller that has no Deployment.
func (w *Witness) accountAlone(ctx context.Context, who authority) (c diagnosis.Controller, source string, found bool, err error) {
	accounts, err := who.serviceAccounts(ctx, w.live)
	if err != nil || len(accounts) == 0 {
		return c, "", false, err
	}
	first := accounts[0]
	if len(accounts) > 1 && roleOf(accounts[1]) != "" && roleOf(accounts[1]) != roleOf(first) {
		return c, "", false,
			fmt.Errorf("no Deployment is the controller, and several service accounts may be: %s/%s and %s/%s", first.Namespace, first.Name,
				accounts[1].Namespace, accounts[1].Name)
	}
	c.Namespace, c.Account, c.Role = first.Namespace, first.Name, roleOf(first)
	if c.Role != "" {
		c.How = "annotation"
	}
	return c, "serviceaccount " + first.Namespace + "/" + first.Name, true, nil
}

// installation returns the Deployment of the controller, or nil if there is none, and the names of the other
// candidates.
func (w *Witness) installation(ctx context.Context, who authority, chosen string) (d *appsv1.Deployment, others []string, err error) {
	if chosen != "" {
		namespace, name, _ := strings.Cut(chosen, "/")
		d := &appsv1.Deployment{}
		if err := w.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
			if kubeclient.WhatNext(err) == kubeclient.Gone {
				return nil, nil, fmt.Errorf("there is no Deployment %s, which --controller names", chosen)
			}
			return nil, nil, err
		}
		return d, nil, nil
	}
	all, err := who.installations(ctx, w.live)
	if err != nil {
		return nil, nil, err
	}
	if len(all) == 0 {
		alike, err := who.lookalikes(ctx, w.live)
		if err == nil && len(alike) > 0 {
			err = fmt.Errorf("the Deployment %s has the name of a controller, but whether it is the controller cannot be checked: %s", strings.Join(alike[:min(3, len(alike))], ", "), whatIsDenied)
		}
		return nil, nil, err
	}
	first := 0
	if hasSeveral := len(all) > 1 && ptr.Deref(all[1].Spec.Replicas, 1) != 0; hasSeveral {
		if first, err = w.leaseHolder(ctx, all); err != nil {
			return nil, nil, err
		}
	}
	for i, other := range all {
		if i != first {
			others = append(others, other.Namespace+"/"+other.Name)
		}
	}
	return all[first], others, nil
}

// leaseHolder returns the index of the Deployment whose pod holds the Lease. If no such Deployment is found, the error
// asks the user to choose.
func (w *Witness) leaseHolder(ctx context.Context, all []*appsv1.Deployment) (int, error) {
	var names []string
	for i, d := range all {
		names = append(names, d.Namespace+"/"+d.Name)
		settings := envWitness(&d.Spec.Template.Spec, leaseVariable, leasePlaceVariable)
		if settings == nil {
			settings = map[string]string{}
		}
		for name, value := range electionArgs(&d.Spec.Template.Spec) {
			settings[name] = value
		}
		lease, found, err := w.Lease(ctx, settings[leaseVariable], settings[leasePlaceVariable])
		if err != nil || !found || lease.Namespace != cmp.Or(settings[leasePlaceVariable], d.Namespace) {
			continue
		}
		if pod, _, ok := strings.Cut(lease.Holder, "_"); ok && w.isPodOf(ctx, d, pod) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("several Deployments may be the controller, and none has a pod that holds its lease: %s; choose one with --controller NAMESPACE/NAME", strings.Join(names, ", "))
}

// isPodOf reports whether a pod with this name belongs to a Deployment, by its owner references: pod, ReplicaSet,
// Deployment.
func (w *Witness) isPodOf(ctx context.Context, d *appsv1.Deployment, name string) bool {
	pod, set := &corev1.Pod{}, &appsv1.ReplicaSet{}
	if err := w.live.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, pod); err != nil {
		return false
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || w.live.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: owner.Name}, set) != nil {
		return false
	}
	of := metav1.GetControllerOf(set)
	return of != nil && set.UID == owner.UID && of.UID == d.UID && of.Kind == "Deployment"
}
