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

// Labels of instance types that distinguish the images of an alias.
const (
	labelGPU         = "karpenter.k8s.aws/instance-gpu-count"
	labelAccelerator = "karpenter.k8s.aws/instance-accelerator-count"
	labelBuild       = "node.kubernetes.io/windows-build"
)

// variant is one image of an alias.
type variant struct {
	path  string                     // name of the SSM parameter that holds the image's ID
	needs []requirements.Requirement // requirements on labels; the image is for instance types that meet all of them
}

func requirement(key string, op requirements.Operator, values ...string) requirements.Requirement {
	return requirements.Requirement{Key: key, Operator: op, Values: values}
}

func withoutAccelerator() []requirements.Requirement {
	return []requirements.Requirement{requirement(labelGPU, requirements.DoesNotExist),
		requirement(labelAccelerator, requirements.DoesNotExist)}
}

func withGPU() []requirements.Requirement {
	return []requirements.Requirement{requirement(labelGPU, requirements.Exists)}
}

func withNeuron() []requirements.Requirement {
	return []requirements.Requirement{requirement(labelAccelerator, requirements.Exists)}
}

// byAlias returns the images of an alias, from the SSM parameters that AWS publishes for its family. It leaves out
// variants without parameter: AWS does not publish them. Any other error fails the whole call, because a list without
// one of the variants would look like drift.
func (d *Client) byAlias(ctx context.Context, version string, t Term) ([]Image, *Unmatched, error) {
	variants, problem := variantsOf(t.Alias, version)
	if problem != "" {
		return nil, &Unmatched{t, "UnsupportedAlias", problem}, nil
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

// variantsOf returns the variants of an alias for a Kubernetes version, "1.33". If there are none, problem is the
// reason. In this file, version is the Kubernetes version and release the part of the alias after "@". The paths of the
// parameters are from the EKS and Bottlerocket user guides.
func variantsOf(alias, version string) (variants []variant, problem string) {
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
		{path(""), withoutAccelerator()},
		{path("-arm64"), withoutAccelerator()},
		{path("-gpu"), withNeuron()}, // this image has both drivers
		{path("-gpu"), withGPU()},
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
		{path("x86_64", "standard"), withoutAccelerator()},
		{path("arm64", "standard"), withoutAccelerator()},
		{path("x86_64", "nvidia"), withGPU()},
		{path("arm64", "nvidia"), withGPU()},
		{path("x86_64", "neuron"), withNeuron()},
	}
}

func bottlerocket(version, release string) []variant {
	release = strings.TrimPrefix(release, "v")
	path := func(kind, arch string) string {
		return "/aws/service/bottlerocket/aws-k8s-" + version + kind + "/" + arch + "/" + release + "/image_id"
	}
	return []variant{
		{path("", "x86_64"), withoutAccelerator()},
		{path("", "arm64"), withoutAccelerator()},
		{path("-nvidia", "x86_64"), withGPU()},
		{path("-nvidia", "arm64"), withGPU()},
		{path("", "x86_64"), withNeuron()}, // the image without accelerator drivers contains the Neuron driver
	}
}

// windowsBuild returns the value of the label node.kubernetes.io/windows-build for a release of Windows Server.
func windowsBuild(year string) string {
	return map[string]string{"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}[year]
}

// windows returns the variant of a release of Windows Server. If there is none, problem is the reason.
func windows(year, version, release string, minor int) (variants []variant, problem string) {
	switch {
	case release != "latest":
		return nil, "the version of a Windows alias must be latest"
	case year == "2025" && minor < 35:
		return nil, "AWS makes no Windows 2025 image for Kubernetes before 1.35"
	}
	return []variant{{
		"/aws/service/ami-windows-latest/Windows_Server-" + year + "-English-Core-EKS_Optimized-" + version + "/image_id",
		[]requirements.Requirement{requirement(catalog.LabelOS, requirements.In, "windows"),
			requirement(labelBuild, requirements.In, windowsBuild(year))},
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

// parameter returns the value of an SSM parameter, from the cache if possible; ok is false if there is no such
// parameter.
func (d *Client) parameter(ctx context.Context, name string) (value string, ok bool, err error) {
	now := time.Now()
	d.mu.Lock()
	cached, isCached := d.parameters[name]
	d.mu.Unlock()
	if isCached && now.Before(cached.until) {
		return cached.value, cached.value != "", nil
	}
	out, err := d.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
	err = awserr.Classify("GetParameter "+name, err)
	if err != nil && !awserr.Is(err, awserr.Gone) {
		return "", false, err
	}
	if err == nil && out.Parameter != nil {
		value = strings.TrimSpace(aws.ToString(out.Parameter.Value))
	}
	validity := cacheTime
	if value == "" {
		validity = cacheTimeMissing
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parameters[name] = cachedParameter{value, now.Add(validity)}
	return value, value != "", nil
}
