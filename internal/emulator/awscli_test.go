package emulator_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/shell"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

// TestAWSCommandLine runs the scripts of testdata/awscli with the AWS command line, a client that is independent of
// this repository. The test uses the first program that runs: $JOINER_AWS, /usr/bin/aws, or aws in PATH. Without such a
// program, it is skipped.
//
// The lines of a script are:
//   - "# comment"
//   - "$ command", and below it the expected output
//   - "NAME = command": the output is stored as $NAME, for later lines ($$ is a dollar)
//   - "! command": the command must fail, and its error message must contain the text below this line
//   - "> 3s": the server's clock is advanced by three seconds
func TestAWSCommandLine(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the AWS command line takes a second for each of its commands")
	}
	tool := awsTool(t)
	scripts, err := filepath.Glob("testdata/awscli/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("testdata/awscli has no scripts: %v", err)
	}
	commands := 0
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		steps := parseScript(string(text))
		commands += len(steps)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			b.server.Do(func(_ *world.World, now time.Time) {
				if _, err := b.estate.Region.EKS.CreateCluster(now, ekscluster.Cluster{Name: "demo", AuthMode: ekscluster.AuthBoth}); err != nil {
					t.Error(err)
				}
			})
			c := &commandLine{tool: tool, fixture: b, variables: map[string]string{}}
			for _, s := range steps {
				c.run(t, s)
			}
		})
	}
	if commands < 25 {
		t.Errorf("the scripts have %d commands, want at least 25", commands)
	}
}

func awsTool(t *testing.T) string {
	t.Helper()
	candidates := []string{os.Getenv("JOINER_AWS"), "/usr/bin/aws", "aws"}
	for _, c := range candidates {
		path, err := exec.LookPath(c)
		if c != "" && err == nil && exec.CommandContext(t.Context(), path, "--version").Run() == nil {
			return path
		}
	}
	t.Skip("no AWS command line: apt-get install awscli")
	return ""
}

type step struct {
	line     int      // number of the line of the command
	kind     string   // "$", "!", "=" or ">"
	variable string   // for kind "="
	command  string   // for kind ">" a duration
	want     []string // expected output; for kind "!" part of the error message
}

func parseScript(text string) []step {
	var steps []step
	for n, line := range strings.Split(text, "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		name, command, assigns := strings.Cut(line, " = ")
		switch {
		case strings.TrimSpace(line) == "" || kind == "#":
		case kind == "$" || kind == "!" || kind == ">":
			steps = append(steps, step{line: n + 1, kind: kind, command: rest})
		case assigns && name == strings.ToUpper(name) && !strings.Contains(name, " "):
			steps = append(steps, step{line: n + 1, kind: "=", variable: name, command: command})
		default:
			last := &steps[len(steps)-1]
			last.want = append(last.want, line)
		}
	}
	return steps
}

type commandLine struct {
	tool      string            // path of the program
	fixture   *fixture          // the server that the commands call
	variables map[string]string // by name, without $
}

func (c *commandLine) run(t *testing.T, s step) {
	t.Helper()
	if s.kind == ">" {
		d, err := time.ParseDuration(s.command)
		if err != nil {
			t.Fatalf("line %d: %v", s.line, err)
		}
		c.fixture.advance(d)
		return
	}
	words, err := shell.Fields(c.expand(s.command), nil)
	if err != nil {
		t.Fatalf("line %d: %v", s.line, err)
	}
	cmd := exec.CommandContext(t.Context(), c.tool,
		append([]string{"--endpoint-url", c.fixture.url, "--region", region, "--output", "text", "--no-cli-pager"}, words...)...)
	if strings.HasPrefix(c.version(t), "aws-cli/1.") {
		cmd.Args = append(cmd.Args[:7], cmd.Args[8:]...) // version 1 rejects --no-cli-pager, which is argument 7
	}
	cmd.Env = []string{"AWS_ACCESS_KEY_ID=" + account, "AWS_SECRET_ACCESS_KEY=secret", "HOME=" + t.TempDir(),
		"PATH=" + os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED=true"}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	got := strings.TrimRight(stdout.String(), "\n")
	want := c.expand(strings.Join(s.want, "\n"))
	switch {
	case s.kind == "!" && (err == nil || !strings.Contains(stderr.String(), want)):
		t.Errorf("line %d: %s: want a failure with %q, got %v, %s", s.line, s.command, want, err, stderr.String())
	case s.kind == "!":
	case err != nil:
		t.Fatalf("line %d: %s: %v: %s", s.line, s.command, err, stderr.String())
	case s.kind == "=":
		c.variables[s.variable] = got
	default:
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("line %d: %s (-want +got):\n%s", s.line, s.command, d)
		}
	}
}

// expand replaces variables in a command or an expected output; $$ is a dollar.
func (c *commandLine) expand(text string) string {
	return os.Expand(text, func(name string) string {
		if name == "$" {
			return "$"
		}
		return c.variables[name]
	})
}

func (c *commandLine) version(t *testing.T) string {
	t.Helper()
	if c.variables["VERSION"] == "" {
		out, err := exec.CommandContext(t.Context(), c.tool, "--version").CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		c.variables["VERSION"] = string(out)
	}
	return c.variables["VERSION"]
}
