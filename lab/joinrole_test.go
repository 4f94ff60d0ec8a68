package lab_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/world"
)

// TestJoinRole is the case join-role: aws-auth maps the controller's role where the nodes' belongs. Instances launch and never
// join; joiner doctor, as somebody who may only read, says why in its first lines; its fix, applied as it is printed, mends it.
func TestJoinRole(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{world.AuthConfigMap, world.AuthBoth} {
		t.Run(mode, func(t *testing.T) { joinRole(t, beside(t, lab.Options{AuthMode: mode})) })
	}
}

func joinRole(t *testing.T, l *lab.Lab) {
	ctx := t.Context()
	joiner := program(t)
	if err := l.MapRoles(ctx, l.RoleARN(lab.ControllerRole)); err != nil {
		t.Fatal(err)
	}
	restart(t, l)
	const name = "karpenter"
	images := fmt.Sprintf("amiFamily: AL2\n  amiSelectorTerms: [{id: %s}]", l.AL2Image)
	apply(t, l, fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: karpenter, namespace: kube-system, annotations: {eks.amazonaws.com/role-arn: %q}}\n---\n", l.RoleARN(lab.ControllerRole)),
		class(l, name, images),
		pool(name, "limits: {cpu: 4}", "{key: node.kubernetes.io/instance-type, operator: In, values: [t2.small, t2.medium, t3.small, t3.medium]}", "{key: kubernetes.io/arch, operator: In, values: [amd64]}"),
		deployment("default", "inflate", 2, "500m", "256Mi", "test: "+name))
	within(t, l, time.Minute, "an instance that is refused twice", func(context.Context) (bool, error) {
		return slices.ContainsFunc(l.Instances(), func(i world.Instance) bool {
			return strings.Count(l.Console(i.ID), `"Unable to register node with API server" err="Unauthorized"`) >= 2
		}), nil
	})
	began := time.Now()
	printed, code, err := l.Doctor(ctx, joiner)
	if err != nil || code != 1 {
		t.Fatalf("joiner doctor ended with %d, %v:\n%s", code, err, printed)
	}
	t.Logf("after %s:\n%s", time.Since(began).Truncate(time.Millisecond), printed)
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	want := fmt.Sprintf("node role %s is not mapped; the role that is mapped, %s, is the controller's own", lab.NodeRole, lab.ControllerRole)
	if len(lines) > 24 || !strings.Contains(strings.Join(lines[:3], "\n"), want) {
		t.Errorf("the first three lines of %d do not say: %s", len(lines), want)
	}
	if !strings.HasPrefix(printed, "AUTH-5 broken, certain: EC2NodeClass "+name) || strings.Contains(printed, "permission") {
		t.Error("another finding comes first, or a permission is missing")
	}
	mend(t, l, fixIn(t, printed))
	within(t, l, time.Minute, "the pods to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=inflate"})
		return err == nil && len(pods.Items) == 2 && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning }), err
	})
	within(t, l, time.Minute, "joiner doctor to find nothing", func(ctx context.Context) (bool, error) {
		printed, code, err := l.Doctor(ctx, joiner)
		if err == nil && code != 0 {
			err = fmt.Errorf("it prints:\n%s", printed)
		}
		return code == 0, err
	})
}

// fixIn is the fix of the first finding, as it is printed.
func fixIn(t *testing.T, printed string) string {
	t.Helper()
	_, rest, ok := strings.Cut(printed, "\n  fix   ")
	fix, _, end := strings.Cut(rest, "\n  more  ")
	if !ok || !end {
		t.Fatalf("there is no fix in:\n%s", printed)
	}
	return fix
}

// mend does what a fix says, by pasting it into a shell as a user would. Where a machine has not the programs for that, the two
// forms that need them most are read word by word, and others leave the test unfinished.
func mend(t *testing.T, l *lab.Lab, fix string) {
	t.Helper()
	_, noKubectl := exec.LookPath("kubectl")
	aws := exec.CommandContext(t.Context(), "aws", "--version")
	if strings.HasPrefix(fix, "kubectl ") && noKubectl == nil || !strings.HasPrefix(fix, "kubectl ") && aws.Run() == nil {
		shell := exec.CommandContext(t.Context(), "bash", "-euc", fix)
		shell.Env = append(append(os.Environ(), l.Environment()...), "AWS_DEFAULT_REGION="+l.Region) // version 1 knows it by this name alone
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", fix, err, out)
		}
		return
	}
	switch {
	case strings.HasPrefix(fix, "kubectl -n kube-system patch configmap aws-auth --type merge -p '"):
		_, patch, _ := strings.Cut(fix, " -p '")
		_, err := l.Kube.CoreV1().ConfigMaps("kube-system").Patch(t.Context(), "aws-auth", types.MergePatchType, []byte(strings.TrimSuffix(patch, "'")), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("%s: %v", fix, err)
		}
	case strings.HasPrefix(fix, "aws eks create-access-entry ") && !strings.Contains(fix, "\n"):
		createEntry(t, l, strings.Fields(fix)[3:])
	default:
		t.Skipf("neither kubectl nor the AWS command line is installed, and the fix is: %s", fix)
	}
}

// createEntry creates an access entry by the options of the AWS command line.
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
		case "--region":
		default:
			t.Fatalf("the fix has the option %s", options[i])
		}
	}
	if _, err := eks.NewFromConfig(l.AWS()).CreateAccessEntry(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
