package lab_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

// TestDoctorFixes runs joiner doctor --fix for a node role without an effective mapping. There are two variants: the
// cluster does not read aws-auth, or aws-auth does not contain the role.
//
// Without a terminal, the command shows the change and does not make it. With a missing permission, it names the
// permission. With all permissions it makes the change: the pods run, and rows of aws-auth for other roles are
// unchanged.
func TestDoctorFixes(t *testing.T) {
	t.Parallel()
	for mode, check := range map[string]string{ekscluster.AuthAPI: "AUTH-1", ekscluster.AuthConfigMap: "AUTH-3"} {
		t.Run(mode, func(t *testing.T) { testDoctorFix(t, parallelLab(t, lab.Options{AuthMode: mode}), check) })
	}
}

// testDoctorFix is the test for one variant. check is the ID of the check that doctor must report.
func testDoctorFix(t *testing.T, l *lab.Lab, check string) {
	joiner := program(t)
	const name = "doctor-fix"
	const otherRows = "# people of the platform team\n- groups: [system:masters] # never take this away\n" +
		"  rolearn: arn:aws:iam::111122223333:role/Admins\n  username: admin\n"
	mapRoles := otherRows
	if check == "AUTH-1" { // the cluster does not read this row
		mapRoles += "- rolearn: " + l.Roles.ARN(name) +
			"\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: [system:bootstrappers, system:nodes]\n"
	}
	if err := l.Roles.AddNodeRole(name); err != nil {
		t.Fatal(err)
	}
	writeAuthMap(t, l, mapRoles)
	restartController(t, l)
	apply(t, l, strings.Replace(class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"), "role: "+lab.NodeRole, "role: "+name, 1),
		pool(name, "", "{key: kubernetes.io/arch, operator: In, values: [amd64]}"), deployment("default", name, 1, "500m",
			"256Mi", "test: "+name))
	within(t, l, time.Minute, "the first finding to be "+check, func(ctx context.Context) (bool, error) {
		first, err := firstFinding(ctx, l, joiner)
		return err == nil && first.Check == check, err
	})

	// "+ " begins an added line of the change that is shown.
	printed, code, err := l.Doctor(t.Context(), joiner, "--fix", check)
	if err != nil || code != 1 || !strings.Contains(printed, "+ ") ||
		!strings.Contains(printed, "nothing was changed: standard input is not a terminal") {
		t.Fatalf("without a terminal: exit status %d, error %v; want 1 and no change:\n%s", code, err, printed)
	}
	t.Log("\n" + printed)
	if check == "AUTH-1" { // the fix is a call to AWS, for which read permissions are not sufficient
		if _, _, err := l.Doctor(t.Context(), joiner, "--fix", check, "--yes"); err == nil ||
			!strings.Contains(err.Error(), "the permission eks:CreateAccessEntry is missing: allow it to arn:aws:") {
			t.Errorf("without the permission: error %v, want one that names eks:CreateAccessEntry", err)
		}
	}
	printed, code = doctorAsOwner(t, l, joiner, "--fix", check, "--yes")
	if code != 0 || !strings.HasSuffix(printed, "done\n") {
		t.Fatalf("with all permissions: exit status %d, want 0:\n%s", code, printed)
	}
	within(t, l, time.Minute, "the pod to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
	auth, err := l.Kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "aws-auth", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := auth.Data["mapRoles"]
	hasNewRow := strings.Count(text, "rolearn: ") == 2 // one of otherRows, and that of the fix
	if !strings.HasPrefix(text, otherRows) || check == "AUTH-3" && !hasNewRow {
		t.Errorf("want aws-auth with the other rows unchanged, and with one new row for AUTH-3; got:\n%s", text)
	}
	if printed, code := doctorAsOwner(t, l, joiner, "--fix", check); code != 0 || printed != check+" is fine: nothing to fix\n" {
		t.Errorf("second run: exit status %d, want 0 and nothing to fix:\n%s", code, printed)
	}
}

func writeAuthMap(t *testing.T, l *lab.Lab, mapRoles string) {
	t.Helper()
	maps := l.Kube.CoreV1().ConfigMaps("kube-system")
	if err := maps.Delete(t.Context(), "aws-auth", metav1.DeleteOptions{}); err != nil {
		t.Log(err) // for example, there is no ConfigMap
	}
	auth := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "aws-auth"}, Data: map[string]string{"mapRoles": mapRoles}}
	if _, err := maps.Create(t.Context(), auth, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// doctorAsOwner runs joiner doctor as the owner of the account and of the cluster.
func doctorAsOwner(t *testing.T, l *lab.Lab, joiner string, args ...string) (printed string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), joiner, append([]string{"doctor"}, args...)...)
	cmd.Env = append(append(os.Environ(), l.Environment()...), "CLUSTER_NAME="+l.Cluster, "AWS_SESSION_TOKEN=")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}
