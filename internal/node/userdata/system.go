package userdata

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

const (
	familyCustom       = catalog.Custom
	bottlerocketSystem = catalog.Bottlerocket
	windowsSystem      = "Windows"
)

// SystemOf is the AMI family of an image that bears one of AWS's own names:
// AL2, AL2023, Bottlerocket or Windows; empty if the name does not say.
func SystemOf(image string) string {
	switch {
	case strings.HasPrefix(image, "amazon-eks-node-al2023-"):
		return catalog.AL2023
	case strings.HasPrefix(image, "bottlerocket-aws-k8s-"):
		return bottlerocketSystem
	case strings.HasPrefix(image, "Windows_Server-") && strings.Contains(image, "-EKS_Optimized-"):
		return windowsSystem
	}
	for _, prefix := range []string{"amazon-eks-node-", "amazon-eks-gpu-node-", "amazon-eks-arm64-node-"} {
		rest, ok := strings.CutPrefix(image, prefix)
		if ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return catalog.AL2
		}
	}
	return ""
}

// systemOfFamily is the family without its release.
func systemOfFamily(family string) string {
	switch family {
	case catalog.Windows2019, catalog.Windows2022, catalog.Windows2025:
		return windowsSystem
	case catalog.Custom:
		return ""
	}
	return family
}

// system returns the family of the image: by its name, else by the EC2NodeClass; empty for a custom image.
func (r *reader) system() string {
	if s := SystemOf(r.in.Image); s != "" {
		return s
	}
	return systemOfFamily(r.in.Family)
}

// judgeImage says whether the image is of the family for which the user data is
// written. If not, there is nothing more to be said.
func (r *reader) judgeImage() bool {
	family, image := systemOfFamily(r.in.Family), SystemOf(r.in.Image)
	if family == "" || image == "" || family == image {
		return true
	}
	r.problem(ImageMismatch, Certain, NeverJoins, Spot{},
		"it is %s, and the image %s is one of %s, which cannot read what is written for %s", r.in.Family, r.in.Image, image, r.in.Family).
		with("set spec.amiFamily to "+image+", or select an image of "+r.in.Family, "")
	return false
}
