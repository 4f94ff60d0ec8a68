package lab_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
)

// unjoinableClass is an EC2NodeClass whose nodes can never join.
type unjoinableClass struct {
	spec      string // lines of the spec
	arch      string // CPU architecture that the pod requires
	preflight string // value of the class's annotation joiner.sh/preflight; empty: the default

	// The expected report of the error. Exactly one of these is set.
	wantCondition string // before a launch: text in the message of the class's condition ValidationSucceeded
	wantEvent     string // before a launch: text in an event of the pod
	wantConsole   string // after a launch: text on the console of the instance
}

// misfits are common mistakes with images and user data.
var misfits = map[string]unjoinableClass{
	"settings-in-yaml": {
		spec: "amiSelectorTerms: [{alias: bottlerocket@latest}]\n  userData: \"max-pods: 3\"", arch: "amd64",
		wantCondition: "spec.userData, line 1, column ",
	},
	"settings-quoted": {
		spec: "amiSelectorTerms: [{alias: bottlerocket@latest}]\n  userData: |\n    [settings.kubernetes]\n    log-level = \"4\"", arch: "arm64",
		wantCondition: "spec.userData, line 2, column 1: settings.kubernetes.log-level must be a number, but is text",
	},
	"settings-unknown": {
		spec: "amiSelectorTerms: [{alias: bottlerocket@latest}]\n  userData: |\n    [settings.kubernetes]\n    max-podz = 3", arch: "arm64",
		wantCondition: "spec.userData, line 2, column 1: settings.kubernetes.max-podz is unknown to Bottlerocket",
	},
	"settings-unknown-launched": {
		spec: "amiSelectorTerms: [{alias: bottlerocket@latest}]\n  userData: |\n    [settings.kubernetes]\n    max-podz = 3", arch: "arm64", preflight: "off",
		wantConsole: "Status 400 when PATCHing /settings?tx=bottlerocket-launch: Json deserialize error: unknown field `max-podz`",
	},
	"nodeconfig-broken": {
		spec: "amiSelectorTerms: [{alias: al2023@latest}]\n  userData: |\n    apiVersion: node.eks.aws/v1alpha1\n    kind: NodeConfig\n    spec: [", arch: "amd64",
		wantCondition: "spec.userData, line 3: is not a NodeConfig",
	},
	"family-of-another-image": {
		spec: "amiFamily: AL2\n  amiSelectorTerms: [{name: amazon-eks-node-al2023-*-standard-1.36-v20260715}]", arch: "amd64",
		wantCondition: "spec.amiFamily: it is AL2, and the image amazon-eks-node-al2023-",
	},
	"family-of-another-image-launched": {
		spec: "amiFamily: AL2\n  amiSelectorTerms: [{name: amazon-eks-node-al2023-*-standard-1.36-v20260715}]", arch: "amd64", preflight: "warn",
		wantConsole: "bootstrap.sh has been removed from AL2023-based EKS AMIs",
	},
	"image-of-another-architecture": {
		spec: "amiFamily: AL2\n  amiSelectorTerms: [{name: golden-al2-x86_64, owner: self}]", arch: "arm64",
		wantEvent: "kubernetes.io/arch",
	},
}

// TestFamiliesThatCannotJoin checks the reports of errors in images and user data. The errors are reported before a
// launch. If the class allows the launch nevertheless, the console of the instance shows the error.
func TestFamiliesThatCannotJoin(t *testing.T) {
	l := sharedLab(t)
	ensureController(t, l)
	registerGoldenImages(l)
	namespace := newTestNamespace(t, l)
	var pools []string
	for _, name := range slices.Sorted(maps.Keys(misfits)) {
		m, id := misfits[name], namespace+"-"+name // id names the class, pool and Deployment
		apply(t, l,
			strings.Replace(class(l, id, m.spec), "metadata: {name: "+id+"}",
				"metadata: {name: "+id+", annotations: {"+awsv1.AnnotationPreflight+": '"+m.preflight+"'}}", 1),
			pool(id, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m6g.large]}",
				"{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}"),
			deployment(namespace, id, 1, "500m", "256Mi", "test: "+id+", kubernetes.io/arch: "+m.arch))
		pools = append(pools, id)
	}
	for _, id := range pools {
		m := misfits[strings.TrimPrefix(id, namespace+"-")]
		where, ok := m.wantReport(l, namespace, id)
		within(t, l, 90*time.Second, "the error of "+id+" in "+where, ok)
	}
	for _, id := range pools {
		m, all := misfits[strings.TrimPrefix(id, namespace+"-")], instancesOf(l, id)
		if want := m.wantConsole != ""; len(all) > 0 != want {
			t.Errorf("%s: the launched instances are %v; a launch is wanted: %t", id, all, want)
		}
		for _, i := range all {
			if console := l.Console(i.ID); strings.Contains(console, "kubelet[") {
				t.Errorf("%s: want no kubelet; the console shows one:\n%s", id, console)
			}
		}
	}
	deletePodsAndClaims(t, l, namespace, pools)
	cleanUp(t, l, namespace, pools...)
}

// wantReport returns where the error must be reported, and a function that returns true once it is reported there.
func (m unjoinableClass) wantReport(l *lab.Lab, namespace, id string) (where string, ok func(context.Context) (bool, error)) {
	switch {
	case m.wantCondition != "":
		return "the condition ValidationSucceeded: " + m.wantCondition, func(ctx context.Context) (bool, error) {
			var class awsv1.EC2NodeClass
			err := l.Client.Get(ctx, client.ObjectKey{Name: id}, &class)
			return slices.ContainsFunc(class.Status.Conditions, func(c metav1.Condition) bool {
				return c.Type == awsv1.ConditionValidationSucceeded && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, m.wantCondition)
			}), err
		}
	case m.wantEvent != "":
		return "an event of the pod: " + m.wantEvent, func(ctx context.Context) (bool, error) {
			events, err := l.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
				return strings.HasPrefix(e.InvolvedObject.Name, id) && strings.HasPrefix(e.Message, "No place for the pod") &&
					strings.Contains(e.Message, m.wantEvent)
			}), nil
		}
	}
	return "the console: " + m.wantConsole, func(context.Context) (bool, error) {
		all := instancesOf(l, id)
		if len(all) == 0 {
			return false, fmt.Errorf("no instance was launched")
		}
		return strings.Contains(l.Console(all[0].ID), m.wantConsole), nil
	}
}

// deletePodsAndClaims deletes the pods, and then the claims, which would otherwise wait 15 minutes for their nodes. It
// checks that no claim has registered.
func deletePodsAndClaims(t *testing.T, l *lab.Lab, namespace string, pools []string) {
	t.Helper()
	if err := l.Kube.AppsV1().Deployments(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, l, time.Minute, "the pods to be removed", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
	for _, id := range pools {
		claims, _ := claimsOf(t, l, id)
		for i := range claims {
			if slices.ContainsFunc(claims[i].Status.Conditions, func(c metav1.Condition) bool {
				return c.Type == karpenterv1.ConditionRegistered && c.Status == metav1.ConditionTrue
			}) {
				t.Errorf("claim %s has registered, want an unregistered claim", claims[i].Name)
			}
			if err := l.Client.Delete(t.Context(), &claims[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
}
