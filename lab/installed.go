package lab

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab/instance"
)

// addonPoll is the interval between two checks for new EKS add-ons.
const addonPoll = 200 * time.Millisecond

// daemonSet returns the DaemonSet of an EKS add-on, or nil if the lab does not emulate the add-on.
func (a *AddOns) daemonSet(name string) *appsv1.DaemonSet {
	switch name {
	case "vpc-cni":
		cni := addOnDaemonSet(networkPod, "50m", "amazon-k8s-cni:v1.20.4")
		if a.lab.IPv6 {
			cni.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{
				{Name: instance.EnvIPv6, Value: "true"}, {Name: instance.EnvPrefixes, Value: "true"},
			}
		}
		return cni
	case "kube-proxy":
		return addOnDaemonSet(proxyPod, "100m", "eks/kube-proxy:v1.36.3-minimal-eksbuild.1")
	}
	return nil
}

// apply creates the DaemonSet of an add-on, unless the DaemonSet exists or the lab does not emulate the add-on.
func (a *AddOns) apply(ctx context.Context, name string) error {
	daemon := a.daemonSet(name)
	if daemon == nil {
		return nil
	}
	_, err := a.lab.Kube.AppsV1().DaemonSets(metav1.NamespaceSystem).Create(ctx, daemon, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("install %s: %w", daemon.Name, err)
	}
	return nil
}

// installCreated installs the DaemonSet of each add-on that a user creates in the emulated EKS, until the context ends.
// As on EKS, eks:CreateAddon returns before the DaemonSet exists.
func (a *AddOns) installCreated(ctx context.Context) {
	installed := map[string]bool{} // by ARN of the add-on
	_ = wait.PollUntilContextCancel(ctx, addonPoll, false, func(ctx context.Context) (bool, error) {
		var addons []ekscluster.Addon
		a.lab.Emulator.Do(func(*world.World, time.Time) {
			if c, err := a.lab.Estate.Region.EKS.Cluster(a.lab.Cluster); err == nil {
				for _, name := range c.Addons() {
					if addon, err := a.lab.Estate.Region.EKS.Addon(a.lab.Cluster, name); err == nil {
						addons = append(addons, *addon)
					}
				}
			}
		})
		for _, addon := range addons {
			if !installed[addon.ARN] {
				installed[addon.ARN] = a.apply(ctx, addon.Name) == nil
			}
		}
		return false, nil
	})
}
