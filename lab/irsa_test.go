package lab_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/lab"
)

// TestIRSA runs the controller with only the token of its service account, as on Fargate, where there is no Pod
// Identity. AWS checks the issuer's signature, the audience and the role's trust policy. If the identity provider, the
// trust policy, the audience or the role is wrong, the controller does not start, and one line of its log contains the
// fix. With correct settings, a pod gets its node.
func TestIRSA(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	const system, account = metav1.NamespaceSystem, lab.ControllerAccount
	host := issuerOf(t, l)
	identity := func(role, audience string) []string {
		env, err := l.ServiceAccounts.WebIdentity(t.Context(), system, account, l.Roles.ARN(role), audience)
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	checkCredentialsError(t, l, identity(lab.ControllerRole, ""), "No OpenIDConnect provider found in your account for https://"+host,
		"create an OIDC provider: aws iam create-open-id-connect-provider --url https://"+host+" --client-id-list sts.amazonaws.com")
	if err := l.Roles.TrustServiceAccount(lab.ControllerRole, system, "other-account"); err != nil {
		t.Fatal(err)
	}
	checkCredentialsError(t, l, identity(lab.ControllerRole, ""),
		"AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity",
		host+":sub is system:serviceaccount:kube-system:"+account+" and "+host+":aud is sts.amazonaws.com")
	if err := l.Roles.TrustServiceAccount(lab.ControllerRole, system, account); err != nil {
		t.Fatal(err)
	}
	checkCredentialsError(t, l, identity(lab.ControllerRole, "vault"), "Incorrect token audience",
		"the token is for the audience vault", "eks.amazonaws.com/audience=sts.amazonaws.com")
	// A misspelled role.
	checkCredentialsError(t, l, identity("KarpenterControler", ""), "there is no role "+l.Roles.ARN("KarpenterControler"))

	c := restartController(t, l, identity(lab.ControllerRole, "")...)
	name := nameOf(t)
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: kubernetes.io/arch, operator: In, values: [amd64]}"),
		deployment("default", name, 1, "500m", "256Mi", "test: "+name))
	within(t, l, time.Minute, "the pod to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

// issuerOf returns the cluster's issuer as in IAM: without https://.
func issuerOf(t *testing.T, l *lab.Lab) string {
	t.Helper()
	issuer, err := l.ServiceAccounts.Issuer()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(issuer, "https://")
}

// checkCredentialsError starts a controller that cannot get credentials, and checks that its last line about
// credentials contains each text of wants.
func checkCredentialsError(t *testing.T, l *lab.Lab, settings []string, wants ...string) {
	t.Helper()
	c, err := l.RunController(t.Context(), program(t), append(settings, "DISABLE_LEADER_ELECTION=true")...)
	if err == nil {
		c.Kill()
		t.Errorf("the controller runs, want an error with %q", wants)
		return
	}
	last := ""
	for line := range strings.Lines(err.Error()) {
		if _, message, ok := strings.Cut(line, "joiner: find AWS credentials: "); ok {
			last = message
		}
	}
	for _, want := range wants {
		if !strings.Contains(last, want) {
			t.Errorf("the controller failed with\n%v\nwant a line about credentials with %q", err, want)
		}
	}
}

// TestSealedIRSA installs the chart with IAM roles for service accounts, as the guide describes. The test runs one pod
// of the chart, as the kubelet would, in a sandbox: without DNS, instance metadata or Pod Identity, and without keys in
// its environment. The controller must become ready, and a pending pod must get a node.
func TestSealedIRSA(t *testing.T) {
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
	}
	l := parallelLab(t, lab.Options{Bare: true})
	if err := l.Pods.CheckSupport(); err != nil {
		t.Skipf("pods cannot be run as processes here: %v", err)
	}
	in := &installation{t: t, l: l, crds: definitionsOf(t, l), helm: helm}
	t.Cleanup(func() { recordRequests(l, chartNamespace, "joiner") })
	in.launchSystemNodes()
	in.makeNamespace()
	if err := l.Roles.TrustServiceAccount(lab.ControllerRole, chartNamespace, "joiner"); err != nil {
		t.Fatal(err)
	}
	in.run("install", "joiner", chartFolder(t), "-n", chartNamespace, "--wait", "--timeout", "90s", "--set", "settings.clusterName="+l.Cluster,
		"--set", `serviceAccount.annotations.eks\.amazonaws\.com/role-arn=`+l.Roles.ARN(lab.ControllerRole))
	s := &sandboxedInstallation{installation: in, launches: &launchHolder{aws: l.Emulator}, pods: map[string]*lab.Pod{}, all: map[string]*lab.Pod{}}
	s.template = in.podTemplate()
	p := s.runPod("joiner-a", "")
	if err := p.WaitReady(t.Context()); err != nil {
		t.Fatalf("%v\nthe pod called %q, which the sandbox blocks", err, s.blockedCalls(p))
	}
	name := newTestNamespace(t, l)
	apply(t, l, onePerNode(l, name, 1)...)
	awaitRunning(t, l, name, 1, time.Minute)
	if blocked := s.blockedCalls(p); len(blocked) > 0 {
		t.Errorf("the pod called addresses that the sandbox blocks: %v", blocked)
	}
	if l.Emulator.Calls()["sts:AssumeRoleWithWebIdentity"] == 0 {
		t.Error("no process called sts:AssumeRoleWithWebIdentity, want at least one call")
	}
	checkNoDenials(t, l, chartNamespace, "joiner")
}
