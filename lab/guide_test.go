package lab_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

const gettingStarted = "../docs/getting-started.md"

// labSection is the section of the guide about the lab.
const labSection = "In the lab"

// The roles of the guide.
const (
	guideNodeRole       = "KarpenterNodeRole-prod"
	guideControllerRole = "JoinerController-prod"
)

// idle is the controller's batch idle duration. On a busy host kube-controller-manager can need more than a second
// between two Deployments, and asPlanned needs a single plan with all pods.
const idle = 4 * time.Second

// TestGettingStarted runs the commands of the guide like a reader with a cluster. It runs each command unchanged in one
// shell, with the AWS command line, kubectl, Helm and joiner, and compares the results with the guide.
//
// It runs the programs of the chart's pods, with the role from the guide's commands. At the end the example's pods run,
// except the pod that fits no instance. Then the test runs the commands of the README.
func TestGettingStarted(t *testing.T) {
	g := newGuideWalk(t)
	g.mustBeThere()
	g.steps = slices.DeleteFunc(stepsOf(t, gettingStarted), func(s guideStep) bool { return s.section == labSection })
	g.after("helm install joiner", g.startPods)
	g.after("kubectl --namespace lab describe pod", func(said string) {
		if !strings.Contains(said, "FailedScheduling") || !strings.Contains(said, "nvidia.com/gpu") {
			t.Errorf("the event does not contain the reason why the pod is not scheduled:\n%s", said)
		}
	})
	g.after("kubectl --namespace kube-system logs", g.says("prod"))
	g.after("aws eks describe-addon", g.says(`"status": "ACTIVE"`))
	g.after("aws eks list-access-entries", g.says(guideNodeRole))
	g.after("joiner version", g.says("joiner"))
	g.after("joiner plan", g.notePlan)
	g.after("kubectl joiner plan", g.says("$"))
	g.until("kubectl get nodeclaims --watch", g.exampleRuns)
	g.walk()
	g.asPlanned()
	g.readme()
	noRefusals(t, g.l, metav1.NamespaceSystem, "joiner")
	if used := g.l.Emulator.Permissions(guideControllerRole); used["ec2:CreateFleet"] == 0 {
		t.Errorf("the controller launched nothing as %s, it used %v", guideControllerRole, used)
	}
}

// guideWalk runs the commands of a guide.
type guideWalk struct {
	t       *testing.T
	l       *lab.Lab
	env     []string // environment of the shell
	shell   *guideShell
	steps   []guideStep
	then    map[string]func(said string)      // called after the command with this prefix
	endless map[string]func(said string) bool // returns true when the endless command with this prefix can be interrupted
	planned int                               // instances that the plan of the example launches
}

var plannedNodes = regexp.MustCompile(`: (\d+) nodes? to launch for \$`)

// notePlan stores the number of nodes that the plan of the example launches.
func (g *guideWalk) notePlan(said string) {
	g.t.Helper()
	found := plannedNodes.FindStringSubmatch(said)
	if found == nil {
		g.t.Errorf("the plan has no number of nodes to launch:\n%s", said)
		return
	}
	g.planned, _ = strconv.Atoi(found[1])
}

// asPlanned checks that the controller's first plan created as many NodeClaims as `joiner plan` has nodes for the
// example. They are equal in a cluster without other NodePools.
//
// Later plans can add NodeClaims, because kube-scheduler can bind a pod to another node than planned. These are created
// at least idle after the first NodeClaims.
func (g *guideWalk) asPlanned() {
	g.t.Helper()
	claims, _ := claimsOf(g.t, g.l, "general")
	start := time.Now()
	for _, c := range claims {
		if c.CreationTimestamp.Time.Before(start) {
			start = c.CreationTimestamp.Time
		}
	}
	first := 0
	for _, c := range claims {
		if c.CreationTimestamp.Sub(start) < idle/2 {
			first++
		}
	}
	if first != g.planned {
		g.t.Errorf("the first plan created %d NodeClaims for the example, and joiner plan launches %d instances", first, g.planned)
	}
	if len(claims) > first {
		g.t.Logf("%d NodeClaims were added later: kube-scheduler did not follow the plan", len(claims)-first)
	}
}

func newGuideWalk(t *testing.T) *guideWalk {
	t.Helper()
	tools := map[string]string{}
	helm := os.Getenv(helmVariable)
	if helm == "" {
		t.Skip(helmVariable + " names no Helm: make bin/helm builds one")
	}
	for _, name := range []string{"aws", "kubectl", "make"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	helm, err := filepath.Abs(helm)
	if err != nil {
		t.Fatal(err)
	}
	awsCLI, err := exec.LookPath("aws")
	if err != nil {
		t.Fatal(err)
	}
	tools["helm"] = `exec ` + helm + ` "$@"`
	tools["aws"] = `exec ` + awsCLI + ` --endpoint-url "$AWS_ENDPOINT_URL" "$@"` // older versions do not read the variable
	l := beside(t, lab.Options{Bare: true, Cluster: "prod", Region: "eu-west-1"})
	t.Cleanup(func() { noteAsked(l, metav1.NamespaceSystem, "joiner") })
	env := slices.DeleteFunc(l.Environment(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_REGION=") || strings.HasPrefix(v, "AWS_DEFAULT_REGION=")
	}) // the commands of the guide set the region
	env = append(env, "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_PAGER=")
	env = readerEnv(t, tools, env...)
	return &guideWalk{
		t: t, l: l, env: env, shell: newGuideShell(t, gettingStarted, checkoutLike(t), env),
		then: map[string]func(string){}, endless: map[string]func(string) bool{},
	}
}

// after calls do with the output of the command with the given prefix.
func (g *guideWalk) after(begins string, do func(said string)) { g.then[begins] = do }

// until sets when to interrupt the endless command with the given prefix.
func (g *guideWalk) until(begins string, enough func(said string) bool) { g.endless[begins] = enough }

// says returns a function that checks that the output contains the text.
func (g *guideWalk) says(text string) func(string) {
	return func(said string) {
		g.t.Helper()
		if !strings.Contains(said, text) {
			g.t.Errorf("the output does not contain %q:\n%s", text, said)
		}
	}
}

// walk runs all steps. It reports an error for each prefix of then and endless that no command of the guide has.
func (g *guideWalk) walk() {
	g.t.Helper()
	met := map[string]bool{}
	for _, step := range g.steps {
		var said string
		if enough, begins := beginsWith(step, g.endless); enough != nil {
			met[begins] = true
			said = g.shell.interrupt(step, 3*time.Minute, enough)
		} else {
			said = g.shell.run(step, 15*time.Minute) // the first command can include a build
		}
		if do, begins := beginsWith(step, g.then); do != nil {
			met[begins] = true
			do(said)
		}
	}
	for begins := range g.then {
		if !met[begins] {
			g.t.Errorf("the guide has no command %q", begins)
		}
	}
	for begins := range g.endless {
		if !met[begins] {
			g.t.Errorf("the guide has no command %q", begins)
		}
	}
}

// beginsWith returns the function whose key is a prefix of the step's command.
func beginsWith[F any](step guideStep, all map[string]F) (found F, begins string) {
	for begins, f := range all {
		if strings.HasPrefix(step.text, begins) {
			return f, begins
		}
	}
	return found, ""
}

// mustBeThere creates the prerequisites of the guide: the EKS Pod Identity agent, nodes for the controller, and the
// node role with its access entry. Subnets and security groups already have their tags.
func (g *guideWalk) mustBeThere() {
	g.t.Helper()
	calls := eks.NewFromConfig(g.l.AWS())
	addon := &eks.CreateAddonInput{ClusterName: &g.l.Cluster, AddonName: aws.String("eks-pod-identity-agent")}
	if _, err := calls.CreateAddon(g.t.Context(), addon); err != nil {
		g.t.Fatal(err)
	}
	if err := g.l.Roles.AddNode(guideNodeRole); err != nil {
		g.t.Fatal(err)
	}
	entry := &eks.CreateAccessEntryInput{ClusterName: &g.l.Cluster, PrincipalArn: aws.String(g.l.Roles.ARN(guideNodeRole)),
		Type: aws.String(ekscluster.EntryEC2Linux)}
	if _, err := calls.CreateAccessEntry(g.t.Context(), entry); err != nil {
		g.t.Fatal(err)
	}
	(&installation{t: g.t, l: g.l}).systemNodes()
}

// startPods runs the programs of the chart's pods, when both pods exist, with the role that Pod Identity associates
// with their service account.
func (g *guideWalk) startPods(string) {
	g.t.Helper()
	role := ""
	g.l.Emulator.Do(func(w *world.World, _ time.Time) {
		c, err := w.Region(g.l.Account, g.l.Region).EKS.Cluster(g.l.Cluster)
		if err != nil {
			g.t.Error(err)
			return
		}
		if a := c.AssociationOf(metav1.NamespaceSystem, "joiner"); a != nil {
			role = a.Role
		}
	})
	if role != g.l.Roles.ARN(guideControllerRole) {
		g.t.Fatalf("the controller's service account has the role %q, not the role of the guide", role)
	}
	agent := httptest.NewServer(&lab.PodIdentity{Lab: g.l, Role: guideControllerRole, Life: time.Hour})
	g.t.Cleanup(agent.Close)
	path := program(g.t)
	var pods *corev1.PodList
	within(g.t, g.l, time.Minute, "the chart's pods", func(ctx context.Context) (bool, error) {
		var err error
		pods, err = g.l.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=joiner"})
		return err == nil && len(pods.Items) == 2, err
	})
	for _, pod := range pods.Items {
		g.l.ShowLog(pod.Namespace, pod.Name, "joiner")
		settings := append((&lab.PodIdentity{}).Settings(agent.URL), "BATCH_IDLE_DURATION="+idle.String())
		c := asPod(g.t, g.l, path, metav1.NamespaceSystem, settings...)
		within(g.t, g.l, time.Minute, "the controller to be ready", func(ctx context.Context) (bool, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Probes+"/readyz", nil)
			if err != nil {
				return false, err
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				return false, c.Err()
			}
			defer response.Body.Close()
			return response.StatusCode == http.StatusOK, c.Err()
		})
	}
}

// exampleRuns reports whether all schedulable pods of the example run, and the output contains their NodeClaims.
func (g *guideWalk) exampleRuns(said string) bool {
	pods, err := g.l.Kube.CoreV1().Pods("shop").List(g.t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 15 || !strings.Contains(said, "general-") || !strings.Contains(said, "True") {
		return false
	}
	return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
}

// elsewhere are commands of the README that other tests run.
var elsewhere = map[string]string{
	"make demo": "TestGettingStartedLab",
}

// readme runs the commands of the README in the checkout itself, where go run uses the build cache. These commands do
// not write files.
func (g *guideWalk) readme() {
	g.t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		g.t.Fatal(err)
	}
	page := filepath.Join(root, "README.md")
	shell := newGuideShell(g.t, page, root, append(g.env, "CLUSTER_NAME="+g.l.Cluster, "AWS_REGION="+g.l.Region))
	ran, left := 0, map[string]bool{}
	for _, step := range stepsOf(g.t, page) {
		if elsewhere[step.text] != "" {
			left[step.text] = true
			continue
		}
		if said := shell.run(step, 15*time.Minute); said == "" {
			g.t.Errorf("%s:%d: %s printed nothing", page, step.line, step.text)
		}
		ran++
	}
	if ran < 1 || len(left) != len(elsewhere) {
		g.t.Errorf("%s: %d commands ran; of the %d commands that other tests run, the page has %d", page, ran, len(elsewhere), len(left))
	}
}

// TestGettingStartedLab runs the commands in the lab section of the guide: the demo, once to its end and once with
// KEEP=1 until Ctrl-C.
func TestGettingStartedLab(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the demo takes a minute")
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	shell := newGuideShell(t, gettingStarted, checkoutLike(t), readerEnv(t, nil))
	demos := 0
	for _, step := range stepsOf(t, gettingStarted) {
		switch {
		case step.section != labSection:
			continue
		case strings.Contains(step.text, "KEEP=1"):
			shell.interrupt(step, 5*time.Minute, func(said string) bool { return strings.Contains(said, "KUBECONFIG") })
		case strings.HasPrefix(step.text, "make demo"):
			if said := shell.run(step, 20*time.Minute); !strings.Contains(said, "running") {
				t.Errorf("%s shows no running pod:\n%s", step.text, said)
			}
		default:
			if said := shell.run(step, 5*time.Minute); said == "" {
				t.Errorf("%s:%d: %s printed nothing", gettingStarted, step.line, step.text)
			}
			continue
		}
		demos++
	}
	if demos != 2 {
		t.Errorf("%s has %d demo commands in section %q, want 2", gettingStarted, demos, labSection)
	}
}
