package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// poolName is the NodePool of most workloads.
const poolName = "general"

func pool(name string, requirements ...karpv1.Requirement) *karpv1.NodePool {
	p := &karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
	}
	p.Spec.Template.Spec.Requirements = append(karpv1.Requirements{in(catalog.LabelOS, "linux")}, requirements...)
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: className}
	return p
}

func in(key string, values ...string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func amd64() karpv1.Requirement     { return in(catalog.LabelArch, "amd64") }
func bothArchs() karpv1.Requirement { return in(catalog.LabelArch, "amd64", "arm64") }

func anyCapacityType() karpv1.Requirement {
	return in(catalog.LabelCapacityType, catalog.OnDemand, catalog.Spot)
}

func onDemand() karpv1.Requirement { return in(catalog.LabelCapacityType, catalog.OnDemand) }

// guideRequirements returns the requirements of the NodePool in Karpenter's getting started guide: instance families c,
// m and r, above generation 2.
func guideRequirements() []karpv1.Requirement {
	return []karpv1.Requirement{
		in(catalog.LabelCategory, "c", "m", "r"),
		{Key: catalog.LabelGeneration, Operator: corev1.NodeSelectorOpGt, Values: []string{"2"}},
	}
}

func atMost32CPUs() karpv1.Requirement {
	return karpv1.Requirement{Key: catalog.LabelCPU, Operator: corev1.NodeSelectorOpLt, Values: []string{"33"}}
}
