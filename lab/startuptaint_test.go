package lab_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/lab"
)

// reportedUserData is the user data of user report case-4, with two differences: it names the lab's cluster, and it
// sets two variables that the report leaves out.
const reportedUserData = `#!/bin/bash
set -o xtrace
B64_CLUSTER_CA=@AUTHORITY@
API_SERVER_URL=@ENDPOINT@
/etc/eks/bootstrap.sh @CLUSTER@ --b64-cluster-ca $B64_CLUSTER_CA --apiserver-endpoint $API_SERVER_URL --kubelet-extra-args='--register-with-taints="karpenter.sh/unregistered:NoExecute"'
`

// TestCaseStartupTaint tests user report case-4: a custom image whose user data does not pass the startup taint to the
// kubelet. Before a launch, the EC2NodeClass names the cause, the place and the corrected line. With exactly that line,
// nodes register with the taint.
func TestCaseStartupTaint(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	ensureController(t, l)
	cluster := describeCluster(t, l)
	registerGoldenImages(l)
	namespace := newTestNamespace(t, l)
	broken := strings.NewReplacer("@CLUSTER@", *cluster.Name, "@ENDPOINT@", *cluster.Endpoint, "@AUTHORITY@",
		*cluster.CertificateAuthority.Data).Replace(reportedUserData)
	applyCustom := func(name, userData string) {
		c := familyCase{family: family{userData: userData}}
		apply(t, l,
			class(l, name, "amiFamily: Custom\n  amiSelectorTerms: [{name: golden-custom-x86_64, owner: self}]"+c.userDataYAML()),
			pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"))
	}

	// The reported user data: the EC2NodeClass names the cause before any launch.
	applyCustom(namespace, broken)
	message := awaitPreflight(t, l, namespace, metav1.ConditionFalse)
	for _, want := range []string{"spec.userData, line 5, column ",
		"--kubelet-extra-args only with its value as the next word", "no node registers with the taint karpenter.sh/unregistered:NoExecute"} {
		if !strings.Contains(message, want) {
			t.Errorf("the condition's message is %q, want %q in it", message, want)
		}
	}
	if all := instancesOf(l, namespace); len(all) > 0 {
		t.Errorf("instances were launched before the report: %v, want none", all)
	}

	// The controller makes a node without the taint usable, and does not terminate its instance.
	apply(t, l, deployment(namespace, namespace, 1, "500m", "256Mi", "test: "+namespace))
	awaitRunning(t, l, namespace, 1, 2*time.Minute)
	within(t, l, time.Minute, "the claim to report the missing taint", func(ctx context.Context) (bool, error) {
		return hasTaintEvent(ctx, l, namespace)
	})
	if err := l.Kube.AppsV1().Deployments(namespace).Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	// With the printed fix, the node registers with the taint.
	printed := regexp.MustCompile(`write them as two words: (--kubelet-extra-args '[^']*')`).FindStringSubmatch(message)
	if printed == nil {
		t.Fatalf("the condition has no corrected line: %s", message)
	}
	correct := regexp.MustCompile(`--kubelet-extra-args=.*`).ReplaceAllLiteralString(broken, printed[1])
	fixed := "fixed-" + namespace
	applyCustom(fixed, correct)
	awaitPreflight(t, l, fixed, metav1.ConditionTrue)
	apply(t, l, deployment(namespace, fixed, 1, "500m", "256Mi", "test: "+fixed))
	within(t, l, 2*time.Minute, "the pod to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + fixed})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
	if missing, err := hasTaintEvent(t.Context(), l, fixed); err != nil || missing {
		t.Errorf("after the fix, an event reports a missing taint: %t, error %v; want no such event", missing, err)
	}
	cleanUp(t, l, namespace, namespace, fixed)
}

// awaitPreflight waits until the class is Ready and its condition PreflightPassed has the given status. It returns the
// condition's message.
func awaitPreflight(t *testing.T, l *lab.Lab, name string, status metav1.ConditionStatus) (message string) {
	t.Helper()
	within(t, l, time.Minute, "PreflightPassed of "+name+" to be "+string(status), func(ctx context.Context) (bool, error) {
		var class awsv1.EC2NodeClass
		if err := l.Client.Get(ctx, client.ObjectKey{Name: name}, &class); err != nil {
			return false, err
		}
		c, ok := class.StatusConditions().Find(awsv1.ConditionPreflightPassed)
		message = c.Message
		return ok && c.Status == status && class.StatusConditions().IsReady(), nil
	})
	return message
}

// hasTaintEvent reports whether one of the pool's claims has the event that its node registered without the startup
// taint.
func hasTaintEvent(ctx context.Context, l *lab.Lab, pool string) (bool, error) {
	var events corev1.EventList
	if err := l.Client.List(ctx, &events); err != nil {
		return false, err
	}
	for i := range events.Items {
		e := &events.Items[i]
		if e.Reason == "UnregisteredTaintMissing" && strings.HasPrefix(e.InvolvedObject.Name, pool+"-") {
			return true, nil
		}
	}
	return false, nil
}
