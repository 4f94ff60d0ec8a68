package world

import (
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// The owners of EKS images in the commercial regions.
const (
	eksImageOwner     = "602401143452"
	bottlerocketOwner = "092701018921"
)

type release struct {
	eks          string    // "v20260601"
	bottlerocket string    // "1.52.0"
	at           time.Time // creation time of the images
}

// releases returns the releases that every region has, oldest first. The SSM parameters "recommended" and "latest"
// refer to the last one.
func releases() []release {
	return []release{
		{eks: "v20260601", bottlerocket: "1.52.0", at: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)},
		{eks: "v20260715", bottlerocket: "1.53.0", at: time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)},
	}
}

// The Kubernetes minor versions with images, and the root device of the images.
const (
	firstMinor  = 28
	lastMinor   = 36
	lastAL2     = 32 // EKS made no AL2 images for later versions
	imageDevice = "/dev/xvda"
)

// createImages registers the images of every family, Kubernetes version and release, and creates their SSM parameters.
// Windows images are registered only for the newest release.
func (r *Region) createImages(now time.Time) error {
	all := releases()
	for i, rel := range all {
		for minor := firstMinor; minor <= lastMinor; minor++ {
			version := "1." + strconv.Itoa(minor)
			images := append(al2023Images(version, rel), bottlerocketImages(version, rel)...)
			if minor <= lastAL2 {
				images = append(images, al2Images(version, rel)...)
			}
			if i == len(all)-1 {
				images = append(images, windowsImages(version, rel)...)
			}
			for _, image := range images {
				if err := r.publish(now, image, i == len(all)-1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// publishedImage is an image with the paths of the SSM parameters that refer to the image. The name of a parameter is
// its path followed by "/image_id".
type publishedImage struct {
	image  Image
	pinned string // path for this release; empty: none
	newest string // path for the newest release
}

// publish registers an image, and creates its SSM parameters. isNewest is true for an image of the newest release. The
// image's id depends only on its region and name.
func (r *Region) publish(now time.Time, p publishedImage, isNewest bool) error {
	p.image.ID = "ami-0" + site.Digest(16, "image", r.Name, p.image.Name)
	p.image.Public, p.image.OwnerAlias = true, "amazon"
	if p.image.RootDevice == "" {
		p.image.RootDevice = imageDevice
	}
	for i := range p.image.Volumes {
		p.image.Volumes[i].SnapshotID = "snap-0" + site.Digest(16, "snapshot", r.Name, p.image.Name, strconv.Itoa(i))
	}
	r.Images.Register(p.image)
	var paths []string
	if p.pinned != "" {
		paths = append(paths, p.pinned)
	}
	if isNewest {
		paths = append(paths, p.newest)
	}
	for _, path := range paths {
		if _, err := r.SSM.PutParameter(now,
			Parameter{Name: path + "/image_id", Value: p.image.ID, DataType: "aws:ec2:image"}, true); err != nil {
			return err
		}
	}
	return nil
}

// al2023Images returns the Amazon Linux 2023 images. No arm64 image for Neuron exists.
func al2023Images(version string, rel release) []publishedImage {
	var out []publishedImage
	for _, kind := range []string{"x86_64/standard", "x86_64/nvidia", "x86_64/neuron", "arm64/standard", "arm64/nvidia"} {
		arch, variant, _ := strings.Cut(kind, "/")
		name := "amazon-eks-node-al2023-" + arch + "-" + variant + "-" + version + "-" + rel.eks
		path := "/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2023/" + kind + "/"
		out = append(out, publishedImage{
			image: Image{
				Name: name, Architecture: arch, OwnerID: eksImageOwner, CreatedAt: rel.at,
				Description: "EKS-optimized Kubernetes node based on Amazon Linux 2023, (k8s: " + version + ", containerd: 2.*)",
				Volumes:     []ImageVolume{{Device: imageDevice, SizeGiB: 20, Kind: "gp3"}},
				Family:      "AL2023", Variant: variant, Version: version,
			},
			pinned: path + name, newest: path + "recommended",
		})
	}
	return out
}

// al2Images returns the Amazon Linux 2 images. The image for GPUs also supports Neuron.
func al2Images(version string, rel release) []publishedImage {
	var out []publishedImage
	for _, kind := range []struct{ infix, arch, variant string }{{"", "x86_64", "standard"},
		{"-arm64", "arm64", "standard"}, {"-gpu", "x86_64", "nvidia"}} {
		name := "amazon-eks" + kind.infix + "-node-" + version + "-" + rel.eks
		path := "/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2" + kind.infix + "/"
		out = append(out, publishedImage{
			image: Image{
				Name: name, Architecture: kind.arch, OwnerID: eksImageOwner, CreatedAt: rel.at,
				Description: "EKS Kubernetes Worker AMI with AmazonLinux2 image, (k8s: " + version + ", containerd: 1.7.*)",
				Volumes:     []ImageVolume{{Device: imageDevice, SizeGiB: 20, Kind: "gp2"}},
				Family:      "AL2", Variant: kind.variant, Version: version,
			},
			pinned: path + name, newest: path + "recommended",
		})
	}
	return out
}

func bottlerocketImages(version string, rel release) []publishedImage {
	var out []publishedImage
	for _, arch := range []string{"x86_64", "arm64"} {
		for _, variant := range []string{"standard", "nvidia"} {
			variantName := "aws-k8s-" + version
			if variant == "nvidia" {
				variantName += "-nvidia"
			}
			name := "bottlerocket-" + variantName + "-" + arch + "-v" + rel.bottlerocket + "-" + site.Digest(8, variantName, rel.bottlerocket)
			path := "/aws/service/bottlerocket/" + variantName + "/" + arch + "/"
			out = append(out, publishedImage{
				image: Image{
					Name: name, Description: name, Architecture: arch, OwnerID: bottlerocketOwner, CreatedAt: rel.at,
					Volumes: []ImageVolume{{Device: imageDevice, SizeGiB: 4, Kind: "gp2"}, {Device: "/dev/xvdb", SizeGiB: 20, Kind: "gp2"}},
					Family:  "Bottlerocket", Variant: variant, Version: version,
				},
				pinned: path + rel.bottlerocket, newest: path + "latest",
			})
		}
	}
	return out
}
