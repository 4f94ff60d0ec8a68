package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/lab/faults"
)

// TestBadInput checks that an invalid command line prints one line, has exit code 2, and starts nothing. Each key is a
// command line, each value is a part of the printed line.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"down":                            `unknown command "down" for "lab"`,
		"guard":                           `unknown command "guard" for "lab"`,
		"up now":                          `unknown command "now" for "lab up"`,
		"up --colour red":                 "unknown flag: --colour",
		"fault":                           "accepts 1 arg(s), received 0",
		"fault no-such":                   `there is no fault "no-such"; list the faults with ` + "`lab fault list`",
		"fault list all":                  `unknown command "all" for "lab fault list"`,
		"up --cluster my/lab":             `--cluster "my/lab" is not a valid EKS cluster name: use `,
		"up --cluster=":                   `--cluster "" is not a valid EKS cluster name`,
		"up --cluster -x":                 `--cluster "-x" is not a valid EKS cluster name`,
		"up --authentication-mode aws":    `--authentication-mode "aws" is unknown: use CONFIG_MAP, API or API_AND_CONFIG_MAP`,
		"up --region mars-north-1":        `--region: region "mars-north-1" is not in the embedded table`,
		"up --joiner /nowhere/joiner":     "--joiner: exec: \"/nowhere/joiner\": stat /nowhere/joiner: no such file or directory; build one with: go build",
		"demo --joiner /nowhere/joiner":   "--joiner: exec: \"/nowhere/joiner\": stat /nowhere/joiner: no such file or directory; build one with: go build",
		"demo --joiner /etc/passwd":       "--joiner: exec: \"/etc/passwd\": permission denied",
		"sizing --joiner /nowhere/joiner": "--joiner: exec: ",
		"diagnosis-report --joiner /nowhere/joiner": "--joiner: exec: ",
		"demo now": `unknown command "now" for "lab demo"`,
		"up --cluster " + longName + " --lifelike": "is not a valid EKS cluster name",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &out, &errs)
		if text := errs.String(); code != exitBadInput || out.Len() > 0 || strings.Count(text, "\n") != 1 ||
			!strings.HasPrefix(text, "lab: ") || !strings.Contains(text, want) {
			t.Errorf("lab %s: exit %d, stdout %q, stderr %q; want exit %d and one line with %s",
				args, code, out.String(), text, exitBadInput, want)
		}
	}
}

var longName = strings.Repeat("x", 101)

// TestFaultList checks that each fault has one line with its name and its check.
func TestFaultList(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"fault", "list"}, &out, &errs); code != exitOK || errs.Len() > 0 {
		t.Fatalf("lab fault list: exit %d, %q; want 0 and no error", code, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 60 {
		t.Errorf("%d faults, want at least 60", len(lines))
	}
	for _, line := range lines {
		// IDs of checks have a hyphen (AUTH-1), and a description has at least two words.
		if words := strings.Fields(line); len(words) < 4 || !strings.Contains(words[1], "-") {
			t.Errorf("the line %q has no name, check and description", line)
		}
	}
}

// TestQuoted checks that a shell restores the original value from the quoted text.
func TestQuoted(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"KUBECONFIG=/tmp/lab-1/kubeconfig": "KUBECONFIG=/tmp/lab-1/kubeconfig",
		"URL=http://127.0.0.1:1":           "URL=http://127.0.0.1:1",
		"A=/tmp/my lab/it's $HOME":         `A='/tmp/my lab/it'\''s $HOME'`,
	} {
		got := quoted(variable)
		if got != want {
			t.Errorf("quoted(%q) = %s, want %s", variable, got, want)
		}
		name, value, _ := strings.Cut(variable, "=")
		parsed, err := exec.Command("sh", "-c", "export "+got+`; printf %s "$`+name+`"`).Output()
		if err != nil || string(parsed) != value {
			t.Errorf("a shell reads the value as %q (%v), want %q", parsed, err, value)
		}
	}
}

// TestChoose checks that `lab fault` uses the lab in KUBECONFIG, or the only lab, and fails otherwise.
func TestChoose(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var homes []string
	for _, name := range []string{"lab-new", "lab-old"} {
		home := filepath.Join(base, name)
		homes = append(homes, home)
		if err := errors.Join(os.Mkdir(home, 0o700), os.WriteFile(kubeconfigOf(home), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(kubeconfigOf(homes[1]), link); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		homes       []string
		kubeconfigs string // value of KUBECONFIG, which names labs
		want        string // folder, or start of the error
	}{
		"no lab":              {nil, "", "no lab is running"},
		"one lab":             {homes[:1], "", homes[0]},
		"one lab, not named":  {homes[:1], "/etc/hosts", homes[0]},
		"one of two named":    {homes, kubeconfigOf(homes[1]), homes[1]},
		"two files named":     {homes, "/etc/hosts" + string(filepath.ListSeparator) + kubeconfigOf(homes[1]), homes[1]},
		"link named":          {homes, link, homes[1]},
		"two labs, no file":   {homes, "", "2 labs are running, and KUBECONFIG names none of them. Choose one, the newest is first:\n  export KUBECONFIG=" + kubeconfigOf(homes[0]) + "\n  export KUBECONFIG="},
		"two labs, not named": {homes, "/etc/hosts", "2 labs are running"},
	} {
		got, err := choose(tt.homes, tt.kubeconfigs)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tt.want) || err == nil && got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestConclude checks that the error has "target" in the singular for one missed target, and in the plural for several.
func TestConclude(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 target was missed", 2: "2 targets were missed"} {
		var out bytes.Buffer
		if err := conclude(&out, faults.Report{Healthy: faults.Healthy{Alarms: []string{"a", "b"}[:n]}}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestControllerLine checks that the command quotes the path of the program.
func TestControllerLine(t *testing.T) {
	t.Parallel()
	const want = "CLUSTER_NAME=lab BIND_ADDRESS=127.0.0.1 '/tmp/my joiner' controller"
	if got := controllerLine("lab", "/tmp/my joiner"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFirstManifest checks that all placeholders are replaced.
func TestFirstManifest(t *testing.T) {
	t.Parallel()
	text := fillFirstManifest("123")
	for _, want := range []string{"role: KarpenterNodeRole\n", `karpenter.sh/discovery: "123"` + "\n", "kind: NodePool\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifest lacks %q", want)
		}
	}
	if strings.Contains(text, "$") {
		t.Errorf("a placeholder is not replaced:\n%s", text)
	}
}
