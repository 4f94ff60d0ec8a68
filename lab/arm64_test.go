package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// armFault is a fault that prevents a NodePool from launching ARM nodes.
type armFault struct {
	name   string
	check  string // ID of the check that must be the first finding
	cause  string // part of the finding's cause
	family string // instance family that the pool requires
	arch   string // architecture that the pool requires
	images string // AMI fields of the class; %s is replaced by the ID of an image for amd64
	label  string // node label that the pods select
}

// armFaults returns the faults that TestCaseARM64 injects one after the other in one lab. Doctor must report each fault
// before an instance is launched, and the printed fix must work.
func armFaults() []armFault {
	const al2023Terms = "amiSelectorTerms: [{alias: al2023@latest}]"
	return []armFault{
		{"arm-label", "ARCH-4", "the pod selects nodes with pod-type=armapp, and no NodePool gives its nodes that label",
			"t4g", "arm64", al2023Terms, "pod-type: armapp"},
		{"arm-empty", "ARCH-1", "no instance type is left after the requirement kubernetes.io/arch In [amd64]",
			"t4g", "amd64", al2023Terms, "test: arm-empty"},
		{"arm-image", "ARCH-2", "its pools launch arm64 instances, and none of its images is for them",
			"t4g", "arm64", "amiFamily: AL2023\n  amiSelectorTerms: [{id: %s}]", "test: arm-image"},
	}
}

// TestCaseARM64 reproduces the user report case-2: NodePools of t4g whose nodes never join. It also runs a NodePool of
// both architectures, which works.
//
// Doctor reports before a launch: a label that no NodePool offers, a requirement that leaves no type, and an image of
// the other architecture. The printed fix of each report works. The controller warns of user data that names a program
// of the other architecture. If such a program prevents a node from joining, the controller finds it in the console
// output. Doctor also reports pods whose image is for the other architecture, and the fix moves them to other nodes.
func TestCaseARM64(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	joiner := program(t)
	restartController(t, l)
	mixedPool(t, l)
	for _, f := range armFaults() {
		if !t.Run(f.name, func(t *testing.T) { f.runTest(t, l, joiner) }) {
			return // the fault remains, and doctor would report it in the next subtest too
		}
	}
	t.Run("arm-program", func(t *testing.T) { amd64ProgramInUserData(t, l) })
	t.Run("arm-pods", func(t *testing.T) { amd64Pods(t, l, joiner) })
	t.Run("arm-console", func(t *testing.T) { amd64ProgramOnConsole(t, l, joiner) })
}

// amd64Pods creates a pod whose image is for amd64 only, in a NodePool of both architectures whose ARM instances are
// cheaper. The pod is bound to an ARM node, but its container does not start there. After the fix, the pod starts.
func amd64Pods(t *testing.T, l *lab.Lab, joiner string) {
	const name = "arm-pods"
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, t4g]}",
			"{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}"),
		strings.Replace(deployment("default", name, 1, "500m", "256Mi", "test: "+name), "image: pause", "image: example.com/app:1.4-amd64", 1))
	awaitFirstFinding(t, l, joiner, "ARCH-5", "an image of Deployment/"+name+" has no variant for arm64")
	applyLikelyFix(t, l, joiner, "ARCH-5")
	awaitPod(t, l, name)
}

// amd64ProgramOnConsole uses a custom image, and user data that runs a downloaded program for amd64, which fails. The
// controller reads the console of the late instance and writes the cause to the NodeClaim. Doctor applies the fix when
// the user answers yes in a terminal.
func amd64ProgramOnConsole(t *testing.T, l *lab.Lab, joiner string) {
	const name = "arm-console"
	restartController(t, l, "LATE_AFTER=5s")
	imageID := ""
	l.Emulator.Do(func(_ *world.World, now time.Time) {
		imageID = l.Estate.Region.Images.Register(world.Image{
			Name: name, Architecture: "arm64", OwnerID: l.Account, CreatedAt: now, RootDevice: "/dev/xvda",
			Volumes: []world.ImageVolume{{Device: "/dev/xvda", SizeGiB: 20, Kind: "gp3"}}, Family: "Custom", Variant: "standard",
			Version: lab.KubernetesMinor(),
		}).ID
	})
	apply(t, l, class(l, name, "amiFamily: Custom\n  amiSelectorTerms: [{id: "+imageID+"}]\n  userData: |\n    #!/bin/bash\n    set -ex\n"+
		"    curl -sSLo /usr/local/bin/agent https://example.com/agent-linux-amd64\n    chmod +x /usr/local/bin/agent\n"+
		"    /usr/local/bin/agent --join\n"+
		"    /etc/eks/bootstrap.sh "+l.Cluster+" --kubelet-extra-args '--register-with-taints=karpenter.sh/unregistered:NoExecute'"),
		pool(name, "", "{key: karpenter.k8s.aws/instance-family, operator: In, values: [t4g]}",
			"{key: kubernetes.io/arch, operator: In, values: [arm64]}"),
		deployment("default", name, 1, "500m", "256Mi", "test: "+name))
	const cause = "runs a program for an architecture other than that of instance type t4g."
	within(t, l, time.Minute, "the NodeClaim to report the cause in the console output", func(ctx context.Context) (bool, error) {
		var claims karpenterv1.NodeClaimList
		if err := l.Client.List(ctx, &claims, client.MatchingLabels{karpenterv1.LabelNodePool: name}); err != nil || len(claims.Items) == 0 {
			return false, err
		}
		c, _ := claims.Items[0].StatusConditions().Find(karpenterv1.ConditionRegistered)
		if c.Reason != "ARCH_3" || !strings.Contains(c.Message, cause) {
			return false, fmt.Errorf("the condition Registered has %s: %s", c.Reason, c.Message)
		}
		return true, nil
	})
	if l.Emulator.Permissions(lab.ControllerRole)["ec2:GetConsoleOutput"] == 0 {
		t.Error("the controller did not call GetConsoleOutput, want at least one call")
	}
	awaitFirstFinding(t, l, joiner, "ARCH-3", cause)
	if printed, code := doctorAsOwner(t, l, joiner, "--fix", "ARCH-3", "--yes"); code != 2 ||
		!strings.Contains(printed, "it is likely and not certain") {
		t.Errorf("--yes must not apply a likely fix; exit status %d, want 2:\n%s", code, printed)
	}
	if printed, code := answeredDoctor(t, l, joiner, "no", "--fix", "ARCH-3"); code != 1 || !strings.Contains(printed, "nothing was changed") {
		t.Errorf("after the answer no: exit status %d, want 1 and no change:\n%s", code, printed)
	}
	printed, code := answeredDoctor(t, l, joiner, "yes", "--fix", "ARCH-3")
	// The printed diff has the URL twice: in the removed and in the added line.
	if code != 0 || !strings.HasSuffix(strings.TrimSpace(printed), "done") || !strings.Contains(printed, "+") ||
		strings.Count(printed, "agent-linux-") != 2 {
		t.Fatalf("after the answer yes: exit status %d, want 0 and the applied fix:\n%s", code, printed)
	}
	t.Log("\n" + printed)
	awaitPod(t, l, name)
}

// awaitFirstFinding waits until doctor's first finding has the verdict broken, the check and the cause.
func awaitFirstFinding(t *testing.T, l *lab.Lab, joiner, check, cause string) {
	t.Helper()
	within(t, l, time.Minute, "the first finding to be "+check, func(ctx context.Context) (bool, error) {
		first, err := firstFinding(ctx, l, joiner)
		if err == nil && (first.Check != check || !strings.Contains(first.Cause, cause) || first.Verdict != "broken") {
			err = fmt.Errorf("the first finding is %+v", first)
		}
		return err == nil, err
	})
}

// amd64ProgramInUserData sets user data that downloads a program for amd64 only. The EC2NodeClass must get a warning
// before anything is launched.
func amd64ProgramInUserData(t *testing.T, l *lab.Lab) {
	const name = "arm-program"
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]\n  userData: |\n    #!/bin/bash\n"+
		"    echo would fetch https://example.com/agent-linux-amd64"))
	within(t, l, time.Minute, "the EC2NodeClass to warn of its user data", func(ctx context.Context) (bool, error) {
		c := &awsv1.EC2NodeClass{}
		if err := l.Client.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return false, err
		}
		condition, _ := c.StatusConditions().Find(awsv1.ConditionPreflightPassed)
		if condition.Status != metav1.ConditionFalse || condition.Reason != "OtherArchitecture" ||
			!strings.Contains(condition.Message, "line 2: it names a file for amd64") {
			return false, fmt.Errorf("PreflightPassed is %s, %s: %s", condition.Status, condition.Reason, condition.Message)
		}
		return c.StatusConditions().IsReady(), nil
	})
	// Delete the class: otherwise doctor --fix in the next subtests would also offer its fix.
	if err := l.Client.Delete(t.Context(), &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	within(t, l, time.Minute, "the EC2NodeClass to be deleted", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKey{Name: name}, &awsv1.EC2NodeClass{})
		return err != nil, client.IgnoreNotFound(err)
	})
}

// mixedPool runs pods of both architectures in one NodePool, and checks that each instance has an image of its
// architecture.
func mixedPool(t *testing.T, l *lab.Lab) {
	t.Helper()
	const name = "mixed"
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, t4g]}",
			"{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}"),
		deployment("default", "mixed-amd64", 1, "500m", "256Mi", "test: mixed, kubernetes.io/arch: amd64"),
		deployment("default", "mixed-arm64", 1, "500m", "256Mi", "test: mixed, kubernetes.io/arch: arm64"))
	awaitPod(t, l, "mixed-amd64")
	awaitPod(t, l, "mixed-arm64")
	l.Emulator.Do(func(w *world.World, _ time.Time) {
		for _, i := range w.Region(l.Account, l.Region).Instances.All() {
			image, _ := w.Region(l.Account, l.Region).Images.ByID(i.ImageID)
			isARM := strings.HasPrefix(i.Type, "t4g.")
			if isARM != (image.Architecture == "arm64") {
				t.Errorf("an instance of type %s has an image for %s, want its own architecture", i.Type, image.Architecture)
			}
		}
	})
}

// runTest applies the fault, checks doctor's first finding, applies its fix, and waits until the pod runs.
func (f armFault) runTest(t *testing.T, l *lab.Lab, joiner string) {
	images := f.images
	if strings.Contains(images, "%s") {
		images = fmt.Sprintf(images, al2023(t, l))
	}
	apply(t, l, class(l, f.name, images),
		pool(f.name, "", "{key: karpenter.k8s.aws/instance-family, operator: In, values: ["+f.family+"]}",
			"{key: kubernetes.io/arch, operator: In, values: ["+f.arch+"]}"),
		deployment("default", f.name, 1, "500m", "256Mi", f.label))
	awaitFirstFinding(t, l, joiner, f.check, f.cause)
	printed, _, err := l.Doctor(t.Context(), joiner)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + printed)
	certainty := "certain"
	if f.check == "ARCH-4" { // the label can also be a mistake in the pod
		certainty = "likely"
	}
	checkFirstLines(t, printed, f.check+" broken, "+certainty, f.cause)
	var claims karpenterv1.NodeClaimList
	if err := l.Client.List(t.Context(), &claims, client.MatchingLabels{karpenterv1.LabelNodePool: f.name}); err != nil {
		t.Fatal(err)
	}
	if all := instancesOf(l, f.name); len(all) > 0 || len(claims.Items) > 0 {
		t.Errorf("before the fix there are %d NodeClaims and the instances %v, want no NodeClaim and no instance", len(claims.Items), all)
	}
	if certainty == "likely" {
		applyLikelyFix(t, l, joiner, f.check)
	} else if printed, code := doctorAsOwner(t, l, joiner, "--fix", f.check, "--yes"); code != 0 || !strings.HasSuffix(printed, "done\n") {
		t.Fatalf("the fix has exit status %d, want 0:\n%s", code, printed)
	}
	awaitPod(t, l, f.name)
}

// applyLikelyFix applies a fix with the certainty "likely". The flag --yes must not apply such a fix; the answer yes in
// a terminal must apply it.
func applyLikelyFix(t *testing.T, l *lab.Lab, joiner, check string) {
	t.Helper()
	if printed, code := doctorAsOwner(t, l, joiner, "--fix", check, "--yes"); code != 2 ||
		!strings.Contains(printed, "it is likely and not certain") {
		t.Errorf("--yes must not apply a likely fix; exit status %d, want 2:\n%s", code, printed)
	}
	if printed, code := answeredDoctor(t, l, joiner, "yes", "--fix", check); code != 0 ||
		!strings.HasSuffix(strings.TrimSpace(printed), "done") {
		t.Fatalf("the fix has exit status %d, want 0:\n%s", code, printed)
	}
}

// awaitPod waits until the only pod of a Deployment in the namespace default runs.
func awaitPod(t *testing.T, l *lab.Lab, app string) {
	t.Helper()
	within(t, l, time.Minute, "the pod of "+app+" to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		return err == nil && slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }), err
	})
}

// checkFirstLines checks that the printed text has at most 24 lines, and that its first three lines contain the words.
func checkFirstLines(t *testing.T, printed string, words ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	head := strings.Join(lines[:min(3, len(lines))], "\n")
	for _, w := range words {
		if len(lines) > 24 || !strings.Contains(head, w) {
			t.Errorf("want at most 24 lines, the first three with %q; got %d lines:\n%s", w, len(lines), printed)
		}
	}
}
