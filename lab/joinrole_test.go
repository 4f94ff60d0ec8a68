package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

// TestJoinRole tests the case join-role: aws-auth maps the controller's role instead of the node role.
//
// The controller reports the mistake before a launch. When the EC2NodeClass allows launches anyway, the controller
// reports the cause on the late claim, its pool and its pod, and launches no second instance. joiner doctor, with read
// permissions only, names the cause in its first lines, and the printed fix works.
func TestJoinRole(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{ekscluster.AuthConfigMap, ekscluster.AuthBoth} {
		t.Run(mode, func(t *testing.T) { joinRole(t, parallelLab(t, lab.Options{AuthMode: mode})) })
	}
}

func joinRole(t *testing.T, l *lab.Lab) {
	ctx := t.Context()
	joiner := program(t)
	if err := l.AddOns.MapRoles(ctx, l.Roles.ARN(lab.ControllerRole)); err != nil {
		t.Fatal(err)
	}
	restartController(t, l, "LATE_AFTER=5s")
	const name = "karpenter"
	images := fmt.Sprintf("amiFamily: AL2\n  amiSelectorTerms: [{id: %s}]", l.AL2Image)
	apply(t, l, fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: karpenter, namespace: kube-system, annotations: {eks.amazonaws.com/role-arn: %q}}\n---\n", l.Roles.ARN(lab.ControllerRole)),
		class(l, name, images),
		pool(name, "limits: {cpu: 4}", "{key: node.kubernetes.io/instance-type, operator: In, values: [t2.small, t2.medium, t3.small, t3.medium]}", "{key: kubernetes.io/arch, operator: In, values: [amd64]}"),
		deployment("default", "inflate", 2, "500m", "256Mi", "test: "+name))
	want := fmt.Sprintf("node role %s is not mapped; the role that is mapped, %s, is the controller's own", lab.NodeRole, lab.ControllerRole)
	awaitPreflightReport(t, l, name, want)
	patch := []byte(`{"metadata":{"annotations":{"joiner.sh/preflight":"warn"}}}`)
	if err := l.Client.Patch(ctx, &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}},
		client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	within(t, l, time.Minute, "an instance that is rejected twice", func(context.Context) (bool, error) {
		return slices.ContainsFunc(l.Instances(), func(i world.Instance) bool {
			return strings.Count(l.Console(i.ID), `"Unable to register node with API server" err="Unauthorized"`) >= 2
		}), nil
	})
	fix := awaitLateReport(t, l, name, want)
	began := time.Now()
	printed, code, err := l.Doctor(ctx, joiner)
	if err != nil || code != 1 {
		t.Fatalf("joiner doctor: exit status %d, error %v, want 1 and no error:\n%s", code, err, printed)
	}
	t.Logf("joiner doctor printed, after %s:\n%s", time.Since(began).Truncate(time.Millisecond), printed)
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	// A terminal has 24 lines.
	if len(lines) > 24 || !strings.Contains(strings.Join(lines[:3], "\n"), want) {
		t.Errorf("the output has %d lines; want at most 24, the first three with: %s", len(lines), want)
	}
	if !strings.HasPrefix(printed, "AUTH-5 broken, certain: EC2NodeClass "+name) || strings.Contains(printed, "permission") {
		t.Error("want AUTH-5 as the first finding, and no finding about a missing permission")
	}
	if fix != fixIn(t, printed) {
		t.Errorf("the claim has the fix %s, want the fix that joiner doctor prints", fix)
	}
	before := len(l.Instances())
	applyFix(t, l, fix)
	within(t, l, time.Minute, "the pods to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=inflate"})
		return err == nil && len(pods.Items) == 2 &&
			!slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning }), err
	})
	if n := len(l.Instances()); n != before {
		t.Errorf("%d instances exist, want %d: after the fix the late instances join, and no further one is needed", n, before)
	}
	within(t, l, time.Minute, "joiner doctor to report no finding", func(ctx context.Context) (bool, error) {
		printed, code, err := l.Doctor(ctx, joiner)
		if err == nil && code != 0 {
			err = fmt.Errorf("joiner doctor printed:\n%s", printed)
		}
		return code == 0, err
	})
}

// awaitPreflightReport waits until conditions of the EC2NodeClass and of its pool, and an event of a pod, report the
// cause. It checks that nothing was launched.
func awaitPreflightReport(t *testing.T, l *lab.Lab, name, want string) {
	t.Helper()
	within(t, l, time.Minute, "the cause to be reported before a launch", func(ctx context.Context) (bool, error) {
		class, pool := &awsv1.EC2NodeClass{}, &karpv1.NodePool{}
		if err := errors.Join(l.Client.Get(ctx, client.ObjectKey{Name: name}, class),
			l.Client.Get(ctx, client.ObjectKey{Name: name}, pool)); err != nil {
			return false, err
		}
		validation, _ := class.StatusConditions().Find(awsv1.ConditionValidationSucceeded)
		preflight, _ := class.StatusConditions().Find(awsv1.ConditionPreflightPassed)
		classReady, _ := pool.StatusConditions().Find(karpv1.ConditionNodeClassReady)
		isReported := validation.Reason == "AUTH_5" && strings.Contains(validation.Message, want) &&
			preflight.Reason == "AUTH_5" && strings.Contains(classReady.Message, want)
		return isReported && hasEvent(ctx, l, "Pod", want), nil
	})
	if n := len(l.Instances()); n != 0 {
		t.Errorf("%d instances were launched before the cause was reported, want none", n)
	}
}

// awaitLateReport waits until a claim's condition, and events on the claim, its pool and its pods, name the cause. It
// returns the fix that the condition names.
func awaitLateReport(t *testing.T, l *lab.Lab, name, want string) (fix string) {
	t.Helper()
	within(t, l, time.Minute, "the cause of a late claim to be reported", func(ctx context.Context) (bool, error) {
		var claims karpv1.NodeClaimList
		if err := l.Client.List(ctx, &claims); err != nil || len(claims.Items) == 0 {
			return false, err
		}
		c, _ := claims.Items[0].StatusConditions().Find(karpv1.ConditionRegistered)
		text, rest, _ := strings.Cut(c.Message, ". Fix: ")
		fix = strings.TrimSuffix(rest, " (AUTH-5)")
		if c.Reason != "AUTH_5" || text != want {
			return false, fmt.Errorf("the condition is %s: %s", c.Reason, c.Message)
		}
		for _, kind := range []string{"NodeClaim", "NodePool", "Pod"} {
			if !hasEvent(ctx, l, kind, "NodeNotJoining", want) {
				return false, fmt.Errorf("no event NodeNotJoining with the cause on a %s", kind)
			}
		}
		pool := &karpv1.NodePool{}
		err := l.Client.Get(ctx, client.ObjectKey{Name: name}, pool)
		health, _ := pool.StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy)
		return health.Reason == "AUTH_5" && strings.Contains(health.Message, want) && strings.Contains(health.Message, "the next try is at"), err
	})
	return fix
}

// hasEvent reports whether an event on an object of the kind has all of the words in its reason or message.
func hasEvent(ctx context.Context, l *lab.Lab, kind string, words ...string) bool {
	events, err := l.Kube.EventsV1().Events("").List(ctx, metav1.ListOptions{})
	return err == nil && slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
		text := e.Reason + ": " + e.Note
		return e.Regarding.Kind == kind && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
}

func fixIn(t *testing.T, printed string) string {
	t.Helper()
	_, rest, ok := strings.Cut(printed, "\n  fix   ")
	fix, _, end := strings.Cut(rest, "\n  more  ")
	fix, _, _ = strings.Cut(fix, "\n  then  ") // "then" lists consequences of the cause
	if !ok || !end {
		t.Fatalf("no fix in:\n%s", printed)
	}
	return fix
}

// applyFix runs a fix in a shell, as a user does. If kubectl or the AWS command line is missing, applyFix itself
// carries out the two most common fixes, and skips the test for any other fix.
func applyFix(t *testing.T, l *lab.Lab, fix string) {
	t.Helper()
	_, kubectlErr := exec.LookPath("kubectl")
	aws := exec.CommandContext(t.Context(), "aws", "--version")
	isKubectl := strings.HasPrefix(fix, "kubectl ")
	if isKubectl && kubectlErr == nil || !isKubectl && aws.Run() == nil {
		shell := exec.CommandContext(t.Context(), "bash", "-euc", fix)
		// Version 1 of the AWS command line reads the region only from AWS_DEFAULT_REGION.
		shell.Env = append(append(os.Environ(), l.Environment()...), "AWS_DEFAULT_REGION="+l.Region)
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", fix, err, out)
		}
		return
	}
	switch {
	case strings.HasPrefix(fix, "kubectl -n kube-system patch configmap aws-auth --type merge -p '"):
		_, patch, _ := strings.Cut(fix, " -p '")
		_, err := l.Kube.CoreV1().ConfigMaps("kube-system").Patch(t.Context(), "aws-auth", types.MergePatchType,
			[]byte(strings.TrimSuffix(patch, "'")), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("%s: %v", fix, err)
		}
	case strings.HasPrefix(fix, "aws eks create-access-entry ") && !strings.Contains(fix, "\n"):
		createEntry(t, l, strings.Fields(fix)[3:]) // the options
	default:
		t.Skipf("the program for the fix, kubectl or the AWS command line, is not installed; the fix is: %s", fix)
	}
}

func createEntry(t *testing.T, l *lab.Lab, options []string) {
	t.Helper()
	in := &eks.CreateAccessEntryInput{}
	for i := 0; i+1 < len(options); i += 2 {
		switch options[i] {
		case "--cluster-name":
			in.ClusterName = &options[i+1]
		case "--principal-arn":
			in.PrincipalArn = &options[i+1]
		case "--type":
			in.Type = &options[i+1]
		case "--region": // the client has the region
		default:
			t.Fatalf("the fix has the option %s", options[i])
		}
	}
	if _, err := eks.NewFromConfig(l.AWS()).CreateAccessEntry(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
