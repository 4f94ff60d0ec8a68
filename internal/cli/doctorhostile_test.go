package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/doctor/remedy"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

func readSample(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile("../diagnosis/testdata/security/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestDoctorHostile: texts that tenants write into pods, events and Deployments are reported by doctor -f, but never
// become a command that is printed or executed.
func TestDoctorHostile(t *testing.T) {
	t.Parallel()
	var failed, denial corev1.Event
	readSample(t, "event.yaml", &failed)
	readSample(t, "denial-event.yaml", &denial)
	pods := func(file string) func(*diagnosis.Evidence) {
		var pod corev1.Pod
		readSample(t, file, &pod)
		return func(e *diagnosis.Evidence) { // bundles of older versions lack the owner's API group, too
			owner := pod.OwnerReferences[0]
			e.Pods.Value = []diagnosis.Pod{{Namespace: pod.Namespace, Name: pod.Name, Node: "node-1", Owner: owner.Kind + "/" + owner.Name,
				Selector: pod.Spec.NodeSelector, Messages: []string{failed.Message}}}
		}
	}
	for name, c := range map[string]struct {
		change func(*diagnosis.Evidence)
		check  string // ID of the check that reports the text; empty: none
	}{
		"ownerref-pod.yaml": {pods("ownerref-pod.yaml"), "ARCH-5"},
		"ownerref-fix.json": {pods("ownerref-fix.json"), "ARCH-5"},
		"denial-event.yaml": {func(e *diagnosis.Evidence) {
			e.Events.Value = []diagnosis.Event{{Kind: "NodeClaim", Name: "claim-1", Reason: denial.Reason, Message: denial.Message}}
		}, ""},
		"deploys.yaml": {func(e *diagnosis.Evidence) {
			var deployment appsv1.Deployment
			text, err := os.ReadFile("../diagnosis/testdata/security/deploys.yaml")
			if err != nil {
				t.Error(err)
			}
			parts := strings.Split(string(text), "---\n") // the last one is the Deployment of a tenant
			if err := yaml.Unmarshal([]byte(parts[len(parts)-1]), &deployment); err != nil {
				t.Error(err)
			}
			e.Name = deployment.Spec.Template.Spec.Containers[0].Env[0].Value
			e.Cluster = diagnosis.AbsentItem[diagnosis.Cluster]("eks:DescribeCluster", e.At, diagnosis.Missing, "")
		}, "ID-1"},
		"terminal": {func(e *diagnosis.Evidence) {
			e.Classes.Value[0].Name = "web\x1b[2J\u202e"
			e.Classes.Value[0].NoMetadata = true
		}, "IMDS-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := tenantEvidence()
			c.change(&e)
			text, err := diagnosis.Write(e)
			if err != nil {
				t.Fatal(err)
			}
			bundle := filepath.Join(t.TempDir(), "case.json")
			if err := os.WriteFile(bundle, text, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, format := range []string{"table", "json", "yaml"} {
				checkOutput(t, bundle, format, c.check)
			}
			for _, f := range checks.Diagnose(e) {
				changes, err := remedy.Plan(t.Context(), f.Fix, remedy.Clients{Kube: readOnlyCluster{t}, NoAWS: "no AWS"})
				var byHand *remedy.ManualStepError
				if f.Check == c.check && f.Verdict != diagnosis.Fine && !errors.As(err, &byHand) {
					t.Errorf("--fix %s plans the changes %+v (%v), want a ManualStepError", f.Check, changes, err)
				}
			}
		})
	}
}

// tenantEvidence returns evidence of a cluster in which a tenant has a pod on a node.
func tenantEvidence() diagnosis.Evidence {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return diagnosis.Evidence{Format: diagnosis.Format, At: at, Name: "prod", Region: "us-east-1",
		Identity:  diagnosis.KnownItem("namespace kube-system", at, diagnosis.ClusterIdentity{UID: "uid-1", DNSReady: true}),
		Pods:      diagnosis.KnownItem("pods", at, []diagnosis.Pod{}),
		Nodes:     diagnosis.KnownItem("nodes", at, []diagnosis.Node{{Name: "node-1", Ready: true, Arch: "arm64"}}),
		Pools:     diagnosis.KnownItem("nodepools", at, []diagnosis.Pool{}),
		Claims:    diagnosis.KnownItem("nodeclaims", at, []diagnosis.Claim{{Name: "claim-1"}}),
		Classes:   diagnosis.KnownItem("ec2nodeclasses", at, []diagnosis.Class{{Name: "web", HopLimit: 2}}),
		Instances: diagnosis.KnownItem("instances", at, []diagnosis.Instance{}),
		Events:    diagnosis.KnownItem("events", at, []diagnosis.Event{})}
}

// checkOutput runs doctor on a bundle and checks its output: it reports the check (empty: no problem), has no control
// characters, and has no text of a tenant in a command.
func checkOutput(t *testing.T, bundle, format, check string) {
	t.Helper()
	var out bytes.Buffer
	cmd := newDoctor()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"-f", bundle, "-o", format})
	var found Findings
	if err := cmd.ExecuteContext(t.Context()); errors.As(err, &found) != (check != "") {
		t.Errorf("%s: doctor returns %v, want Findings: %v", format, err, check != "")
	}
	if check == "" && strings.Contains(out.String(), "LAUNCH-4 ") {
		t.Errorf("%s: an event of a tenant is reported as an error of AWS:\n%s", format, out.String())
	}
	if !strings.Contains(out.String(), check) {
		t.Errorf("%s: %s is not reported:\n%s", format, check, out.String())
	}
	if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("%s: the output has control characters: %q", format, out.String())
	}
	var report struct {
		Findings []struct{ Check, Fix, Look string }
	}
	if format != "json" {
		return
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Error(err)
	}
	for _, f := range report.Findings {
		for line := range strings.Lines(f.Fix + "\n" + f.Look) {
			command, _, _ := strings.Cut(line, " # ")
			for _, text := range []string{"touch", "clusterrolebinding", "attacker"} { // words of the tenants' texts
				if strings.Contains(command, text) && !strings.HasPrefix(line, "# ") {
					t.Errorf("%s prints a command with a tenant's text: %s", f.Check, line)
				}
			}
		}
	}
}

// readOnlyCluster is a cluster that fails the test on any change.
type readOnlyCluster struct{ t *testing.T }

func (c readOnlyCluster) DryRun(_ context.Context, p kubeclient.Patch) (kubeclient.PatchDryRun, error) {
	return kubeclient.PatchDryRun{}, errors.New("not tried: " + p.Kind)
}

func (c readOnlyCluster) Apply(_ context.Context, p kubeclient.Patch, _ kubeclient.PatchDryRun) error {
	c.t.Errorf("%s %s is patched", p.Kind, p.Name)
	return nil
}

func (c readOnlyCluster) DryRunDelete(context.Context, string, string) (kubeclient.Deletion, bool, error) {
	return kubeclient.Deletion{}, false, nil
}

func (c readOnlyCluster) Delete(_ context.Context, d kubeclient.Deletion) error {
	c.t.Errorf("%s %s is deleted", d.Kind, d.Name)
	return nil
}
