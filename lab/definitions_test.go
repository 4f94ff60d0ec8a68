package lab_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/api/crds"
	"github.com/joiner-sh/joiner/lab"
)

// TestDefinitionsAreInstalled checks that the controller installs missing CRDs, takes over CRDs of an older Karpenter
// chart, and leaves CRDs with a higher revision unchanged. It also runs joiner crds check, apply and delete.
func TestDefinitionsAreInstalled(t *testing.T) {
	l := parallelLab(t, lab.Options{Bare: true})
	d := definitionsOf(t, l)
	first := restartController(t, l, "DISABLE_LEADER_ELECTION=false")
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh",
		"ec2nodeclasses.karpenter.k8s.aws"} {
		if got := d.get(name).Annotations[crds.KeyRevision]; got != strconv.Itoa(crds.Revision()) {
			t.Errorf("definition %s has revision %q, want %d", name, got, crds.Revision())
		}
	}
	d.runJoiner(0, "nodepools.karpenter.sh: has revision", "crds", "check")
	first.Kill()

	// A CRD of an older Karpenter chart: without Joiner's annotation, and without the last printer column.
	const pools = "nodepools.karpenter.sh"
	columns := len(d.get(pools).Spec.Versions[0].AdditionalPrinterColumns)
	d.change(pools, func(c *apiextensionsv1.CustomResourceDefinition) {
		delete(c.Annotations, crds.KeyRevision)
		c.Spec.Versions[0].AdditionalPrinterColumns = c.Spec.Versions[0].AdditionalPrinterColumns[:columns-1]
	})
	d.runJoiner(1, "was not installed by joiner; it would be taken over", "crds", "check")
	second := restartController(t, l, "DISABLE_LEADER_ELECTION=false")
	d.until("the definition to be taken over", pools, func(c *apiextensionsv1.CustomResourceDefinition) bool {
		return len(c.Spec.Versions[0].AdditionalPrinterColumns) == columns && c.Annotations[crds.KeyRevision] != ""
	})
	second.Kill()

	// A CRD of a newer Joiner, with an additional field.
	newer := crds.Revision() + 5
	d.change(pools, func(c *apiextensionsv1.CustomResourceDefinition) {
		c.Annotations[crds.KeyRevision] = strconv.Itoa(newer)
		specOf(c).Properties["flux"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	before := d.get(pools).ResourceVersion
	third := restartController(t, l) // without leader election, unlike the others
	d.awaitLog("nodepools.karpenter.sh", "is newer than this program's")
	d.runJoiner(0, "left as it is: its revision "+strconv.Itoa(newer)+" is newer", "crds", "apply")
	if got := d.get(pools).ResourceVersion; got != before {
		t.Errorf("the newer CRD must not change; its resource version was %s and is %s", before, got)
	}
	third.Kill()

	// A newer CRD that another tool manages is replaced only with --force.
	d.change(pools, func(c *apiextensionsv1.CustomResourceDefinition) { delete(c.Annotations, crds.KeyRevision) })
	d.runJoiner(1, "it has fields that this program does not know: spec.flux", "crds", "apply")
	d.runJoiner(0, "which removed these fields: spec.flux", "crds", "apply", "--force")
	if _, ok := specOf(d.get(pools)).Properties["flux"]; ok {
		t.Error("the CRD has spec.flux after joiner crds apply --force, want the field removed")
	}

	apply(t, l, class(l, "kept", "amiSelectorTerms: [{alias: al2023@latest}]"))
	d.runJoiner(2, "there still are 1 objects (ec2nodeclass kept)", "crds", "delete")
	d.deleteClass("kept")
	d.runJoiner(0, "nodeclaims.karpenter.sh: deleted", "crds", "delete")
	d.runJoiner(1, "is missing; it would be created", "crds", "check")
	checkNoDenials(t, l, "kube-system", lab.ControllerAccount)
}

// definitions reads and changes the CRDs in the cluster of a lab.
type definitions struct {
	t      *testing.T
	l      *lab.Lab
	client *apiextensions.Clientset
	path   string // path of the joiner program
}

func definitionsOf(t *testing.T, l *lab.Lab) definitions {
	t.Helper()
	client, err := apiextensions.NewForConfig(l.Config)
	if err != nil {
		t.Fatal(err)
	}
	path := program(t)
	return definitions{t, l, client, path}
}

func (d definitions) get(name string) *apiextensionsv1.CustomResourceDefinition {
	d.t.Helper()
	found, err := d.client.ApiextensionsV1().CustomResourceDefinitions().Get(d.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return found
}

// change updates a CRD with the field manager helm.
func (d definitions) change(name string, edit func(*apiextensionsv1.CustomResourceDefinition)) {
	d.t.Helper()
	found := d.get(name)
	edit(found)
	if _, err := d.client.ApiextensionsV1().CustomResourceDefinitions().Update(d.t.Context(), found,
		metav1.UpdateOptions{FieldManager: "helm"}); err != nil {
		d.t.Fatal(err)
	}
}

func (d definitions) until(what, name string, ok func(*apiextensionsv1.CustomResourceDefinition) bool) {
	d.t.Helper()
	eventually(d.t, d.l, 30*time.Second, what, func() bool { return ok(d.get(name)) })
}

// awaitLog waits until one line of the controller's log contains all texts.
func (d definitions) awaitLog(texts ...string) {
	d.t.Helper()
	eventually(d.t, d.l, 30*time.Second, "a line of the log with "+strings.Join(texts, " and "), func() bool {
		log, err := os.ReadFile(d.l.Logs("joiner"))
		if err != nil {
			return false
		}
		for line := range strings.Lines(string(log)) {
			all := true
			for _, text := range texts {
				all = all && strings.Contains(line, text)
			}
			if all {
				return true
			}
		}
		return false
	})
}

// runJoiner runs joiner as the administrator, and checks its exit code and a text in its output.
func (d definitions) runJoiner(wantCode int, wantText string, args ...string) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), d.path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.l.Kubeconfig)
	out, err := cmd.CombinedOutput()
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		d.t.Fatal(err)
	}
	if got != wantCode || !strings.Contains(string(out), wantText) {
		d.t.Errorf("joiner %s: exit %d, want %d and %q\n%s", strings.Join(args, " "), got, wantCode, wantText, out)
	}
}

func specOf(c *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.JSONSchemaProps {
	return c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}
