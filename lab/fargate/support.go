package fargate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// unsupportedReason returns the reasons why Fargate cannot run a pod, in one message in the wording of Fargate's
// scheduler. The message is empty if Fargate can run the pod. The supported volumes are those of
// https://docs.aws.amazon.com/eks/latest/userguide/fargate.html.
func unsupportedReason(pod *corev1.Pod) string {
	var why []string
	s := &pod.Spec
	var hostFields []string
	for _, field := range []struct {
		name string
		set  bool
	}{{"HostNetwork", s.HostNetwork}, {"HostPID", s.HostPID}, {"HostIPC", s.HostIPC}} {
		if field.set {
			hostFields = append(hostFields, field.name)
		}
	}
	if len(hostFields) > 0 {
		why = append(why, "fields not supported: "+strings.Join(hostFields, ", "))
	}
	containers := slices.Concat(s.InitContainers, s.Containers)
	if slices.ContainsFunc(containers, isPrivileged) {
		why = append(why, "invalid SecurityContext fields: Privileged")
	}
	if slices.ContainsFunc(containers, hasHostPort) {
		why = append(why, "port contains HostIP or HostPort")
	}
	for _, v := range s.Volumes {
		if !isSupportedVolume(&v) {
			why = append(why, "volumes not supported: "+v.Name+" is of an unsupported volume Type")
		}
	}
	if len(why) == 0 {
		return ""
	}
	return "Pod not supported on Fargate: " + strings.Join(why, ", ")
}

func isPrivileged(c corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

// hasHostPort reports whether the container has a host port or a host IP. The API server sets host ports for pods with
// hostNetwork, so Fargate's message for such a pod has both reasons.
func hasHostPort(c corev1.Container) bool {
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 || p.HostIP != "" })
}

func isSupportedVolume(v *corev1.Volume) bool {
	return v.EmptyDir != nil || v.NFS != nil || v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil ||
		v.PersistentVolumeClaim != nil
}
