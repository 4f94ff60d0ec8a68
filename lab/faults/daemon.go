package faults

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// daemonFaults are faults of the DaemonSet pods that every node or every GPU node needs.
func daemonFaults() []Fault {
	return []Fault{
		{
			Name:          "service-proxy-missing",
			What:          "the cluster has no kube-proxy, so the network plug-in cannot reach the API server's Service",
			Check:         "CNI-2",
			Cause:         "because the cluster has no kube-proxy",
			NeedsInstance: true,
			IsExclusive:   true,
			Break:         deleteDaemonSet("kube-proxy", "kube-proxy")},
		{
			Name:          "device-plugin-without-toleration",
			What:          "the NodePool taints its GPU nodes, and the device plug-in does not tolerate the taint",
			Check:         "READY-1",
			Cause:         "no device plug-in for it runs on the node",
			NeedsInstance: true,
			IsExclusive:   true,
			Break:         requestGPU("nvidia-device-plugin-daemonset")},
		{
			Name:          "one-hop-for-the-storage-driver",
			What:          "the storage driver's pods use the metadata service, whose hop limit of 1 blocks responses to pods",
			Check:         "IMDS-1",
			Cause:         "needs the metadata service",
			NeedsInstance: true,
			IsExclusive:   true,
			Break: func(_ context.Context, s *Scene) error {
				one := int64(1)
				s.Class.Spec.MetadataOptions = &awsv1.MetadataOptions{HTTPPutResponseHopLimit: &one}
				driver := daemonSet("ebs-csi-node", "602401143452.dkr.ecr.us-east-1.amazonaws.com/eks/aws-ebs-csi-driver:v1.50.1")
				driver.Spec.Template.Spec.NodeSelector = map[string]string{"test": s.Name}
				s.ExtraObjects = append(s.ExtraObjects, driver)
				return nil
			}},
	}
}

// requestGPU returns a Break function that makes the scene's pods request a GPU. The function also adds a taint to the
// NodePool and a toleration of the taint to the scene's pods. It adds a device plug-in with this name to the cluster.
// Without tolerations, the plug-in does not run on the tainted nodes.
func requestGPU(name string, tolerations ...corev1.Toleration) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		const gpu = "nvidia.com/gpu"
		s.Pool.Spec.Template.Spec.Taints = []corev1.Taint{{Key: gpu, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		requirements := s.Pool.Spec.Template.Spec.Requirements
		requirements[len(requirements)-1] = In(corev1.LabelInstanceTypeStable, "g4dn.xlarge") // replaces the category
		pod := &s.Pods.Spec.Template.Spec
		pod.Tolerations = []corev1.Toleration{{Key: gpu, Operator: corev1.TolerationOpExists}}
		oneGPU := corev1.ResourceList{gpu: resource.MustParse("1")}
		pod.Containers[0].Resources.Limits, pod.Containers[0].Resources.Requests[gpu] = oneGPU, oneGPU[gpu]
		plugin := daemonSet(name, "nvcr.io/nvidia/k8s-device-plugin:v0.17.1")
		plugin.Spec.Template.Spec.HostNetwork, plugin.Spec.Template.Spec.Tolerations = true, tolerations
		s.ExtraObjects = append(s.ExtraObjects, plugin)
		return nil
	}
}

func daemonSet(name, image string) *appsv1.DaemonSet {
	labels := map[string]string{"name": name}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}}}},
			},
		},
	}
}

// deleteDaemonSet returns a Break function that deletes the named DaemonSet of EKS. The printed fix installs the
// add-on, which creates the DaemonSet again.
func deleteDaemonSet(name, addon string) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		var daemon appsv1.DaemonSet
		if err := s.Lab.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, &daemon); err != nil {
			return err
		}
		restored := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: daemon.Namespace,
			Name:      daemon.Name,
			Labels:    daemon.Labels,
		}, Spec: daemon.Spec}
		s.AddUndo(func(ctx context.Context) error {
			_ = s.ChangeAWS(func(*world.World, time.Time) error { // the add-on exists only if the fix created it
				_, err := s.Lab.Estate.Region.EKS.DeleteAddon(s.Lab.Cluster, addon)
				return err
			})
			return client.IgnoreAlreadyExists(s.Lab.Client.Create(ctx, restored.DeepCopy()))
		})
		return s.Lab.Client.Delete(ctx, &daemon)
	}
}
