package cli_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReports runs the cases of testdata/reports: inputs from public reports about node autoscalers on EKS, with the
// correct results. A case is a file of lines:
//
//	# the correct result
//	run ARGUMENTS      runs joiner in the folder of the inputs; the following lines check this run
//	exit CODE          expected exit status; 0 without this line
//	want PATTERN       the output of both streams matches
//	not PATTERN        the output does not match
//	file NAME          an input of a case that another test covers
//	covered FILE TEST  the other test: its file and name
//
// An input that no case names fails the test.
func TestReports(t *testing.T) {
	t.Parallel()
	const folder = "testdata/reports"
	cases, err := filepath.Glob(folder + "/*.case")
	if err != nil || len(cases) < 30 { // a renamed folder has none
		t.Fatalf("there are %d cases (%v), want at least 30", len(cases), err)
	}
	named := map[string]bool{}
	for _, file := range cases {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range lines {
			for _, word := range strings.Fields(line) {
				if strings.HasSuffix(word, ".yaml") {
					named[word] = true
				}
			}
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".case"), func(t *testing.T) {
			t.Parallel()
			runCase(t, folder, lines)
		})
	}
	inputs, err := filepath.Glob(folder + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range inputs {
		if !named[filepath.Base(input)] {
			t.Errorf("no case names the input %s", input)
		}
		delete(named, filepath.Base(input))
	}
	if missing := slices.Sorted(maps.Keys(named)); len(missing) > 0 {
		t.Errorf("cases name the inputs %v, which do not exist", missing)
	}
}

func runCase(t *testing.T, folder string, lines []string) {
	t.Helper()
	var args []string
	var out string
	code, want := 0, 0
	finish := func() {
		if args != nil && code != want {
			t.Errorf("joiner %s ended with %d, want %d:\n%s", strings.Join(args, " "), code, want, out)
		}
		want = 0
	}
	for _, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "#", "file":
		case "run":
			finish()
			args = strings.Fields(rest)
			out, code = runReport(t, folder, args)
		case "exit":
			if _, err := fmt.Sscan(rest, &want); err != nil {
				t.Fatal(err)
			}
		case "want", "not":
			pattern, err := regexp.Compile(rest)
			if err != nil {
				t.Fatal(err)
			}
			if pattern.MatchString(out) != (word == "want") {
				t.Errorf("joiner %s does not fulfill %q; output:\n%s", strings.Join(args, " "), line, out)
			}
		case "covered":
			file, test, _ := strings.Cut(rest, " ")
			if text, err := os.ReadFile(filepath.Join("../..", file)); err != nil || !bytes.Contains(text, []byte("func "+test+"(")) {
				t.Errorf("%s has no test %s: %v", file, test, err)
			}
		default:
			t.Errorf("unknown line %q in a case", line)
		}
	}
	finish()
}

// runReport runs joiner in the folder, and returns its output and exit status.
func runReport(t *testing.T, folder string, args []string) (out string, code int) {
	t.Helper()
	joiner, err := exec.LookPath("joiner") // this test program: see TestMain
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), joiner, args...)
	cmd.Dir = folder
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + home + "/none",
		"AWS_SHARED_CREDENTIALS_FILE=" + home + "/none"}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	_ = cmd.Run() // an error means an exit status, which is returned
	return both.String(), cmd.ProcessState.ExitCode()
}
