package userdata

import "strings"

// psOptions are the parameters of Start-EKSBootstrap.ps1.
// Source: the EKS user guide, "Windows AMI bootstrap configuration parameters".
var psOptions = []string{
	"EKSClusterName", "KubeletExtraArgs", "KubeProxyExtraArgs", "APIServerEndpoint", "Base64ClusterCA", "DNSClusterIP", "ServiceCIDR",
	"ExcludedSnatCIDRs", "ContainerRuntime",
}

// windows reads the commands of EC2Launch that PowerShell runs.
func (r *reader) windows(t text) {
	form := formOf(t.body)
	r.out.Form = FormPowerShell
	switch form {
	case FormMIME, FormScript, FormNodeConfig, FormBottlerocket, FormCloudConfig:
		r.out.Form = form
		r.problem(OtherFamily, Certain, NeverJoins, t.at, "it is %s, which Windows does not run", form).
			with("write commands between <powershell> and </powershell>, or choose another AMI family", "")
		return
	}
	if own := formOf(r.in.Own); r.ours > 0 || r.in.Data != nil {
		switch own {
		case FormScript, FormNodeConfig, FormBottlerocket, FormCloudConfig, FormMIME:
			r.problem(OtherFamily, Certain, JoinsAmiss, Spot{Line: 1, Column: 1}, "it is %s, which Windows does not run", own).
				with("write commands between <powershell> and </powershell>, or choose another AMI family", "")
		}
	}
	commands, ok := r.block(t)
	if !ok {
		return
	}
	p := &psReader{r: r, vars: map[string]word{}}
	p.run(commands)
}

// block is what stands between <powershell> and </powershell>.
func (r *reader) block(t text) (text, bool) {
	const open, closing = "<powershell>", "</powershell>"
	lower := lowered(t.body)
	from, to := strings.Index(lower, open), strings.Index(lower, closing)
	switch {
	case from < 0 && to < 0:
		if strings.Contains(lower, "tasks:") {
			r.opaque = append(r.opaque, "it is a task list of EC2Launch")
		} else if strings.TrimSpace(t.body) != "" {
			r.problem(UnknownPart, Certain, r.scriptHarm(), t.at, "it has no <powershell>, so EC2Launch runs none of it").
				with("write the commands between <powershell> and </powershell>", "")
		}
		return text{}, false
	case from < 0 || to < from:
		r.problem(ScriptBroken, Certain, NeverJoins, t.at, "it has <powershell> or </powershell> without the other, so EC2Launch runs none of it").
			with("write the commands between the two", "")
		return text{}, false
	}
	from += len(open)
	return text{body: t.body[from:to], at: moved(t.at, t.body[:from])}, true
}

// lowered keeps every byte where it is, which strings.ToLower need not.
func lowered(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c | 0x20
		}
	}
	return string(out)
}

// psReader goes through PowerShell as far as simple commands and variables of text go.
type psReader struct {
	r    *reader
	vars map[string]word // by name, lower case, without "$"
	text text
	i    int
}

// run goes through the commands line by line.
func (p *psReader) run(t text) {
	p.text = t
	for p.i < len(t.body) {
		words := p.line()
		if len(words) == 0 {
			continue
		}
		name := lowered(words[0].text)
		if name == "&" || name == "." {
			words = words[1:]
		}
		switch {
		case len(words) == 0:
		case len(words) >= 2 && words[1].text == "=" && strings.Contains(name, "$"):
			p.assign(words)
		case strings.HasSuffix(lowered(words[0].text), "start-eksbootstrap.ps1"):
			p.call(words)
		case strings.HasSuffix(name, "$eksbootstrapscriptfile"):
			p.call(words)
		}
	}
}

// assign gives a variable its value: of one word, or unknown.
func (p *psReader) assign(words []word) {
	_, name, _ := strings.Cut(lowered(words[0].text), "$")
	value := word{text: mark}
	if len(words) == 3 {
		value = words[2]
	}
	if len(p.vars) < maxParts*8 {
		p.vars[name] = value
	}
}

// call reads a call of Start-EKSBootstrap.ps1.
func (p *psReader) call(words []word) {
	s := start{by: byPS, at: words[0].at, sure: true, config: map[string]any{}, spots: map[string]Spot{}}
	for i := 1; i < len(words); i++ {
		name, isOption := strings.CutPrefix(words[i].text, "-")
		if !isOption || name == "" {
			if strings.HasPrefix(words[i].text, "@") || words[i].isVague() {
				s.hidden = true
			}
			continue
		}
		name, joined, has := strings.Cut(name, ":")
		option := psOption(name)
		if option == "" {
			pr := p.r.problem(OptionUnknown, Certain, NeverJoins, words[i].at, "%s has no parameter of this name%s, and ends with an error", byPS, said("-"+name))
			if near := nearest(name, psOptions); near != "" {
				pr.with("write", "-"+near)
			}
			return
		}
		value := word{text: joined, at: words[i].at}
		if !has || joined == "" {
			if i++; i >= len(words) || strings.HasPrefix(words[i].text, "-") && !words[i].whole {
				p.r.problem(ValueMissing, Certain, NeverJoins, words[i-1].at, "-%s has no value, and %s ends with an error", option, byPS)
				return
			}
			value = words[i]
		}
		p.option(&s, option, value)
	}
	if !s.cluster.IsSet() && !s.hidden {
		p.r.problem(ValueMissing, Certain, NeverJoins, s.at, "%s is called without -EKSClusterName, and ends with an error", byPS).with("add -EKSClusterName", "")
		return
	}
	p.r.starts = append(p.r.starts, s)
}

// psOption is the parameter that a name stands for: PowerShell takes any case and any unambiguous beginning.
func psOption(name string) string {
	var found []string
	for _, one := range psOptions {
		if strings.EqualFold(one, name) {
			return one
		}
		if len(name) < len(one) && strings.EqualFold(one[:len(name)], name) {
			found = append(found, one)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

func (p *psReader) option(s *start, option string, value word) {
	switch option {
	case "EKSClusterName":
		s.cluster = value.value()
	case "APIServerEndpoint":
		s.endpoint = value.value()
	case "Base64ClusterCA":
		s.ca = value.value()
	case "DNSClusterIP":
		s.config["clusterDNS"], s.spots["clusterDNS"] = []any{value.value().Text}, value.at
	case "KubeletExtraArgs":
		s.hidden = s.hidden || value.isVague()
		for _, one := range split(value.text) {
			spot := value.at
			if value.whole {
				spot = moved(Spot{Part: value.at.Part, Line: value.at.Line, Column: value.at.Column + 1}, value.text[:one.from])
			}
			s.flags = append(s.flags, flag{strings.ReplaceAll(one.text, mark, "…"), spot})
		}
	}
}

// line reads the words of one command; a backtick at its end makes it go on.
func (p *psReader) line() []word {
	var out []word
	for p.i < len(p.text.body) && len(out) < 512 {
		switch c := p.text.body[p.i]; {
		case strings.IndexByte("\n;|{}", c) >= 0:
			p.i++
			return out
		case strings.IndexByte(" \t\r()", c) >= 0:
			p.i++
		case c == '`':
			if p.i++; p.i < len(p.text.body) && p.text.body[p.i] == '\r' {
				p.i++
			}
			p.i++
		case strings.HasPrefix(p.text.body[p.i:], "<#"):
			p.skip("#>")
		case c == '#':
			p.skipLine()
		default:
			out = append(out, p.word())
		}
	}
	return out
}

func (p *psReader) skip(to string) {
	end := strings.Index(p.text.body[p.i:], to)
	if end < 0 {
		p.i = len(p.text.body)
		return
	}
	p.i += end + len(to)
}

func (p *psReader) skipLine() {
	for p.i < len(p.text.body) && p.text.body[p.i] != '\n' {
		p.i++
	}
}

// word reads one word, quoted or not.
func (p *psReader) word() word {
	body, from := p.text.body, p.i
	w := word{at: moved(p.text.at, body[:from])}
	var out strings.Builder
	for p.i < len(body) {
		switch c := body[p.i]; {
		case c == '\'':
			out.WriteString(p.single())
			w.whole = p.isEnd() && body[from] == '\''
		case c == '"':
			out.WriteString(p.double())
			w.whole = p.isEnd() && body[from] == '"' && !strings.ContainsAny(body[from:p.i], "`$")
		case p.isEnd():
			w.text = p.named(out.String())
			return w
		default:
			out.WriteByte(c)
			p.i++
		}
	}
	w.text = p.named(out.String())
	return w
}

func (p *psReader) isEnd() bool {
	return p.i >= len(p.text.body) || strings.IndexByte(" \t\r\n;|(){}`", p.text.body[p.i]) >= 0
}

// named is a word that is nothing but a variable, replaced by what it holds.
func (p *psReader) named(text string) string {
	name, ok := strings.CutPrefix(text, "$")
	if !ok || strings.Contains(text, mark) {
		return text
	}
	for i := p.i; i < len(p.text.body) && strings.IndexByte(" \t=", p.text.body[i]) >= 0; i++ {
		if p.text.body[i] == '=' {
			return text // it is given a value here
		}
	}
	if held, ok := p.vars[lowered(name)]; ok {
		return held.text
	}
	if strings.EqualFold(name, "EKSBootstrapScriptFile") {
		return text
	}
	return mark
}

// single reads a word between single quotes, of which two are one.
func (p *psReader) single() string {
	var out strings.Builder
	for p.i++; p.i < len(p.text.body); p.i++ {
		if p.text.body[p.i] == '\'' {
			if !strings.HasPrefix(p.text.body[p.i+1:], "'") {
				p.i++
				break
			}
			p.i++
		}
		out.WriteByte(p.text.body[p.i])
	}
	return out.String()
}

// double reads a word between double quotes, in which variables are replaced and a backtick escapes.
func (p *psReader) double() string {
	var out strings.Builder
	for p.i++; p.i < len(p.text.body) && out.Len() < maxUnpacked; p.i++ {
		switch c := p.text.body[p.i]; {
		case c == '`' && p.i+1 < len(p.text.body):
			p.i++
			out.WriteByte(p.text.body[p.i])
		case c == '"' && strings.HasPrefix(p.text.body[p.i+1:], `"`):
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

// variable reads the name behind a dollar sign and leaves the reader at its last letter.
func (p *psReader) variable() string {
	body, from := p.text.body, p.i+1
	to := from
	for to < len(body) && (body[to] == '_' || body[to] == ':' || isName(body[to:to+1])) && body[to] != '-' {
		to++
	}
	if to == from {
		if strings.HasPrefix(body[from:], "(") {
			if end := strings.IndexByte(body[from:], ')'); end >= 0 {
				p.i = from + end
			}
			return mark
		}
		return "$"
	}
	p.i = to - 1
	if held, ok := p.vars[lowered(body[from:to])]; ok && len(held.text) <= maxValue {
		return held.text
	}
	return mark
}
