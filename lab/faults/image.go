package faults

import (
	"context"
	"errors"
	"strings"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/instance"
)

// imageFaults are faults of images: the wrong architecture or family, a missing program, or a wrong clock.
func imageFaults() []Fault {
	flawed := func(f Fault, family, flaw string) Fault { // the image has the family of the EC2NodeClass
		f.NeedsInstance, f.Break = true, useFamilies(family, family, func(i *world.Image) { i.Flaws = []string{flaw} })
		return f
	}
	return []Fault{
		{
			Name:  "image-for-arm",
			What:  "the image is for arm64, and the NodePool launches x86",
			Check: "ARCH-2",
			Cause: "none of its images is for them",
			Break: useArmImage,
		},
		{
			Name:          "image-older-than-the-type",
			What:          "custom image: the image is older than the instance type, so its table of maximum pods lacks the type",
			Check:         "BOOT-10",
			Cause:         "is older than the instance type",
			NeedsInstance: true,
			Break: func(ctx context.Context, s *Scene) error {
				if err := useCustomImage(func(text string) string { return text })(ctx, s); err != nil {
					return err
				}
				return s.ChangeAWS(func(*world.World, time.Time) error {
					for _, i := range s.Lab.Estate.Region.Images.All() {
						if i.ID == s.Class.Spec.AMISelectorTerms[0].ID {
							i.Flaws = []string{instance.FlawOldTable}
							s.Lab.Estate.Region.Images.Register(i)
						}
					}
					return nil
				})
			}},
		{
			Name:          "image-of-al2",
			What:          "an image of Amazon Linux 2 with a misleading name, under AMI family AL2023",
			Check:         "BOOT-4",
			Cause:         "does not understand the user data of AMI family AL2023",
			NeedsInstance: true,
			Break:         useFamilies("AL2023", "AL2", nil)},
		{
			Name:          "image-of-al2023",
			What:          "an image of Amazon Linux 2023 with a misleading name, under AMI family AL2",
			Check:         "BOOT-4",
			Cause:         "does not understand the user data of AMI family AL2",
			NeedsInstance: true,
			Break:         useFamilies("AL2", "AL2023", nil)},
		flawed(Fault{
			Name:  "image-without-nodeadm",
			What:  "the image has no nodeadm",
			Check: "BOOT-5",
			Cause: "has no nodeadm",
		}, "AL2023", instance.FlawNoNodeadm),
		flawed(Fault{
			Name:  "image-hardened",
			What:  "the image was hardened so that nodeadm cannot be executed",
			Check: "BOOT-5",
			Cause: "has no nodeadm",
		}, "AL2023", instance.FlawLockedNodeadm),
		flawed(Fault{
			Name:  "image-without-bootstrap",
			What:  "the image has no bootstrap.sh",
			Check: "BOOT-4",
			Cause: "does not understand the user data",
		}, "AL2", instance.FlawNoBootstrap),
		flawed(Fault{
			Name:  "image-without-kubelet",
			What:  "the image has no kubelet",
			Check: "BOOT-14",
			Cause: "has no kubelet",
		}, "AL2023", instance.FlawNoKubelet),
		flawed(Fault{
			Name:  "image-without-kubelet-al2",
			What:  "the image of Amazon Linux 2 has no kubelet",
			Check: "BOOT-14",
			Cause: "has no kubelet",
		}, "AL2", instance.FlawNoKubelet),
		flawed(Fault{
			Name:  "image-without-containerd",
			What:  "the image has no containerd, which nodeadm calls",
			Check: "BOOT-6",
			Cause: "nodeadm fails on the instance",
		}, "AL2023", instance.FlawNoContainerd),
		flawed(Fault{
			Name:  "clock-wrong",
			What:  "the image has no time service, and its clock is hours off",
			Check: "BOOT-3",
			Cause: "clock is wrong",
		}, "AL2023", instance.FlawWrongClock),
		flawed(Fault{
			Name:  "clock-wrong-al2",
			What:  "the image of Amazon Linux 2 has no time service, and its clock is hours off",
			Check: "BOOT-3",
			Cause: "clock is wrong",
		}, "AL2", instance.FlawWrongClock),
	}
}

// useArmImage makes the EC2NodeClass select AWS's arm64 image by its ID.
func useArmImage(_ context.Context, s *Scene) error {
	family := "AL2023"
	return s.ChangeAWS(func(*world.World, time.Time) error {
		for _, i := range s.Lab.Estate.Region.Images.All() {
			if i.Family == family && i.Architecture == "arm64" && i.Variant == "standard" && i.Version == lab.KubernetesMinor() {
				s.Class.Spec.AMIFamily, s.Class.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{ID: i.ID}}
				return nil
			}
		}
		return errors.New("AWS has no AL2023 image for arm64")
	})
}

// useFamilies returns a Break function that gives the scene an image. named is the AMI family in the EC2NodeClass, and
// actual is the family of the image. change changes the image; nil: no change.
func useFamilies(named, actual string, change func(*world.Image)) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		return s.ChangeAWS(func(_ *world.World, now time.Time) error {
			source := actual
			if actual == "AL2" {
				source = "AL2023" // AWS publishes no Amazon Linux 2 image for current versions
			}
			id, err := s.copyImage(now, source, func(i *world.Image) {
				i.Family = actual
				if change != nil {
					change(i)
				}
			})
			s.Class.Spec.AMIFamily, s.Class.Spec.AMISelectorTerms = &named, []awsv1.AMISelectorTerm{{ID: id}}
			return err
		})
	}
}

// scriptFaults are faults in the user data of a custom AMI that are visible only in the instance's console output.
func scriptFaults() []Fault {
	scriptFault := func(name, what, check, cause string, change func(string) string) Fault {
		return Fault{Name: name, What: "custom image: " + what, Check: check, Cause: cause, NeedsInstance: true, Break: breakUserData(change)}
	}
	before := func(lines string) func(string) string {
		return func(text string) string { return strings.Replace(text, "/etc/eks", lines+"\n/etc/eks", 1) }
	}
	replace := func(old, with string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, with, 1) }
	}
	return []Fault{
		scriptFault("program-for-arm", "the script downloads a program for arm64 to an x86 instance", "ARCH-3", "for an architecture other than",
			before("set -e\ncurl -sSLo /usr/local/bin/agent https://example.com/agent/arm64\nchmod +x /usr/local/bin/agent\n/usr/local/bin/agent --join")),
		scriptFault("swap-on", "the script creates a swap file", "BOOT-11", "has swap",
			before("fallocate -l 2G /swapfile\nmkswap /swapfile\nswapon /swapfile")),
		scriptFault("disk-full", "the script writes more than the root volume holds", "BOOT-15", "disk is full",
			before("set -e\nfallocate -l 100G /var/cache/models")),
		scriptFault("eviction-threshold-unreadable", "the kubelet gets an invalid eviction threshold", "BOOT-9",
			"refuses a flag or its configuration", replace("args '", "args '--eviction-hard=memory.available=100Mi ")), // valid: <100Mi
		scriptFault("kubelet-pods-negative", "the kubelet gets a negative number of pods", "BOOT-9",
			"refuses a flag or its configuration", replace("args '", "args '--max-pods=-5 ")),
	}
}
