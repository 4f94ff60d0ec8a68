package lab

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/api/crds"
	"github.com/joiner-sh/joiner/lab/fargate"
)

// networkPod is the value of the label k8s-app of the VPC CNI's DaemonSet, which brings up the network of a node.
const networkPod = "aws-node"

// proxyPod is the value of the label k8s-app of the kube-proxy DaemonSet, which makes the addresses of Services
// reachable.
const proxyPod = "kube-proxy"

// ClusterDNS returns the address of cluster DNS: the tenth address of the Service range, as on EKS.
func (l *Lab) ClusterDNS() string {
	if l.IPv6 {
		return "fd30:1c53:5f8a::a"
	}
	return "172.20.0.10"
}

// install creates the add-ons that EKS installs in a new cluster, maps the node role, and, unless Options.Bare is set,
// installs the CRDs.
func (a *AddOns) install(ctx context.Context) error {
	for _, name := range []string{"vpc-cni", "kube-proxy"} {
		if err := a.apply(ctx, name); err != nil {
			return err
		}
	}
	if a.lab.Beside == nil { // with Beside, EKS does not manage the add-ons: the cluster is self-managed
		go a.installCreated(a.lab.ctx) // installs add-ons that users create later
	}
	if _, err := a.lab.Kube.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, dnsService(a.lab.ClusterDNS()),
		metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("install kube-dns: %w", err)
	}
	if err := a.MapRoles(ctx, a.lab.Roles.ARN(NodeRole)); err != nil {
		return err
	}
	if a.lab.Bare {
		return nil
	}
	return a.installCRDs(ctx)
}

// addOnDaemonSet returns a DaemonSet like those of EKS add-ons: host network, every EC2 node, all taints tolerated.
func addOnDaemonSet(name, cpu, image string) *appsv1.DaemonSet {
	labels := map[string]string{"k8s-app": name}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &intstr.IntOrString{Type: intstr.String, StrVal: "10%"}},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					HostNetwork:       true,
					PriorityClassName: "system-node-critical",
					Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Affinity:          notOnFargate(),
					Containers: []corev1.Container{{
						Name: name, Image: "602401143452.dkr.ecr.us-east-1.amazonaws.com/" + image,
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
					}},
				},
			},
		},
	}
}

// notOnFargate returns an affinity that keeps pods off Fargate nodes, because a Fargate node runs only one pod.
func notOnFargate() *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: fargate.ComputeType, Operator: corev1.NodeSelectorOpNotIn, Values: []string{fargate.ComputeTypeFargate},
			}},
		}}},
	}}
}

// dnsService returns the Service of cluster DNS. The lab creates no pods for the Service, because the pods would be
// Pending in a cluster without nodes.
func dnsService(address string) *corev1.Service {
	labels := map[string]string{"k8s-app": "kube-dns"}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-dns", Namespace: metav1.NamespaceSystem, Labels: labels},
		Spec: corev1.ServiceSpec{
			ClusterIP: address, Selector: labels,
			Ports: []corev1.ServicePort{
				{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
				{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP},
			},
		},
	}
}

// MapRoles writes kube-system/aws-auth so that it maps exactly these roles as node roles.
func (a *AddOns) MapRoles(ctx context.Context, roles ...string) error {
	type mapping struct {
		RoleARN  string   `json:"rolearn"`
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	}
	mapped := []mapping{}
	for _, role := range roles {
		mapped = append(mapped, mapping{role, "system:node:{{EC2PrivateDNSName}}", []string{"system:bootstrappers", "system:nodes"}})
	}
	text, err := yaml.Marshal(mapped)
	if err != nil {
		return fmt.Errorf("write aws-auth: %w", err)
	}
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "aws-auth", Namespace: metav1.NamespaceSystem},
		Data:       map[string]string{"mapRoles": string(text)},
	}
	configMaps := a.lab.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	_, err = configMaps.Create(ctx, config, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = configMaps.Update(ctx, config, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write aws-auth: %w", err)
	}
	return nil
}

func (a *AddOns) installCRDs(ctx context.Context) error {
	client, err := apiextensions.NewForConfig(a.lab.Config)
	if err != nil {
		return fmt.Errorf("make the client for CRDs: %w", err)
	}
	definitions, err := crds.Definitions()
	if err != nil {
		return err
	}
	api := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, d := range definitions {
		if _, err := api.Create(ctx, d, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("install definition %s: %w", d.Name, err)
		}
	}
	for _, d := range definitions {
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			got, err := api.Get(ctx, d.Name, metav1.GetOptions{})
			return err == nil && isEstablished(got), err
		})
		if err != nil {
			return fmt.Errorf("wait for definition %s: %w", d.Name, err)
		}
	}
	return nil
}

func isEstablished(d *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
