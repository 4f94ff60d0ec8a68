package ami

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Labels of instance types that distinguish the variants of an AMI.
const (
	labelGPU         = "karpenter.k8s.aws/instance-gpu-count"
	labelAccelerator = "karpenter.k8s.aws/instance-accelerator-count"
	labelBuild       = "node.kubernetes.io/windows-build"
)

// variant is one image of an alias: its SSM parameter and the instance types that it is for.
type variant struct {
	path  string
	needs []requirements.Requirement
}

// requirement returns the requirement on a label of instance types.
func requirement(key string, op requirements.Operator, values ...string) requirements.Requirement {
	return requirements.Requirement{Key: key, Operator: op, Values: values}
}

// plain returns the requirements of an image for instance types without accelerators. gpu returns those of an image for
// types with GPUs, and neuron those of an image for types with Inferentia or Trainium.
func plain() []requirements.Requirement {
	return []requirements.Requirement{requirement(labelGPU, requirements.DoesNotExist),
		requirement(labelAccelerator, requirements.DoesNotExist)}
}
func gpu() []requirements.Requirement {
	return []requirements.Requirement{requirement(labelGPU, requirements.Exists)}
}
func neuron() []requirements.Requirement {
	return []requirements.Requirement{requirement(labelAccelerator, requirements.Exists)}
}

// byAlias returns the images of an alias, from the SSM parameters that AWS publishes for its family. If a parameter is
// missing, AWS does not publish this variant. Any other error fails the whole call, because a list without one of the
// variants would look like drift.
func (d *Client) byAlias(ctx context.Context, version string, t Term) ([]Image, *Unmatched, error) {
	variants, wrong := variantsOf(t.Alias, version)
	if wrong != "" {
		return nil, &Unmatched{t, "UnsupportedAlias", wrong}, nil
	}
	var found []Image
	for _, v := range variants {
		id, ok, err := d.parameter(ctx, v.path)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		images, _, err := d.describe(ctx, t, []string{id}, map[string][]requirements.Requirement{id: v.needs})
		if err != nil {
			return nil, nil, err
		}
		found = append(found, images...)
	}
	if len(found) == 0 {
		return nil, &Unmatched{t, "AMINotFound", fmt.Sprintf("AWS publishes no such image for Kubernetes %s in this region", version)}, nil
	}
	return found, nil, nil
}

// variantsOf returns the variants of an alias for a Kubernetes version, "1.33". If there are none, wrong is the reason.
// The paths of the parameters are from the EKS and Bottlerocket user guides.
func variantsOf(alias, version string) (variants []variant, wrong string) {
	family, release, ok := strings.Cut(alias, "@")
	family = strings.ToLower(family)
	minor := minorOf(version)
	switch {
	case !ok || release == "":
		return nil, "an alias is written family@version, for instance al2023@latest"
	case minor < 0:
		return nil, fmt.Sprintf("the cluster's Kubernetes version %q is not a valid version", version)
	}
	switch family {
	case "al2":
		if minor >= 33 {
			return nil, "AWS makes no Amazon Linux 2 image for Kubernetes 1.33 and later: use al2023"
		}
		return al2(version, release), ""
	case "al2023":
		return al2023(version, release), ""
	case "bottlerocket":
		return bottlerocket(version, release), ""
	case "windows2019", "windows2022", "windows2025":
		return windows(strings.TrimPrefix(family, "windows"), version, release, minor)
	}
	return nil, fmt.Sprintf("unknown family %q: use one of al2, al2023, bottlerocket, windows2019, windows2022, windows2025", family)
}

func al2(version, release string) []variant {
	path := func(kind string) string {
		image := "recommended"
		if release != "latest" {
			image = "amazon-eks" + kind + "-node-" + version + "-" + release
		}
		return "/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2" + kind + "/" + image + "/image_id"
	}
	return []variant{
		{path(""), plain()},
		{path("-arm64"), plain()},
		{path("-gpu"), neuron()},
		{path("-gpu"), gpu()},
	}
}

func al2023(version, release string) []variant {
	path := func(arch, kind string) string {
		image := "recommended"
		if release != "latest" {
			image = "amazon-eks-node-al2023-" + arch + "-" + kind + "-" + version + "-" + release
		}
		return "/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2023/" + arch + "/" + kind + "/" + image + "/image_id"
	}
	return []variant{
		{path("x86_64", "standard"), plain()},
		{path("arm64", "standard"), plain()},
		{path("x86_64", "nvidia"), gpu()},
		{path("arm64", "nvidia"), gpu()},
		{path("x86_64", "neuron"), neuron()},
	}
}

func bottlerocket(version, release string) []variant {
	release = strings.TrimPrefix(release, "v")
	path := func(kind, arch string) string {
		return "/aws/service/bottlerocket/aws-k8s-" + version + kind + "/" + arch + "/" + release + "/image_id"
	}
	return []variant{
		{path("", "x86_64"), plain()},
		{path("", "arm64"), plain()},
		{path("-nvidia", "x86_64"), gpu()},
		{path("-nvidia", "arm64"), gpu()},
		{path("", "x86_64"), neuron()}, // the plain image has the driver
	}
}

// build returns the value of the label node.kubernetes.io/windows-build for a release of Windows Server.
func build(year string) string {
	return map[string]string{"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}[year]
}

func windows(year, version, release string, minor int) ([]variant, string) {
	switch {
	case release != "latest":
		return nil, "the version of a Windows alias must be latest"
	case year == "2025" && minor < 35:
		return nil, "AWS makes no Windows 2025 image for Kubernetes before 1.35"
	}
	return []variant{{
		"/aws/service/ami-windows-latest/Windows_Server-" + year + "-English-Core-EKS_Optimized-" + version + "/image_id",
		[]requirements.Requirement{requirement(catalog.LabelOS, requirements.In, "windows"),
			requirement(labelBuild, requirements.In, build(year))},
	}}, ""
}

// minorOf returns 33 for "1.33", and -1 if the text is not a Kubernetes version.
func minorOf(version string) int {
	rest, ok := strings.CutPrefix(version, "1.")
	n, err := strconv.Atoi(rest)
	if !ok || err != nil {
		return -1
	}
	return n
}

// parameter returns the value of an SSM parameter; ok is false if there is no such parameter.
func (d *Client) parameter(ctx context.Context, name string) (value string, ok bool, err error) {
	now := time.Now()
	d.mu.Lock()
	known, hit := d.parameters[name]
	d.mu.Unlock()
	if hit && now.Before(known.until) {
		return known.value, known.value != "", nil
	}
	out, err := d.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
	err = awserr.Sort("GetParameter "+name, err)
	if err != nil && !awserr.Is(err, awserr.Gone) {
		return "", false, err
	}
	if err == nil && out.Parameter != nil {
		value = strings.TrimSpace(aws.ToString(out.Parameter.Value))
	}
	keep := cacheTime
	if value == "" {
		keep = cacheTimeMissing
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parameters[name] = parameter{value, now.Add(keep)}
	return value, value != "", nil
}
