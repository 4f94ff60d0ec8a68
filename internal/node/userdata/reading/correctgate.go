package reading

import (
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// gateFlag matches the kubelet's flag with its feature gates, in a script.
var gateFlag = regexp.MustCompile(`--feature-gates[= ]([A-Za-z0-9]+=[A-Za-z]+(?:,[A-Za-z0-9]+=[A-Za-z]+)*)`)

// gateCandidates returns scripts in which one feature gate of the problem's line has the name p.Write, and scripts in
// which one gate is removed. The flag is removed with its only gate. The rest of the line stays, because it starts the
// kubelet.
func gateCandidates(l lines, p userdata.Problem) []string {
	if p.At.Line < 1 || p.At.Line > len(l) {
		return nil
	}
	line := l[p.At.Line-1]
	found := gateFlag.FindStringSubmatchIndex(line)
	if found == nil {
		return nil
	}
	gates := strings.Split(line[found[2]:found[3]], ",")
	scriptWith := func(gates []string) string {
		text := line[:found[2]] + strings.Join(gates, ",") + line[found[3]:]
		if len(gates) == 0 {
			text = line[:found[0]] + strings.TrimLeft(line[found[1]:], " ")
		}
		return l.replaceLine(p.At.Line, func(string) string { return text })
	}
	var out []string
	for i, gate := range gates {
		_, value, _ := strings.Cut(gate, "=")
		if p.Write != "" {
			out = append(out, scriptWith(slices.Concat(gates[:i], []string{p.Write + "=" + value}, gates[i+1:])))
		}
	}
	for i := range gates {
		out = append(out, scriptWith(slices.Concat(gates[:i], gates[i+1:])))
	}
	return out
}
