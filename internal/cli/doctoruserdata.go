package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// userDataProblems returns a function that parses the user data of the cluster's EC2NodeClasses as their instances
// would, and returns the problems.
func (d *doctorFlags) userDataProblems(clusterName string) func(context.Context) ([]diagnosis.UserDataProblem, error) {
	return func(ctx context.Context) ([]diagnosis.UserDataProblem, error) {
		r := renderFlags{live: d.cluster}
		r.cluster.Name = clusterName
		r.setAuthority(d.authority)
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

// setAuthority sets the cluster's certificate authority, as base64 of PEM. It ignores text that is not a certificate.
func (r *renderFlags) setAuthority(authority string) {
	if isCertificate(authority) {
		r.authority, r.cluster.CA = authority, authority
	}
}

// problemsOf returns the problems of the user data of one EC2NodeClass, without duplicates.
func (r *renderFlags) problemsOf(class *awsv1.EC2NodeClass) []diagnosis.UserDataProblem {
	var out []diagnosis.UserDataProblem
	problemsIn := r.userDataParser(class)
	in := r.input(class)
	problems, remaining := problemsIn(in.Own), map[string][]userdata.Problem{} // remaining: those after the correction, by check
	for _, p := range problems {
		check := p.Check()
		if _, isKnown := remaining[check]; !isKnown {
			remaining[check] = problemsIn(reading.Correct(in, problemsIn, check))
		}
		evidence := evidenceOf(p)
		evidence.Class = class.Name
		evidence.Corrected = !slices.ContainsFunc(remaining[check],
			func(q userdata.Problem) bool { return q.Kind == p.Kind && q.Cause == p.Cause })
		if !slices.Contains(out, evidence) {
			out = append(out, evidence)
		}
	}
	return out
}

// input returns the user data of an EC2NodeClass, with its AMI family and the facts about the cluster.
func (r *renderFlags) input(class *awsv1.EC2NodeClass) userdata.Input {
	in := userdata.Input{Family: class.Spec.ResolvedAMIFamily(), Own: textOrEmpty(class.Spec.UserData), CA: r.authority}
	if !r.isNamePlaceholder {
		in.Cluster = r.cluster.Name
	}
	return in
}

// userDataParser returns a function that parses user data as instances of the EC2NodeClass would, and returns the
// problems without duplicates. It parses for each architecture for which the class has an image, or for both if the
// status of the class has no images.
func (r *renderFlags) userDataParser(class *awsv1.EC2NodeClass) func(userData string) []userdata.Problem {
	class = class.DeepCopy()
	system := corev1.Linux
	if strings.HasPrefix(class.Spec.ResolvedAMIFamily(), "Windows") {
		system = corev1.Windows
	}
	return func(userData string) []userdata.Problem {
		var out []userdata.Problem
		class.Spec.UserData = &userData
		for _, arch := range []string{karpv1.ArchitectureAMD64, karpv1.ArchitectureARM64} {
			image, found := conversion.ImageFor(class, requirements.Labels{corev1.LabelArchStable: arch, corev1.LabelOSStable: string(system)})
			if !found && len(class.Status.AMIs) > 0 {
				continue // the class has no image for this architecture
			}
			for _, p := range r.parseUserData(class, userdata.Input{Image: image.Name, Arch: arch, CA: r.authority}) {
				if !slices.Contains(out, p) {
					out = append(out, p)
				}
			}
		}
		return out
	}
}

// parseUserData parses the user data of an EC2NodeClass as one of its instances would, and returns its problems. in has
// the image and architecture of the instance.
func (r *renderFlags) parseUserData(class *awsv1.EC2NodeClass, in userdata.Input) []userdata.Problem {
	unwritable := func(err error) []userdata.Problem {
		return []userdata.Problem{{Kind: userdata.Unwritable, Certainty: userdata.Certain, Harm: userdata.NeverJoins, Cause: err.Error()}}
	}
	// Any instance type and number of pods (110) give the same problems.
	choice := packing.Choice{InstanceType: "m5.large", CapacityType: karpv1.CapacityTypeOnDemand}
	node, err := conversion.BootstrapNodeOfPool(nil, class, choice, 110)
	if err != nil {
		return unwritable(err)
	}
	node.Cluster, node.ImageName = r.cluster, in.Image
	_, parsed, err := r.renderAndParse(node, in)
	if err == nil || len(parsed.Problems) > 0 {
		return parsed.Problems
	}
	if n := len(textOrEmpty(class.Spec.UserData)); errors.Is(err, bootstrap.ErrTooLong) || n > bootstrap.MaxBytes {
		return []userdata.Problem{{Kind: userdata.TooLong, Certainty: userdata.Certain, Harm: userdata.NeverJoins,
			Cause: fmt.Sprintf("its user data has %d bytes with the part that Joiner adds, and EC2 takes %d", n, bootstrap.MaxBytes)}}
	}
	in.Family, in.Own = node.Family, node.UserData
	if problem, ok := reading.MergeProblem(in); ok {
		return []userdata.Problem{problem}
	}
	return unwritable(err)
}

// evidenceOf converts a problem to evidence, without the name of the EC2NodeClass.
func evidenceOf(p userdata.Problem) diagnosis.UserDataProblem {
	out := diagnosis.UserDataProblem{ID: p.Check(), Sentence: p.Cause, Certainty: diagnosis.Certainty(p.Certainty), Fix: p.Fix}
	if p.Write != "" {
		out.Fix = p.Write
	}
	if !p.At.Ours {
		out.Where = p.At.String()
	}
	return out
}
