package demo

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/lab"
)

const namespace = "demo"

//go:embed case1.yaml
var caseOneManifest string

// mixedHeader has the objects of the second part, except its Deployments.
//
//go:embed mixed.yaml
var mixedHeader string

// kind describes equal pods in the second part of the demo.
type kind struct {
	name        string
	pods        int32  // number of pods
	cpu, memory string // requests of each pod
}

// kinds returns the kinds of pods of the second part, with two hundred pods together.
func kinds() []kind {
	return []kind{
		{"web", 80, "100m", "128Mi"},
		{"api", 60, "250m", "512Mi"},
		{"worker", 40, "1", "2Gi"},
		{"cache", 16, "500m", "4Gi"},
		{"batch", 4, "4", "8Gi"},
	}
}

func fill(l *lab.Lab, text string) string {
	return strings.NewReplacer("${NODE_ROLE}", lab.NodeRole, "${AL2_IMAGE}", l.AL2Image, "${CLUSTER}", l.Cluster).Replace(text)
}

// mixedManifest returns the manifest of the second part: mixedHeader and a Deployment for each kind of pod.
func mixedManifest(l *lab.Lab) (string, error) {
	text := fill(l, mixedHeader)
	for _, k := range kinds() {
		data, err := sigsyaml.Marshal(k.deployment())
		if err != nil {
			return "", fmt.Errorf("write deployment %s: %w", k.name, err)
		}
		text += "---\n" + string(data)
	}
	return text, nil
}

// deployment returns a Deployment of the kind's pods, which run only on nodes of the second part's NodePool.
func (k kind) deployment() *appsv1.Deployment {
	labels := map[string]string{"app": k.name}
	grace := int64(1)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: k.name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &k.pods,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					NodeSelector:                  map[string]string{"nodegroup": "mixed"},
					Containers: []corev1.Container{{
						Name: k.name, Image: "public.ecr.aws/eks-distro/kubernetes/pause:3.10",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse(k.cpu), corev1.ResourceMemory: resource.MustParse(k.memory),
						}},
					}},
				},
			},
		},
	}
}

// daemonSets returns the cluster's DaemonSets as a manifest. DaemonSet pods run on every node, so a plan without the
// DaemonSets would be too cheap.
func daemonSets(ctx context.Context, l *lab.Lab) (string, error) {
	sets, err := l.Kube.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list DaemonSets: %w", err)
	}
	text := ""
	for _, ds := range sets.Items {
		data, err := sigsyaml.Marshal(&appsv1.DaemonSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
			ObjectMeta: metav1.ObjectMeta{Name: ds.Name, Namespace: ds.Namespace},
			Spec:       ds.Spec,
		})
		if err != nil {
			return "", fmt.Errorf("write DaemonSet %s: %w", ds.Name, err)
		}
		text += "---\n" + string(data)
	}
	return text, nil
}
