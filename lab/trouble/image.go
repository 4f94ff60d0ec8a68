package trouble

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/lab/machine"
	"github.com/joiner-sh/joiner/world"
)

// imageFaults are of images: of another family than the EC2NodeClass says, or with something missing.
func imageFaults() []Fault {
	flawed := func(f Fault, family, flaw string) Fault {
		f.After, f.Break = true, otherFamily(family, family, func(i *world.Image) { i.Flaws = []string{flaw} })
		if f.Hand == nil && f.Check != "BOOT-5" {
			f.Hand = otherImage()
		}
		return f
	}
	return []Fault{
		{Name: "image-of-al2", What: "an image of Amazon Linux 2, named so that nobody can tell, under AMI family AL2023", Check: "BOOT-4", Cause: "does not understand the user data of AMI family AL2023", After: true,
			Break: otherFamily("AL2023", "AL2", nil), Hand: imageFamily("AL2")},
		{Name: "image-of-al2023", What: "an image of Amazon Linux 2023, named so that nobody can tell, under AMI family AL2", Check: "BOOT-4", Cause: "does not understand the user data of AMI family AL2", After: true,
			Break: otherFamily("AL2", "AL2023", nil), Hand: imageFamily("AL2023")},
		flawed(Fault{Name: "image-without-nodeadm", What: "the image has no nodeadm", Check: "BOOT-5", Cause: "has no nodeadm"}, "AL2023", machine.FlawNoNodeadm),
		flawed(Fault{Name: "image-hardened", What: "the image was hardened so that nodeadm may not be run", Check: "BOOT-5", Cause: "has no nodeadm"}, "AL2023", machine.FlawLockedNodeadm),
		flawed(Fault{Name: "image-without-bootstrap", What: "the image has no bootstrap.sh", Check: "BOOT-4", Cause: "does not understand the user data", Hand: imageFamily("")}, "AL2", machine.FlawNoBootstrap),
		flawed(Fault{Name: "image-without-kubelet", What: "the image has no kubelet", Check: "BOOT-14", Cause: "has no kubelet"}, "AL2023", machine.FlawNoKubelet),
		flawed(Fault{Name: "image-without-kubelet-al2", What: "the image of Amazon Linux 2 has no kubelet", Check: "BOOT-14", Cause: "has no kubelet"}, "AL2", machine.FlawNoKubelet),
		flawed(Fault{Name: "clock-wrong", What: "the image has no time service, and its clock is hours off", Check: "BOOT-3", Cause: "clock is wrong", Hand: otherClock}, "AL2023", machine.FlawWrongClock),
		flawed(Fault{Name: "clock-wrong-al2", What: "the image of Amazon Linux 2 has no time service, and its clock is hours off", Check: "BOOT-3", Cause: "clock is wrong", Hand: otherClock}, "AL2", machine.FlawWrongClock),
	}
}

// otherFamily lets the scene use an image of a family under the name of another. Images of Amazon Linux 2 are made by the account.
func otherFamily(named, is string, change func(*world.Image)) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		return s.World(func(_ *world.World, now time.Time) error {
			from := is
			if is == "AL2" {
				from = "AL2023" // AWS makes none of it for the versions of today
			}
			id, err := s.copyImage(now, from, func(i *world.Image) {
				i.Family = is
				if change != nil {
					change(i)
				}
			})
			s.Class.Spec.AMIFamily, s.Class.Spec.AMISelectorTerms = &named, []awsv1.AMISelectorTerm{{ID: id}}
			return err
		})
	}
}

// imageFamily sets the EC2NodeClass to the family of its image, as the fix says; without one, it selects AWS's own image.
func imageFamily(family string) func(context.Context, *Scene, string) error {
	return func(ctx context.Context, s *Scene, fix string) error {
		if !strings.HasPrefix(fix, "kubectl edit ec2nodeclass "+s.Name+"   # ") || !strings.Contains(fix, "spec.amiFamily must be that of the image") {
			return fmt.Errorf("it does not say that the AMI family must be that of the image")
		}
		return errors.Join(s.change(ctx, func() {
			s.Class.Spec.AMIFamily = &family
			if family == "" {
				s.Class.Spec.AMIFamily, s.Class.Spec.AMISelectorTerms = nil, []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
			}
		}), s.rest(ctx, fix))
	}
}

// otherClock selects an image that keeps the time, as the fix says.
func otherClock(ctx context.Context, s *Scene, fix string) error {
	return otherImage("169.254.169.123")(ctx, s, fix)
}

// scriptFaults are of what the user data of an image of one's own makes of its machine: it shows on the console alone.
func scriptFaults() []Fault {
	own := func(name, what, check, cause string, change func(string) string, words ...string) Fault {
		return Fault{Name: name, What: "image of one's own: " + what, Check: check, Cause: cause, After: true, Break: custom(change), Hand: rewriteAny(words...)}
	}
	before := func(lines string) func(string) string {
		return func(text string) string { return strings.Replace(text, "/etc/eks", lines+"\n/etc/eks", 1) }
	}
	replace := func(old, with string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, with, 1) }
	}
	return []Fault{
		own("program-for-arm", "the script fetches a program for arm64, on x86", "ARCH-3", "for another architecture",
			before("set -e\ncurl -sSLo /usr/local/bin/agent https://example.com/agent/arm64\nchmod +x /usr/local/bin/agent\n/usr/local/bin/agent --join"), "uname -m"),
		own("swap-on", "the script makes a swap file", "BOOT-11", "has swap", before("fallocate -l 2G /swapfile\nmkswap /swapfile\nswapon /swapfile"), "swap"),
		own("disk-full", "the script writes more than the root volume holds", "BOOT-15", "disk is full", before("set -e\nfallocate -l 100G /var/cache/models"), "spec.userData"),
		own("eviction-threshold-unreadable", "the kubelet gets an eviction threshold that cannot be read", "BOOT-9", "refuses a flag or its configuration", replace("args '", "args '--eviction-hard=memory.available=100Mi "), "spec.userData"),
		own("kubelet-pods-negative", "the kubelet is told to take fewer than no pods", "BOOT-9", "refuses a flag or its configuration", replace("args '", "args '--max-pods=-5 "), "spec.userData"),
	}
}

// rewriteAny gives the scene healthy user data, after a fix that says all of the words, whatever it says to do first.
func rewriteAny(words ...string) func(context.Context, *Scene, string) error {
	return func(ctx context.Context, s *Scene, fix string) error {
		for _, w := range words {
			if !strings.Contains(fix, w) {
				return fmt.Errorf("it does not say %q", w)
			}
		}
		text, err := s.customData()
		if err != nil {
			return err
		}
		return errors.Join(s.change(ctx, func() { s.Class.Spec.UserData = &text }), s.rest(ctx, fix))
	}
}

// rest does the lines of a fix after the first, which is for a person to do, as they are printed.
func (s *Scene) rest(ctx context.Context, fix string) error {
	if _, lines, more := strings.Cut(fix, "\n"); more {
		return s.Paste(ctx, lines)
	}
	return nil
}
