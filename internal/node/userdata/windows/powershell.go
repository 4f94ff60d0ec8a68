// Package windows reads user data of Windows: PowerShell that calls Start-EKSBootstrap.ps1.
//
// In: a userdata.Reader and a text.
// Out: starts of the kubelet and problems, added to the Reader.
// Never: running a command; a value that may be a secret in a problem.
package windows

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// parameters are the parameters of Start-EKSBootstrap.ps1.
// Source: the EKS user guide, "Windows AMI bootstrap configuration parameters".
var parameters = []string{
	"EKSClusterName", "KubeletExtraArgs", "KubeProxyExtraArgs", "APIServerEndpoint", "Base64ClusterCA", "DNSClusterIP", "ServiceCIDR",
	"ExcludedSnatCIDRs", "ContainerRuntime",
}

// Read reads the commands that EC2Launch runs with PowerShell. It reports the text t and the user's own text if they
// have a form that Windows does not run.
func Read(r *userdata.Reader, t userdata.Text) {
	form := userdata.FormOf(t.Body)
	r.Out.Form = userdata.FormPowerShell
	switch form {
	case userdata.FormMIME, userdata.FormScript, userdata.FormNodeConfig, userdata.FormBottlerocket, userdata.FormCloudConfig:
		r.Out.Form = form
		r.Report(userdata.OtherFamily, userdata.Certain, userdata.NeverJoins, t.At, "it is %s, which Windows does not run", form).
			Suggest("write commands between <powershell> and </powershell>, or choose another AMI family", "")
		return
	}
	if r.OurPart > 0 || r.In.Data != nil { // the user's own text was merged into t
		switch own := userdata.FormOf(r.In.Own); own {
		case userdata.FormScript, userdata.FormNodeConfig, userdata.FormBottlerocket, userdata.FormCloudConfig, userdata.FormMIME:
			r.Report(userdata.OtherFamily, userdata.Certain, userdata.JoinsDifferently, userdata.Position{Line: 1, Column: 1},
				"it is %s, which Windows does not run", own).
				Suggest("write commands between <powershell> and </powershell>, or choose another AMI family", "")
		}
	}
	commands, ok := commandText(r, t)
	if !ok {
		return
	}
	p := &psReader{r: r, vars: map[string]userdata.Word{}}
	p.run(commands)
}

// commandText returns the text between <powershell> and </powershell>. It returns false if there is none, and reports a
// problem unless the text is blank or a task list.
func commandText(r *userdata.Reader, t userdata.Text) (userdata.Text, bool) {
	const open, closing = "<powershell>", "</powershell>"
	lower := lowerASCII(t.Body)
	from, to := strings.Index(lower, open), strings.Index(lower, closing)
	switch {
	case from < 0 && to < 0:
		if strings.Contains(lower, "tasks:") {
			r.Unevaluated = append(r.Unevaluated, "it is a task list of EC2Launch")
		} else if strings.TrimSpace(t.Body) != "" {
			r.Report(userdata.UnknownPart, userdata.Certain, r.ScriptHarm(), t.At, "it has no <powershell>, so EC2Launch runs none of it").
				Suggest("write the commands between <powershell> and </powershell>", "")
		}
		return userdata.Text{}, false
	case from < 0 || to < from:
		r.Report(userdata.ScriptBroken, userdata.Certain, userdata.NeverJoins, t.At,
			"it has <powershell> or </powershell> without the other, so EC2Launch runs none of it").
			Suggest("write the commands between the two", "")
		return userdata.Text{}, false
	}
	from += len(open)
	return userdata.Text{Body: t.Body[from:to], At: userdata.PositionAfter(t.At, t.Body[:from])}, true
}

// lowerASCII, unlike strings.ToLower, keeps the position of every byte.
func lowerASCII(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c | 0x20
		}
	}
	return string(out)
}

// psReader follows the simple commands of PowerShell, and its variables that hold text.
type psReader struct {
	r    *userdata.Reader
	vars map[string]userdata.Word // by name in lower case, without "$"
	text userdata.Text            // the commands
	i    int                      // index of the next byte of text
}

func (p *psReader) run(t userdata.Text) {
	p.text = t
	for p.i < len(t.Body) {
		words := p.command()
		if len(words) == 0 {
			continue
		}
		name := lowerASCII(words[0].Text)
		if name == "&" || name == "." {
			words = words[1:]
		}
		switch {
		case len(words) == 0:
		case len(words) >= 2 && words[1].Text == "=" && strings.Contains(name, "$"):
			p.assign(words)
		case strings.HasSuffix(lowerASCII(words[0].Text), "start-eksbootstrap.ps1"):
			p.call(words)
		case strings.HasSuffix(name, "$eksbootstrapscriptfile"):
			p.call(words)
		}
	}
}

// assign processes the words of an assignment, $name = value. A value of several words is known only on the instance.
func (p *psReader) assign(words []userdata.Word) {
	_, name, _ := strings.Cut(lowerASCII(words[0].Text), "$")
	value := userdata.Word{Text: userdata.UnknownText}
	if len(words) == 3 {
		value = words[2]
	}
	if len(p.vars) < userdata.MaxParts*8 { // as for variables of the shell
		p.vars[name] = value
	}
}

// call reads a call of Start-EKSBootstrap.ps1. It adds no start if the script would end with an error.
func (p *psReader) call(words []userdata.Word) {
	s := userdata.Start{
		By: userdata.ByPS, At: words[0].At, IsUnconditional: true, Config: map[string]any{}, Positions: map[string]userdata.Position{},
	}
	for i := 1; i < len(words); i++ {
		name, isOption := strings.CutPrefix(words[i].Text, "-")
		if !isOption || name == "" {
			if strings.HasPrefix(words[i].Text, "@") || words[i].IsVague() {
				s.HasUnknownFlags = true
			}
			continue
		}
		name, afterColon, hasColon := strings.Cut(name, ":") // -Name:value
		option := findParameter(name)
		if option == "" {
			problem := p.r.Report(userdata.OptionUnknown, userdata.Certain, userdata.NeverJoins, words[i].At,
				"%s has no parameter of this name%s, and ends with an error", userdata.ByPS, userdata.InParentheses("-"+name))
			if near := userdata.Nearest(name, parameters); near != "" {
				problem.Suggest("write", "-"+near)
			}
			return
		}
		value := userdata.Word{Text: afterColon, At: words[i].At}
		if !hasColon || afterColon == "" {
			if i++; i >= len(words) || strings.HasPrefix(words[i].Text, "-") && !words[i].IsLiteral {
				p.r.Report(userdata.ValueMissing, userdata.Certain, userdata.NeverJoins, words[i-1].At,
					"-%s has no value, and %s ends with an error", option, userdata.ByPS)
				return
			}
			value = words[i]
		}
		p.setParameter(&s, option, value)
	}
	if !s.Cluster.IsSet() && !s.HasUnknownFlags {
		p.r.Report(userdata.ValueMissing, userdata.Certain, userdata.NeverJoins, s.At,
			"%s is called without -EKSClusterName, and ends with an error", userdata.ByPS).Suggest("add -EKSClusterName", "")
		return
	}
	p.r.Starts = append(p.r.Starts, s)
}

// findParameter returns the parameter that a name refers to; empty if there is none. PowerShell ignores case and
// accepts any unambiguous prefix.
func findParameter(name string) string {
	var found []string
	for _, parameter := range parameters {
		if strings.EqualFold(parameter, name) {
			return parameter
		}
		if len(name) < len(parameter) && strings.EqualFold(parameter[:len(name)], name) {
			found = append(found, parameter)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

// setParameter sets the fields of the start s that a parameter of Start-EKSBootstrap.ps1 determines.
func (p *psReader) setParameter(s *userdata.Start, option string, value userdata.Word) {
	switch option {
	case "EKSClusterName":
		s.Cluster = value.Value()
	case "APIServerEndpoint":
		s.Endpoint = value.Value()
	case "Base64ClusterCA":
		s.CA = value.Value()
	case "DNSClusterIP":
		s.Config["clusterDNS"], s.Positions["clusterDNS"] = []any{value.Value().Text}, value.At
	case "KubeletExtraArgs":
		s.HasUnknownFlags = s.HasUnknownFlags || value.IsVague()
		for _, word := range userdata.Split(value.Text) {
			position := value.At
			if value.IsLiteral {
				// The text begins after the opening quote.
				begin := userdata.Position{Part: value.At.Part, Line: value.At.Line, Column: value.At.Column + 1}
				position = userdata.PositionAfter(begin, value.Text[:word.From])
			}
			s.Flags = append(s.Flags, userdata.Flag{Text: strings.ReplaceAll(word.Text, userdata.UnknownText, "…"), At: position})
		}
	}
}

// command reads the words of one command, at most 512 to limit memory. A backtick at the end of a line continues the
// command.
func (p *psReader) command() []userdata.Word {
	var out []userdata.Word
	for p.i < len(p.text.Body) && len(out) < 512 {
		switch c := p.text.Body[p.i]; {
		case strings.IndexByte("\n;|{}", c) >= 0:
			p.i++
			return out
		case strings.IndexByte(" \t\r()", c) >= 0:
			p.i++
		case c == '`':
			if p.i++; p.i < len(p.text.Body) && p.text.Body[p.i] == '\r' {
				p.i++
			}
			p.i++
		case strings.HasPrefix(p.text.Body[p.i:], "<#"):
			p.skip("#>")
		case c == '#':
			p.skipLine()
		default:
			out = append(out, p.word())
		}
	}
	return out
}

// skip skips the text up to and including to.
func (p *psReader) skip(to string) {
	end := strings.Index(p.text.Body[p.i:], to)
	if end < 0 {
		p.i = len(p.text.Body)
		return
	}
	p.i += end + len(to)
}

func (p *psReader) skipLine() {
	for p.i < len(p.text.Body) && p.text.Body[p.i] != '\n' {
		p.i++
	}
}

// word reads one word, quoted or not, with its variables replaced by their values.
func (p *psReader) word() userdata.Word {
	body, from := p.text.Body, p.i
	w := userdata.Word{At: userdata.PositionAfter(p.text.At, body[:from])}
	var out strings.Builder
	for p.i < len(body) {
		switch c := body[p.i]; {
		case c == '\'':
			out.WriteString(p.singleQuoted())
			// The word is literal if the quotes enclose all of it.
			w.IsLiteral = p.isEnd() && body[from] == '\''
		case c == '"':
			out.WriteString(p.doubleQuoted())
			w.IsLiteral = p.isEnd() && body[from] == '"' && !strings.ContainsAny(body[from:p.i], "`$")
		case p.isEnd():
			w.Text = p.resolve(out.String())
			return w
		default:
			out.WriteByte(c)
			p.i++
		}
	}
	w.Text = p.resolve(out.String())
	return w
}

// isEnd reports whether a word ends before the next byte.
func (p *psReader) isEnd() bool {
	return p.i >= len(p.text.Body) || strings.IndexByte(" \t\r\n;|(){}`", p.text.Body[p.i]) >= 0
}

// resolve returns the value of the variable that text names, or UnknownText if it is not set. It returns text itself if
// text is no variable, is the target of an assignment, or is the variable that EKS documents for the path of
// Start-EKSBootstrap.ps1.
func (p *psReader) resolve(text string) string {
	name, ok := strings.CutPrefix(text, "$")
	if !ok || strings.Contains(text, userdata.UnknownText) {
		return text
	}
	for i := p.i; i < len(p.text.Body) && strings.IndexByte(" \t=", p.text.Body[i]) >= 0; i++ {
		if p.text.Body[i] == '=' {
			return text // an assignment to the variable
		}
	}
	if value, ok := p.vars[lowerASCII(name)]; ok {
		return value.Text
	}
	if strings.EqualFold(name, "EKSBootstrapScriptFile") {
		return text
	}
	return userdata.UnknownText
}

// singleQuoted reads a word in single quotes, in which two single quotes mean one.
func (p *psReader) singleQuoted() string {
	var out strings.Builder
	for p.i++; p.i < len(p.text.Body); p.i++ {
		if p.text.Body[p.i] == '\'' {
			if !strings.HasPrefix(p.text.Body[p.i+1:], "'") {
				p.i++
				break
			}
			p.i++
		}
		out.WriteByte(p.text.Body[p.i])
	}
	return out.String()
}

// doubleQuoted reads a word in double quotes, in which variables are expanded and a backtick escapes.
func (p *psReader) doubleQuoted() string {
	var out strings.Builder
	for p.i++; p.i < len(p.text.Body) && out.Len() < userdata.MaxUnpacked; p.i++ {
		switch c := p.text.Body[p.i]; {
		case c == '`' && p.i+1 < len(p.text.Body):
			p.i++
			out.WriteByte(p.text.Body[p.i])
		case c == '"' && strings.HasPrefix(p.text.Body[p.i+1:], `"`):
			p.i++
			out.WriteByte('"')
		case c == '"':
			p.i++
			return out.String()
		case c == '$':
			out.WriteString(p.variable())
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// variable reads the name, or the expression in parentheses, after a dollar sign, and returns its value. Afterwards p.i
// is the index of the last byte that it has read.
func (p *psReader) variable() string {
	body, from := p.text.Body, p.i+1
	to := from
	for to < len(body) && (body[to] == '_' || body[to] == ':' || kubelet.IsName(body[to:to+1])) { // IsName: a letter or digit
		to++
	}
	if to == from {
		if strings.HasPrefix(body[from:], "(") {
			if end := strings.IndexByte(body[from:], ')'); end >= 0 {
				p.i = from + end
			}
			return userdata.UnknownText
		}
		return "$"
	}
	p.i = to - 1
	if value, ok := p.vars[lowerASCII(body[from:to])]; ok && len(value.Text) <= userdata.MaxValue {
		return value.Text
	}
	return userdata.UnknownText
}
