package userdata

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// ReportNodeConfigOnAL2 reports a NodeConfig for an AL2 image.
func (r *Reader) ReportNodeConfigOnAL2(at Position) {
	r.Report(OtherFamily, Certain, r.ScriptHarm(), at, "a NodeConfig is for nodeadm of AL2023; an image of AL2 does not read it").
		Suggest("call "+BySh+" in a shell script, or choose an image of AL2023", "")
}

// ReportUnknownPart reports a part that no program on the instance reads. The fix depends on the form of the part's
// text.
func (r *Reader) ReportUnknownPart(p Part) {
	harm := r.ScriptHarm()
	switch FormOf(p.Text.Body) {
	case FormNothing: // an empty part changes nothing
	case FormBottlerocket:
		r.Report(OtherFamily, Certain, harm, p.Text.At, "these are settings of Bottlerocket, which no other image reads").
			Suggest("set spec.amiFamily to Bottlerocket, or write it for "+r.In.Family, "")
	case FormPowerShell:
		r.Report(OtherFamily, Certain, harm, p.Text.At, "this is for Windows, and no other image runs it").
			Suggest("set spec.amiFamily to one of Windows, or write it for "+r.In.Family, "")
	default:
		if p.Kind == TypePlain && strings.HasPrefix(p.Text.Body, "#include") {
			r.Unevaluated = append(r.Unevaluated, "the user data includes text from another source")
			return
		}
		r.Report(UnknownPart, Certain, harm, p.Text.At, "nothing on the instance reads this: it is not a shell script, which begins with #!, not a cloud-config and not a NodeConfig").
			Suggest("begin it with the line that identifies its type, or set the part's Content-Type", "")
	}
}

// ReportNamedByInstance reports a setting that names nodes by their instance ID, which most mappings of a node role do
// not permit. The problem's text begins with subject.
func (r *Reader) ReportNamedByInstance(position Position, subject string) {
	r.Report(OtherName, Likely, NeverJoins, position,
		"%s, and a kubelet may only register the node of its own user name: access entries of type EC2_LINUX and most rows of aws-auth give it system:node:{{EC2PrivateDNSName}}", subject).
		Suggest("map the node role in aws-auth to system:node:{{SessionName}}, or take the setting out", "")
}

// ScriptHarm returns the harm of a user's script that is not run. For all families but Custom, Joiner's own part makes
// the instance join, so that only the user's additions are lost.
func (r *Reader) ScriptHarm() Severity {
	if r.In.Family == FamilyCustom {
		return UnlessStarted
	}
	return JoinsDifferently
}

// The family that may have any operating system, and names of operating systems for the results of System.
const (
	FamilyCustom       = catalog.Custom
	BottlerocketSystem = catalog.Bottlerocket
	WindowsSystem      = "Windows"
)

// SystemOf returns the operating system of an image by its name: AL2, AL2023, Bottlerocket or Windows. It is empty for
// names that no EKS image of AWS has.
func SystemOf(image string) string {
	switch {
	case strings.HasPrefix(image, "amazon-eks-node-al2023-"):
		return catalog.AL2023
	case strings.HasPrefix(image, "bottlerocket-aws-k8s-"):
		return BottlerocketSystem
	case strings.HasPrefix(image, "Windows_Server-") && strings.Contains(image, "-EKS_Optimized-"):
		return WindowsSystem
	}
	for _, prefix := range []string{"amazon-eks-node-", "amazon-eks-gpu-node-", "amazon-eks-arm64-node-"} {
		rest, ok := strings.CutPrefix(image, prefix)
		if ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' { // the Kubernetes version follows
			return catalog.AL2
		}
	}
	return ""
}

// systemOfFamily returns the operating system of an AMI family; empty for Custom.
func systemOfFamily(family string) string {
	switch family {
	case catalog.Windows2019, catalog.Windows2022, catalog.Windows2025:
		return WindowsSystem
	case catalog.Custom:
		return ""
	}
	return family
}

// System returns the operating system of the image: by its name if possible, else by the AMI family. It is empty for an
// image of the family Custom with an unknown name.
func (r *Reader) System() string {
	if s := SystemOf(r.In.Image); s != "" {
		return s
	}
	return systemOfFamily(r.In.Family)
}

// JudgeImage returns false, and reports a problem, if the image is certainly of another AMI family than the user data.
// Then no further checks are useful.
func (r *Reader) JudgeImage() bool {
	family, image := systemOfFamily(r.In.Family), SystemOf(r.In.Image)
	if family == "" || image == "" || family == image {
		return true
	}
	r.Report(ImageMismatch, Certain, NeverJoins, Position{},
		"it is %s, and the image %s is one of %s, which cannot read user data for %s", r.In.Family, r.In.Image, image, r.In.Family).
		Suggest("set spec.amiFamily to "+image+", or select an image of "+r.In.Family, "")
	return false
}
