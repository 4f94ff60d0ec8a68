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

// labSection is the heading of the guide's section about the lab.
const labSection = "In the lab"

const (
	guideNodeRole       = "KarpenterNodeRole-prod"
	guideControllerRole = "JoinerController-prod"
)

// batchIdle is the controller's batch idle duration in this test, longer than the default of one second. checkFirstPlan
// needs a single plan with all pods, and on a busy host kube-controller-manager can need more than a second between two
// Deployments.
const batchIdle = 4 * time.Second

// TestGettingStarted runs the commands of the guide like a user with a cluster. It runs each command unchanged in one
// shell, with the AWS command line, kubectl, Helm and joiner, and compares the results with the guide.
//
// In place of the chart's pods, it runs controllers with the role that the guide's commands create. Finally the
// example's pods run, except the pod that fits no instance. Then the test runs the commands of the README.
func TestGettingStarted(t *testing.T) {
	g := newGuideWalk(t)
	g.createPrerequisites()
	g.steps = slices.DeleteFunc(stepsOf(t, gettingStarted), func(s guideStep) bool { return s.section == labSection })
	g.checkAfter("helm install joiner", g.startPods)
	g.checkAfter("kubectl --namespace lab describe pod", func(output string) {
		if !strings.Contains(output, "FailedScheduling") || !strings.Contains(output, "nvidia.com/gpu") {
			t.Errorf("want an event with the reason why the pod is not scheduled; got:\n%s", output)
		}
	})
	g.checkAfter("kubectl --namespace kube-system logs", g.mustContain("prod"))
	g.checkAfter("aws eks describe-addon", g.mustContain(`"status": "ACTIVE"`))
	g.checkAfter("aws eks list-access-entries", g.mustContain(guideNodeRole))
	g.checkAfter("joiner version", g.mustContain("joiner"))
	g.checkAfter("joiner plan", g.notePlan)
	g.checkAfter("kubectl joiner plan", g.mustContain("$"))
	g.interruptWhen("kubectl get nodeclaims --watch", g.exampleRuns)
	g.walk()
	g.checkFirstPlan()
	g.runReadme()
	checkNoDenials(t, g.l, metav1.NamespaceSystem, "joiner")
	if used := g.l.Emulator.Permissions(guideControllerRole); used["ec2:CreateFleet"] == 0 {
		t.Errorf("the controller did not call ec2:CreateFleet as %s, want a call; it called %v", guideControllerRole, used)
	}
}

type guideWalk struct {
	t       *testing.T
	l       *lab.Lab
	env     []string // environment of the shell
	shell   *guideShell
	steps   []guideStep
	checks  map[string]func(output string)      // by prefix of a command: called with the command's output
	enough  map[string]func(output string) bool // by prefix of an endless command: reports whether to interrupt the command
	planned int                                 // number of nodes that the plan of the example launches
}

var plannedNodesPattern = regexp.MustCompile(`: (\d+) nodes? to launch for \$`)

func (g *guideWalk) notePlan(output string) {
	g.t.Helper()
	found := plannedNodesPattern.FindStringSubmatch(output)
	if found == nil {
		g.t.Errorf("want a plan with the number of nodes to launch; got:\n%s", output)
		return
	}
	g.planned, _ = strconv.Atoi(found[1])
}

// checkFirstPlan checks that the controller's first plan created as many NodeClaims for the example as `joiner plan`
// has nodes. The two numbers are equal in a cluster without other NodePools.
//
// Later plans can add NodeClaims, because kube-scheduler can bind a pod to another node than planned. The controller
// creates the NodeClaims of later plans at least batchIdle after the first NodeClaims.
func (g *guideWalk) checkFirstPlan() {
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
		if c.CreationTimestamp.Sub(start) < batchIdle/2 {
			first++
		}
	}
	if first != g.planned {
		g.t.Errorf("the first plan created %d NodeClaims for the example, want %d as in joiner plan", first, g.planned)
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
		t.Skip(helmVariable + " is not set to a Helm binary: make bin/helm builds one")
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
	l := parallelLab(t, lab.Options{Bare: true, Cluster: "prod", Region: "eu-west-1"})
	t.Cleanup(func() { recordRequests(l, metav1.NamespaceSystem, "joiner") })
	env := slices.DeleteFunc(l.Environment(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_REGION=") || strings.HasPrefix(v, "AWS_DEFAULT_REGION=")
	}) // the commands of the guide set the region
	env = append(env, "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_PAGER=")
	env = readerEnv(t, tools, env...)
	return &guideWalk{
		t: t, l: l, env: env, shell: newGuideShell(t, gettingStarted, linkCheckout(t), env),
		checks: map[string]func(string){}, enough: map[string]func(string) bool{},
	}
}

func (g *guideWalk) checkAfter(prefix string, check func(output string)) { g.checks[prefix] = check }

// interruptWhen makes walk interrupt the endless command with the given prefix as soon as enough returns true.
func (g *guideWalk) interruptWhen(prefix string, enough func(output string) bool) {
	g.enough[prefix] = enough
}

func (g *guideWalk) mustContain(text string) func(string) {
	return func(output string) {
		g.t.Helper()
		if !strings.Contains(output, text) {
			g.t.Errorf("want output with %q; got:\n%s", text, output)
		}
	}
}

// walk runs all steps. It reports an error for each prefix in checks and enough that no command of the guide has.
func (g *guideWalk) walk() {
	g.t.Helper()
	met := map[string]bool{} // prefixes that a command has
	for _, step := range g.steps {
		var output string
		if enough, prefix := findByPrefix(step, g.enough); enough != nil {
			met[prefix] = true
			output = g.shell.interrupt(step, 3*time.Minute, enough)
		} else {
			output = g.shell.run(step, 15*time.Minute) // the first command can include a build
		}
		if check, prefix := findByPrefix(step, g.checks); check != nil {
			met[prefix] = true
			check(output)
		}
	}
	for prefix := range g.checks {
		if !met[prefix] {
			g.t.Errorf("the guide has no command %q, want one", prefix)
		}
	}
	for prefix := range g.enough {
		if !met[prefix] {
			g.t.Errorf("the guide has no command %q, want one", prefix)
		}
	}
}

// findByPrefix returns the function whose key is a prefix of the step's command, and the key.
func findByPrefix[F any](step guideStep, all map[string]F) (found F, prefix string) {
	for prefix, f := range all {
		if strings.HasPrefix(step.text, prefix) {
			return f, prefix
		}
	}
	return found, ""
}

// createPrerequisites creates the prerequisites of the guide: the EKS Pod Identity agent, nodes for the controller, and
// the node role with its access entry. Subnets and security groups already have their tags.
func (g *guideWalk) createPrerequisites() {
	g.t.Helper()
	eksClient := eks.NewFromConfig(g.l.AWS())
	agent := &eks.CreateAddonInput{ClusterName: &g.l.Cluster, AddonName: aws.String("eks-pod-identity-agent")}
	if _, err := eksClient.CreateAddon(g.t.Context(), agent); err != nil {
		g.t.Fatal(err)
	}
	if err := g.l.Roles.AddNodeRole(guideNodeRole); err != nil {
		g.t.Fatal(err)
	}
	entry := &eks.CreateAccessEntryInput{ClusterName: &g.l.Cluster, PrincipalArn: aws.String(g.l.Roles.ARN(guideNodeRole)),
		Type: aws.String(ekscluster.EntryEC2Linux)}
	if _, err := eksClient.CreateAccessEntry(g.t.Context(), entry); err != nil {
		g.t.Fatal(err)
	}
	(&installation{t: g.t, l: g.l}).launchSystemNodes()
}

// startPods waits until both pods of the chart exist. For each pod it runs a controller, with the role that Pod
// Identity associates with the pods' service account.
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
		g.t.Fatalf("the controller's service account has the role %q, want the role of the guide", role)
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
		settings := append((&lab.PodIdentity{}).Settings(agent.URL), "BATCH_IDLE_DURATION="+batchIdle.String())
		c := runAsPod(g.t, g.l, path, metav1.NamespaceSystem, settings...)
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

// exampleRuns reports whether the 15 schedulable pods of the example run, and output shows a ready NodeClaim of the
// example.
func (g *guideWalk) exampleRuns(output string) bool {
	pods, err := g.l.Kube.CoreV1().Pods("shop").List(g.t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 15 || !strings.Contains(output, "general-") || !strings.Contains(output, "True") {
		return false
	}
	return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
}

// testedElsewhere maps commands of the README to the tests that run them instead of runReadme.
var testedElsewhere = map[string]string{
	"make demo": "TestGettingStartedLab",
}

// runReadme runs the commands of the README in the checkout itself, where go run uses the build cache. These commands
// do not write files.
func (g *guideWalk) runReadme() {
	g.t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		g.t.Fatal(err)
	}
	page := filepath.Join(root, "README.md")
	shell := newGuideShell(g.t, page, root, append(g.env, "CLUSTER_NAME="+g.l.Cluster, "AWS_REGION="+g.l.Region))
	ran, skipped := 0, map[string]bool{}
	for _, step := range stepsOf(g.t, page) {
		if testedElsewhere[step.text] != "" {
			skipped[step.text] = true
			continue
		}
		if output := shell.run(step, 15*time.Minute); output == "" {
			g.t.Errorf("%s:%d: %s printed nothing, want output", page, step.line, step.text)
		}
		ran++
	}
	if ran < 1 || len(skipped) != len(testedElsewhere) {
		g.t.Errorf("%s: %d commands ran, want at least 1; the page has %d of the %d commands in testedElsewhere, want all",
			page, ran, len(skipped), len(testedElsewhere))
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
	shell := newGuideShell(t, gettingStarted, linkCheckout(t), readerEnv(t, nil))
	demos := 0
	for _, step := range stepsOf(t, gettingStarted) {
		switch {
		case step.section != labSection:
			continue
		case strings.Contains(step.text, "KEEP=1"):
			shell.interrupt(step, 5*time.Minute, func(output string) bool { return strings.Contains(output, "KUBECONFIG") })
		case strings.HasPrefix(step.text, "make demo"):
			if output := shell.run(step, 20*time.Minute); !strings.Contains(output, "running") {
				t.Errorf("%s must show a running pod; got:\n%s", step.text, output)
			}
		default:
			if output := shell.run(step, 5*time.Minute); output == "" {
				t.Errorf("%s:%d: %s printed nothing, want output", gettingStarted, step.line, step.text)
			}
			continue
		}
		demos++
	}
	if demos != 2 {
		t.Errorf("%s has %d demo commands in section %q, want 2", gettingStarted, demos, labSection)
	}
}
