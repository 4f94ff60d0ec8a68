// Package firstboot knows what an instance makes of its user data: how it starts its kubelet.
//
// In: the AMI family and the final user data.
// Out: the flags and settings that the user data gives to the kubelet, or why the instance could not read it.
// Never: what the image sets by itself, which differs from release to release, or what a script of the user's does.
package firstboot

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/joiner-sh/joiner/catalog"
)

// Kubelet is what user data says about the kubelet.
type Kubelet struct {
	// Flags are the arguments that the kubelet is given, in their order.
	Flags []string `json:"flags"`
	// Config are fields of its KubeletConfiguration. A flag of the same meaning wins.
	Config map[string]any `json:"config"`
	// Doubts say why it may come otherwise.
	Doubts []string `json:"doubts,omitempty"`
}

// Read reads user data as an instance of the family does. The error is what
// would keep it from joining, and names the field of the node class.
func Read(family string, userData []byte) (Kubelet, error) {
	text := string(userData)
	switch family {
	case catalog.AL2023:
		return nodeadm(text)
	case catalog.AL2:
		return bootstrapScript(text)
	case catalog.Bottlerocket:
		return bottlerocket(text)
	case catalog.Windows2019, catalog.Windows2022, catalog.Windows2025:
		return windows(text)
	}
	return Kubelet{Doubts: []string{"only the image knows what it makes of its user data"}}, nil
}

const eksScript = "/etc/eks/bootstrap.sh"

// bootstrapScript reads the last call of bootstrap.sh, which is ours.
// Source: files/bootstrap.sh of github.com/awslabs/amazon-eks-ami, branch al2.
func bootstrapScript(text string) (Kubelet, error) {
	all, err := parts(text)
	if err != nil {
		return Kubelet{}, err
	}
	var k Kubelet
	calls := 0
	for _, p := range all {
		at := strings.LastIndex(p.body, "\n"+eksScript+" ")
		if at < 0 {
			if strings.Contains(p.body, eksScript) {
				calls++
			}
			continue
		}
		calls++
		args := words(p.body[at+1:])
		k.Flags, k.Config = nil, map[string]any{}
		for i := 1; i+1 < len(args); i++ {
			switch args[i] {
			case "--kubelet-extra-args":
				k.Flags = words(args[i+1])
			case "--dns-cluster-ip":
				k.Config["clusterDNS"] = []any{args[i+1]}
			}
		}
	}
	if calls == 0 {
		return Kubelet{}, errors.New("nothing in the user data calls " + eksScript)
	}
	if calls > 1 {
		k.Doubts = append(k.Doubts, "spec.userData calls "+eksScript+" itself, before Joiner's call: the kubelet starts with the arguments of that one")
	}
	return k, nil
}

var (
	windowsFlags = regexp.MustCompile(`(?i) -KubeletExtraArgs '((?:[^']|'')*)'`)
	windowsDNS   = regexp.MustCompile(`(?i) -DNSClusterIP '([^']*)'`)
)

// windows reads the last call of Start-EKSBootstrap.ps1, which is ours.
func windows(text string) (Kubelet, error) {
	flags := windowsFlags.FindAllStringSubmatch(text, -1)
	if len(flags) == 0 {
		return Kubelet{}, errors.New("nothing in the user data calls Start-EKSBootstrap.ps1")
	}
	k := Kubelet{Flags: words(strings.ReplaceAll(flags[len(flags)-1][1], "''", "'")), Config: map[string]any{}}
	if dns := windowsDNS.FindAllStringSubmatch(text, -1); len(dns) > 0 {
		k.Config["clusterDNS"] = []any{dns[len(dns)-1][1]}
	}
	if strings.Count(strings.ToLower(text), "start-eksbootstrap.ps1") > 1 {
		k.Doubts = append(k.Doubts, "spec.userData starts the kubelet itself, before Joiner's call")
	}
	return k, nil
}

// words splits the first command of a script as a POSIX shell does, as far as
// nothing is to be expanded.
func words(line string) []string {
	var out []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			if line[i] != '\n' { // else the command goes on in the next line
				word.WriteByte(line[i])
				inWord = true
			}
		case c == '\'' || c == '"':
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				end = len(line) - i - 1
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
			inWord = true
		case c == ' ' || c == '\t' || c == '\n':
			if inWord {
				out = append(out, word.String())
				word.Reset()
			}
			inWord = false
			if c == '\n' {
				return out
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		out = append(out, word.String())
	}
	return out
}

// wrongPart is the error about one part of a MIME message.
func wrongPart(n int, err error) error { return fmt.Errorf("spec.userData: part %d: %w", n, err) }
