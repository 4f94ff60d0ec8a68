// Package nodeclass has the steps that fix an EC2NodeClass (its AMIs, volumes and user data) and that several packages
// of checks share.
//
// In: an index.Index and an EC2NodeClass.
// Out: steps of a fix.
// Never: a verdict; the packages of the checks judge.
package nodeclass

import (
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/diagnosis/index"
)

// UserDataFixOr returns the step of UserDataFix, or other if UserDataFix has no step.
func UserDataFixOr(ix *index.Index, check string, o index.Occurrence, other fix.Step) fix.Step {
	if step, ok := UserDataFix(ix, check, o); ok {
		return step
	}
	return other
}

// UserDataFix returns the step that fixes the cause of an occurrence, derived from the console output. check is the
// check that found the occurrence. ok is false if the console output does not show what to change.
func UserDataFix(ix *index.Index, check string, o index.Occurrence) (step fix.Step, ok bool) {
	c, ok := ix.Evidence.Class(o.Instance.Class)
	if !ok {
		return fix.Step{}, false
	}
	console := o.Instance.Console.Value
	switch check {
	case "BOOT-2", "BOOT-17", "ARCH-3":
		if isCorrectable(ix, c.Name, check) {
			return correctUserData(ix, c.Name, fix.Text("--check"), fix.Check(check)).With("joiner correct %s --diff shows the lines", c.Name), true
		}
	case "BOOT-3":
		step, ok := awsImage(c)
		return step.With("AWS's own image synchronizes the clock; yours needs chrony with: server 169.254.169.123"), ok
	case "BOOT-6":
		return nodeadmFix(c, o.Line)
	case "BOOT-7":
		return removeUserData(c.Name).With("or correct the setting that the console names"), true
	case "BOOT-9":
		if flag := flagOf(o.Line); flag != "" && !isProtective(flag) {
			return correctUserData(ix, c.Name, fix.Text("--without-flag"),
				fix.Flag(flag)).With("or give --%s a value that the kubelet takes", flag), true
		}
	case "BOOT-10":
		return maxPodsFix(ix, c)
	case "BOOT-11":
		return correctUserData(ix, c.Name, fix.Text("--without-program"),
			fix.Text("swapon")).With("to avoid instance types with swap, exclude m1 and c1 in the NodePool"), true
	case "BOOT-13":
		if program := absentProgram(console); program != "" {
			return correctUserData(ix, c.Name, fix.Text("--forgive"), fix.Program(program)).With("or add %s to the image", program), true
		}
	case "BOOT-14":
		step, ok := awsImage(c)
		return step.With("AWS's own image has a kubelet"), ok
	case "BOOT-15":
		return largerRoot(ix, c)
	}
	return fix.Step{}, false
}

// nodeadmFix is the step that fixes a failure of nodeadm. line is the line of the console that names the cause. Without
// user data, only the image can be the cause.
func nodeadmFix(c diagnosis.Class, line string) (step fix.Step, ok bool) {
	if strings.Contains(line, "executable file not found") || c.DataBytes == 0 {
		step, ok := awsImage(c)
		return step.With("AWS's own image has all programs that nodeadm calls; or add the program that the console names to your image"), ok
	}
	return removeUserData(c.Name).With("or correct the part that the console names"), true
}

// maxPodsFix is the step that makes nodes start whose image does not know how many pods a new instance type takes.
func maxPodsFix(ix *index.Index, c diagnosis.Class) (step fix.Step, ok bool) {
	if c.Family == "Custom" {
		const pods = 29 // the maximum number of pods of most instances of size large, such as m5.large
		return correctUserData(ix, c.Name, fix.Text("--max-pods"),
			fix.Number(pods)).With("%d is the limit of a large instance; or select a newer image, which knows the type", pods), true
	}
	step, ok = awsImage(c)
	return step.With("AWS's newest image knows the type; or copy a newer image, or set spec.kubelet.maxPods"), ok
}

// removeUserData is the step that removes spec.userData from a class. Instances join without it, because Joiner
// generates all user data that they need.
func removeUserData(class string) fix.Step {
	return fix.JSONPatch(fix.NodeClass(class), fix.Fields{"op": fix.Text("remove"), "path": fix.Text("/spec/userData")})
}

// namedFlag matches the part of a log line in which the kubelet names a flag that it rejects.
var namedFlag = regexp.MustCompile(`"--([a-z][a-z0-9-]+)\\?"|\(--([a-z][a-z0-9-]+)\)|unknown flag: --([a-z][a-z0-9-]+)|(unrecognized feature gate)|--(node-labels)`)

func flagOf(line string) string {
	m := namedFlag.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	i := slices.IndexFunc(m[1:], func(part string) bool { return part != "" }) + 1
	if m[i] == "unrecognized feature gate" {
		return "feature-gates"
	}
	return m[i]
}

// isProtective reports whether a flag protects a node. No step that is derived from console output removes such a flag.
func isProtective(flag string) bool {
	for _, part := range []string{"auth", "taint", "protect", "read-only-port", "seccomp", "tls", "cert", "client-ca",
		"kubeconfig", "provider-id"} {
		if strings.Contains(flag, part) {
			return true
		}
	}
	return false
}

// shellName matches program names that need no quotes in a shell.
var shellName = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// absentProgram returns the last program that the console output reports as missing; empty if there is no such line.
func absentProgram(console string) string {
	found := ""
	for line := range strings.Lines(console) {
		before, _, ok := strings.Cut(line[:min(len(line), diagnosis.LongestLine)], ": command not found")
		if !ok {
			continue
		}
		if name := strings.TrimSpace(before[strings.LastIndexByte(before, ':')+1:]); shellName.MatchString(name) {
			found = name
		}
	}
	return found
}
