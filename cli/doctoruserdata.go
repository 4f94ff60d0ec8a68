package cli

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/diagnosis"
	"github.com/joiner-sh/joiner/kube"
	"github.com/joiner-sh/joiner/packing"
	"github.com/joiner-sh/joiner/userdata"
)

// userDataProblems reads the user data of the cluster's EC2NodeClasses as their instances would.
func (d *doctorFlags) userDataProblems(name string) func(context.Context) ([]diagnosis.UserDataProblem, error) {
	return func(ctx context.Context) ([]diagnosis.UserDataProblem, error) {
		r := renderFlags{live: d.cluster}
		r.cluster.Name = name
		if err := r.completeCluster(); err != nil {
			return nil, err
		}
		m, err := r.objects(ctx, Streams{})
		if err != nil {
			return nil, err
		}
		out := []diagnosis.UserDataProblem{}
		for _, class := range m.Classes {
			out = append(out, r.problemsOf(class)...)
		}
		return out, nil
	}
}

// problemsOf returns what is wrong with the user data of one class, on machines of either architecture; what is wrong on both is
// there once.
func (r *renderFlags) problemsOf(class *awsv1.EC2NodeClass) []diagnosis.UserDataProblem {
	var out []diagnosis.UserDataProblem
	add := func(p diagnosis.UserDataProblem) {
		p.Class = class.Name
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	system := corev1.Linux
	if strings.HasPrefix(class.Spec.ResolvedAMIFamily(), "Windows") {
		system = corev1.Windows
	}
	for _, arch := range []string{karpv1.ArchitectureAMD64, karpv1.ArchitectureARM64} {
		image, found := kube.ImageFor(class, constraint.Labels{corev1.LabelArchStable: arch, corev1.LabelOSStable: string(system)})
		if !found && len(class.Status.AMIs) > 0 {
			continue // no machine of this architecture can be bought
		}
		// The type makes no difference to what is wrong: none is bought.
		node, err := kube.BootOfPool(nil, class, packing.Choice{InstanceType: "m5.large", CapacityType: karpv1.CapacityTypeOnDemand}, 110)
		if err != nil {
			add(diagnosis.UserDataProblem{ID: unwritable, Sentence: err.Error(), Certainty: diagnosis.Certain})
			continue
		}
		node.Cluster, node.ImageName = r.cluster, image.Name
		_, reading, err := r.reading(node, userdata.Input{Image: image.Name, Arch: arch})
		if err != nil && len(reading.Problems) == 0 {
			add(diagnosis.UserDataProblem{ID: unwritable, Sentence: err.Error(), Certainty: diagnosis.Certain})
		}
		for _, p := range reading.Problems {
			add(evident(p))
		}
	}
	return out
}

// unwritable is the check of user data that cannot be written at all.
const unwritable = "BOOT-7"

// evident is a problem as evidence.
func evident(p userdata.Problem) diagnosis.UserDataProblem {
	out := diagnosis.UserDataProblem{ID: p.Check(), Sentence: p.Cause, Certainty: diagnosis.Certainty(p.Certainty), Fix: p.Fix}
	if p.Write != "" {
		out.Fix = p.Write
	}
	if !p.At.Ours {
		out.Where = p.At.String()
	}
	return out
}
