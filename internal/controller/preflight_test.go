package controller

import (
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// lostTaint is the script of user report case-4 (see lab/startuptaint_test.go). Its startup taint does not reach the
// kubelet, because bootstrap.sh does not know the form --option=value.
const lostTaint = "#!/bin/bash\n/etc/eks/bootstrap.sh " + testCluster +
	" --kubelet-extra-args='--register-with-taints=\"karpenter.sh/unregistered:NoExecute\"'\n"

// TestPreflight: problems of user data are reported before a launch. If nodes would certainly not join, nothing is
// launched, unless the annotation for preflight checks is warn or off.
func TestPreflight(t *testing.T) {
	t.Parallel()
	script := func(family, body string) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) {
			c.Spec.AMIFamily, c.Spec.UserData = &family, &body
			c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "amazon-eks-node-1.31-v*"}}
		}
	}
	bottlerocket := func(body string) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) {
			c.Spec.AMIFamily, c.Spec.UserData = nil, &body
			c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}
		}
	}
	mode := func(value string, change func(*awsv1.EC2NodeClass)) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) {
			change(c)
			c.Annotations = map[string]string{awsv1.AnnotationPreflight: value}
		}
	}
	otherFamily := func(c *awsv1.EC2NodeClass) {
		c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "amazon-eks-node-1.31-v*"}}
	}
	misspelt := bottlerocket("[settings.kubernetes]\nmax-podz = 3\n")
	const unknownSetting = "spec.userData, line 2, column 1: settings.kubernetes.max-podz is unknown to Bottlerocket, " +
		"which then applies none of the settings and does not join: write: max-pods"
	const twoWords = "write them as two words: --kubelet-extra-args '--register-with-taints=karpenter.sh/unregistered:NoExecute'"
	for name, c := range map[string]struct {
		change           func(*awsv1.EC2NodeClass)
		passed, wantPart string                 // of PreflightPassed: its status and reason, and a part of its message
		ready            metav1.ConditionStatus // of the class
		wantValidation   string                 // a part of the message of ValidationSucceeded
	}{
		"all well": {change: func(*awsv1.EC2NodeClass) {}, passed: "True PreflightPassed", ready: metav1.ConditionTrue},
		"a lost startup taint": {change: script("Custom", lostTaint), passed: "False ArgumentsLost", wantPart: twoWords,
			ready: metav1.ConditionTrue},
		"a lost taint, off": {change: mode("off", script("Custom", lostTaint)), ready: metav1.ConditionTrue},
		"another cluster": {change: script("Custom", strings.ReplaceAll(lostTaint, testCluster, "staging")),
			passed: "False OtherCluster", wantPart: "the cluster staging", ready: metav1.ConditionFalse, wantValidation: "the cluster staging"},
		"an image of another family": {change: otherFamily, passed: "False ImageMismatch",
			wantPart: "spec.amiFamily: it is AL2023", ready: metav1.ConditionFalse, wantValidation: "set spec.amiFamily to AL2"},
		"an image of another family, warned": {change: mode("warn", otherFamily), passed: "False ImageMismatch",
			wantPart: "spec.amiFamily: it is AL2023", ready: metav1.ConditionTrue},
		"a misspelt setting": {change: misspelt, passed: "False SettingUnknown", wantPart: unknownSetting,
			ready: metav1.ConditionFalse, wantValidation: unknownSetting},
		"a misspelt setting, enforced": {change: mode("enforce", misspelt), passed: "False SettingUnknown", wantPart: unknownSetting,
			ready: metav1.ConditionFalse, wantValidation: unknownSetting},
		"a misspelt setting, warned": {change: mode("warn", misspelt), passed: "False SettingUnknown", wantPart: unknownSetting,
			ready: metav1.ConditionTrue},
		"a misspelt setting, off": {change: mode("off", misspelt), ready: metav1.ConditionTrue},
		"an unknown mode": {change: mode("no", func(*awsv1.EC2NodeClass) {}), passed: "False PreflightInvalid",
			wantPart: "enforce, warn or off", ready: metav1.ConditionTrue},
		"user data that cannot be rendered": {
			change: mode("off", bottlerocket("#!/bin/bash\necho hello\n")), passed: "False UserDataInvalid",
			wantPart: "Bottlerocket runs no scripts", ready: metav1.ConditionFalse, wantValidation: "it is a shell script",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			class := r.class(t)
			c.change(class)
			if err := r.api.Update(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			r.reconcileClassAndPool(t)
			conditions := r.class(t).StatusConditions()
			got, exists := conditions.Find(awsv1.ConditionPreflightPassed)
			if text := strings.TrimSpace(string(got.Status) + " " + got.Reason); text != c.passed || exists != (c.passed != "") ||
				!strings.Contains(got.Message, c.wantPart) {
				t.Errorf("PreflightPassed is %s %q, want %s with %q", text, got.Message, c.passed, c.wantPart)
			}
			if ready, _ := conditions.Find(karpv1.ConditionReady); ready.Status != c.ready {
				t.Errorf("Ready is %s %q, want %s", ready.Status, ready.Message, c.ready)
			}
			if valid, _ := conditions.Find(awsv1.ConditionValidationSucceeded); !strings.Contains(valid.Message, c.wantValidation) {
				t.Errorf("the message of ValidationSucceeded is %q, want %q in it", valid.Message, c.wantValidation)
			}
			event, wantEvent := r.events.find("PreflightFailed"), strings.HasPrefix(c.passed, "False") && c.ready == metav1.ConditionTrue
			if (event != "") != wantEvent {
				t.Errorf("event PreflightFailed: %q, want one: %t", event, wantEvent)
			}
		})
	}
}

// TestPreflightClears: the condition becomes true once the user data is fixed. Nothing else has to change.
func TestPreflightClears(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	passes := func(body string) bool {
		class := r.class(t)
		family := "Custom"
		class.Spec.AMIFamily, class.Spec.UserData = &family, &body
		class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "amazon-eks-node-1.31-v*"}}
		if err := r.api.Update(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		r.reconcileClassAndPool(t)
		return r.class(t).StatusConditions().IsTrue(awsv1.ConditionPreflightPassed)
	}
	if passes(lostTaint) {
		t.Error("the lost taint is not reported")
	}
	if !passes(strings.Replace(lostTaint, "args='", "args '", 1)) {
		t.Error("the condition stays False although the user data is fixed")
	}
}

func TestPreflightKeepsSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-S3cr3t"
	for name, c := range map[string]struct{ family, body string }{
		"a script": {"Custom", "#!/bin/bash\nexport TOKEN=SECRET\n/etc/eks/bootstrap.sh prod --SECRET" +
			" --kubelet-extra-args='--bootstrap-token=SECRET --SECRET'\n"},
		"an open quote":    {"Custom", "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args 'SECRET\n"},
		"for Bottlerocket": {"Bottlerocket", "[settings.kubernetes]\nbootstrap-token = SECRET\n"},
		"a key of TOML":    {"Bottlerocket", "[settings.kubernetes]\n\"SECRET\" = \"SECRET\"\n"},
		"no TOML":          {"Bottlerocket", "SECRET SECRET\n"},
		"half a key":       {"Bottlerocket", "[settings.kubernetes]\nSECRET\n"},
		"a NodeConfig":     {"AL2023", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet: SECRET\n  SECRET: SECRET\n"},
		"no NodeConfig":    {"AL2023", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: [SECRET\n"},
		"no MIME message":  {"AL2023", "MIME-Version: 1.0\nX-Token SECRET\n\nSECRET\n"},
		"no boundary":      {"AL2023", "Content-Type: SECRET\n\nSECRET\n"},
		"two blocks":       {"Windows2022", "<powershell>SECRET</powershell><powershell>SECRET</powershell>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			class := r.class(t)
			body := strings.ReplaceAll(c.body, "SECRET", secret)
			class.Spec.AMIFamily, class.Spec.UserData = &c.family, &body
			class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "*"}}
			if err := r.api.Update(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			r.reconcileClassAndPool(t)
			for _, condition := range r.class(t).Status.Conditions {
				if strings.Contains(condition.Message, secret) {
					t.Errorf("condition %s has the secret: %s", condition.Type, condition.Message)
				}
			}
			if event := r.events.find(secret); event != "" {
				t.Errorf("an event has the secret: %s", event)
			}
			if strings.Contains(r.log.String(), secret) {
				t.Errorf("the log has the secret: %s", r.log)
			}
		})
	}
}

func TestPreflightTextIsPrintable(t *testing.T) {
	t.Parallel()
	hostile := "a\x1b[2Jb\u009bc\u202ed"
	if got := offerings.ProblemsText([]userdata.Problem{{Cause: hostile}}); strings.ContainsFunc(got,
		func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("the text of a problem has control characters: %q", got)
	}
	conditions := (&awsv1.EC2NodeClass{}).StatusConditions()
	offerings.Preflight{Mode: awsv1.PreflightWarn,
		Broken: offerings.Problem{Reason: offerings.ReasonUserDataInvalid, Message: hostile}}.Write(conditions,
		time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	if c, ok := conditions.Find(awsv1.ConditionPreflightPassed); !ok ||
		strings.ContainsFunc(c.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("the condition has control characters: %q", c.Message)
	}
}
