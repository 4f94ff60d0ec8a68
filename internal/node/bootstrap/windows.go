package bootstrap

import (
	"errors"
	"fmt"
	"strings"
)

// The tags of the PowerShell block that EC2Launch runs.
// Source: the EC2 user guide, "How Amazon EC2 handles user data for Windows instances".
const (
	openPowerShell  = "<powershell>"
	closePowerShell = "</powershell>"
)

// windows returns a PowerShell block: the user's commands first, then a call of the image's own script. The user's text
// before and after the block, for instance <persist> or <script>, stays before and after it.
func (n Node) windows() (string, error) {
	before, commands, after, err := powerShell(n.UserData)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(before + openPowerShell + "\n" + commands)
	n.writeBootstrapCall(&b)
	b.WriteString(closePowerShell + "\n" + after)
	return b.String(), nil
}

// writeBootstrapCall writes the call of the image's script. The script prints its progress on the streams 3 to 6, which
// reach EC2Launch's log only through the redirection at the end.
// Source: the EKS user guide, "Windows AMI bootstrap configuration parameters".
func (n Node) writeBootstrapCall(b *strings.Builder) {
	b.WriteString("[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n")
	b.WriteString("& $EKSBootstrapScriptFile")
	option := func(name, value string) { b.WriteString(" " + name + " " + quotePowerShell(value)) }
	option("-EKSClusterName", n.Cluster.Name)
	option("-APIServerEndpoint", n.Cluster.Endpoint)
	option("-Base64ClusterCA", n.Cluster.CA)
	option("-KubeletExtraArgs", strings.Join(n.kubeletFlags(), " "))
	if dns := n.dns(); len(dns) > 0 {
		option("-DNSClusterIP", dns[0])
	}
	if n.Cluster.ServiceCIDR != "" {
		option("-ServiceCIDR", n.Cluster.ServiceCIDR)
	}
	b.WriteString(" 3>&1 4>&1 5>&1 6>&1\n")
}

// powerShell splits the user's own user data into the commands of the <powershell> block, and the text before and after
// the block. Each result is empty or ends with a newline. A text without tags is all commands; a text with only other
// tags, such as <script>, has none.
func powerShell(text string) (before, commands, after string, err error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	lower := asciiLower(text)
	opens, closes := strings.Count(lower, openPowerShell), strings.Count(lower, closePowerShell)
	openAt, closeAt := strings.Index(lower, openPowerShell), strings.Index(lower, closePowerShell)
	switch {
	case text == "":
		return "", "", "", nil
	case opens > 1 || closes > 1:
		return "", "", "", fmt.Errorf("spec.userData has more than one %s or %s: EC2Launch runs only one block, so merge the blocks",
			openPowerShell, closePowerShell)
	case opens != closes:
		return "", "", "", fmt.Errorf("spec.userData has %s or %s without the other", openPowerShell, closePowerShell)
	case opens == 1 && closeAt < openAt:
		return "", "", "", fmt.Errorf("spec.userData has %s before %s", closePowerShell, openPowerShell)
	case opens == 1:
		commands, after = text[openAt+len(openPowerShell):closeAt], text[closeAt+len(closePowerShell):]
		return withNewline(text[:openAt]), withNewline(commands), withNewline(after), nil
	case strings.HasPrefix(text, "<"): // only other blocks
		return withNewline(text), "", "", nil
	case isTaskList(text):
		return "", "", "", errors.New("spec.userData is a task list of EC2Launch v2, to which nothing can be added: write the commands between <powershell> and </powershell>")
	}
	return "", withNewline(text), "", nil
}

// isTaskList reports whether the text is in EC2Launch v2's YAML form.
func isTaskList(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "tasks:") {
			return true
		}
	}
	return false
}

// asciiLower converts ASCII letters to lower case. Unlike strings.ToLower, it keeps every character at its byte offset.
func asciiLower(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// withNewline returns the trimmed text with a newline at its end, or "" for blank text.
func withNewline(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return text + "\n"
}

// quotePowerShell returns a quoted string in which PowerShell expands nothing.
func quotePowerShell(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
