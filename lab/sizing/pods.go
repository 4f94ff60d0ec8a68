package sizing

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// runningPod returns a typical pod of an application. It has the size of a real pod: two containers, probes,
// variables, a token volume, a status, and managed fields.
func runningPod(app, name, node string) *corev1.Pod {
	yes, now := true, metav1.Now()
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: app + "-", Namespace: namespace, UID: uuid.NewUUID(), CreationTimestamp: now,
			Labels:      map[string]string{"app": app, "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d8f7c9b6"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "kubectl.kubernetes.io/restartedAt": "2026-11-01T10:00:00Z"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &now,
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(specFields)},
				{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &now,
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(statusFields), Subresource: "status"},
			},
		},
		Spec: podSpec("515m", "1Gi"),
	}
	pod.Spec.NodeName = node
	pod.Status = corev1.PodStatus{
		Phase:     corev1.PodRunning,
		QOSClass:  corev1.PodQOSBurstable,
		StartTime: &now,
		PodIP:     "100.64.200.1",
		HostIP:    "10.0.0.1",
	}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady,
		corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:        c.Name,
			Ready:       true,
			Started:     &yes,
			Image:       c.Image,
			ImageID:     c.Image + "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			ContainerID: "containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return pod
}

// Managed fields of running pods: those of the controller manager, and those of the kubelet.
const (
	specFields   = `{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:httpGet":{".":{},"f:path":{},"f:port":{}}},"f:name":{},"f:ports":{".":{}},"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}`
	statusFields = `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{}},"f:startTime":{}}}`
)

// podSpec returns the spec of a typical pod, whose main container requests the given resources. A second container
// requests 10m of CPU and 32Mi of memory.
func podSpec(cpu, memory string) corev1.PodSpec {
	seconds, link := int64(30), true
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path:   path,
			Port:   intstr.FromString("http"),
			Scheme: "HTTP",
		}}, PeriodSeconds: 10, TimeoutSeconds: 1}
	}
	main := corev1.Container{
		Name:            "main",
		Image:           "111122223333.dkr.ecr.us-east-1.amazonaws.com/team/service-07:1.2.3",
		ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:           []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		LivenessProbe:   probe("/live"),
		ReadinessProbe:  probe("/ready"),
		Resources: corev1.ResourceRequirements{
			Requests: quantities(cpu, memory),
			Limits:   corev1.ResourceList{corev1.ResourceMemory: quantities(cpu, memory)[corev1.ResourceMemory]},
		},
		VolumeMounts: []corev1.VolumeMount{{
			Name:      "kube-api-access",
			MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
			ReadOnly:  true,
		}},
	}
	for i := range 8 {
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "https://service.shop.svc.cluster.local:8443/path"})
	}
	proxy := corev1.Container{
		Name:            "proxy",
		Image:           "111122223333.dkr.ecr.us-east-1.amazonaws.com/team/proxy:4.5.6",
		ImagePullPolicy: corev1.PullIfNotPresent,
		Resources:       corev1.ResourceRequirements{Requests: quantities("10m", "32Mi")},
	}
	return corev1.PodSpec{
		Containers:                    []corev1.Container{main, proxy},
		RestartPolicy:                 corev1.RestartPolicyAlways,
		DNSPolicy:                     corev1.DNSClusterFirst,
		SchedulerName:                 corev1.DefaultSchedulerName,
		ServiceAccountName:            "default",
		TerminationGracePeriodSeconds: &seconds,
		EnableServiceLinks:            &link,
		SecurityContext:               &corev1.PodSecurityContext{},
		Tolerations: []corev1.Toleration{{
			Key:      corev1.TaintNodeNotReady,
			Operator: corev1.TolerationOpExists,
			Effect:   corev1.TaintEffectNoExecute,
		}, {Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		Volumes: []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
		}}}},
	}
}

// pendingPod returns a pod that fits no copied node (see testCluster): it requests 1.5 CPUs, and the running pods
// leave at most 0.25 of 16 CPUs free.
func pendingPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{burstMark: "true"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:      "main",
			Image:     "pause",
			Resources: corev1.ResourceRequirements{Requests: quantities("1500m", "1Gi")},
		}}},
	}
}

// runBurst creates pods at the same time, and returns how long it took until all of them ran. It prints a message if
// the number of new nodes is not newNodes.
func (c *testCluster) runBurst(ctx context.Context, pods, newNodes int) (time.Duration, error) {
	before, err := c.countNodes(ctx)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	if err := c.createPods(ctx, pods); err != nil {
		return 0, err
	}
	err = c.until(ctx, 10*time.Minute, fmt.Sprintf("%d more pods to run", pods), func(ctx context.Context) (bool, error) {
		list, err := c.lab.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: burstMark, ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		ran := 0
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning {
				ran++
			}
		}
		return ran == pods+1, nil // the first node's pod has the same label
	})
	if err != nil {
		return 0, err
	}
	took := time.Since(started)
	after, err := c.countNodes(ctx)
	if err == nil && after-before != newNodes {
		c.say(fmt.Sprintf("  %d nodes were launched, want %d", after-before, newNodes))
	}
	return took, err
}

func (c *testCluster) createPods(ctx context.Context, pods int) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make(chan error, 16) // 16 workers, each of which ends after an error
	for range cap(failed) {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(pods); i = next.Add(1) {
				if _, err := c.lab.Kube.CoreV1().Pods(namespace).Create(ctx, pendingPod(fmt.Sprintf("burst-%05d", i)),
					metav1.CreateOptions{}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	workers.Wait()
	select {
	case err := <-failed:
		return fmt.Errorf("create pods: %w", err)
	default:
		return nil
	}
}

func (c *testCluster) countNodes(ctx context.Context) (int, error) {
	nodes, err := c.lab.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, fmt.Errorf("count nodes: %w", err)
	}
	return len(nodes.Items), nil
}
