package userdata

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// shOptions are the options of /etc/eks/bootstrap.sh, each of which takes the
// next word as its value. It knows an option only as a word of its own: with
// "=" behind it, it is an argument like any other, and ignored.
// Source: templates/al2/runtime/bootstrap.sh of github.com/awslabs/amazon-eks-ami.
var shOptions = []string{
	"--use-max-pods", "--b64-cluster-ca", "--apiserver-endpoint", "--kubelet-extra-args", "--enable-docker-bridge",
	"--aws-api-retry-attempts", "--docker-config-json", "--containerd-config-file", "--pause-container-account",
	"--pause-container-version", "--dns-cluster-ip", "--ip-family", "--service-ipv6-cidr", "--enable-local-outpost",
	"--cluster-id", "--mount-bpf-fs", "--local-disks", "--container-runtime",
}

const extraArgs = "--kubelet-extra-args"

// shCall is one call of bootstrap.sh, taken apart as it takes itself apart.
type shCall struct {
	r       *reader
	c       command
	start   start
	options map[string]word
	spans   map[string]int // of the value, by option: its index among the words
	rest    []word         // what is no option and no value
	dead    bool           // the script would end with an error
}

// bootstrapCall reads a call of bootstrap.sh.
func (r *reader) bootstrapCall(c command) {
	if r.system() == catalog.AL2023 {
		r.sorryAL2023(c)
		return
	}
	call := &shCall{r: r, c: c, options: map[string]word{}, spans: map[string]int{}}
	call.start = start{by: bySh, at: c.at, sure: c.sure, config: map[string]any{}, spots: map[string]Spot{}}
	first := len(r.out.Problems)
	call.parse()
	call.judgeRest()
	call.fill()
	r.soften(first, c.sure)
	if !call.dead {
		r.starts = append(r.starts, call.start)
	}
}

// sorryAL2023 says that the image has no bootstrap.sh that would work.
func (r *reader) sorryAL2023(c command) {
	certainty := Certain
	if !c.sure {
		certainty = Likely
	}
	r.problem(OtherFamily, certainty, r.scriptHarm(), c.at, "%s does not work on an image of AL2023: it prints an error, and what it is called with is lost", bySh).
		with("write a NodeConfig for nodeadm instead, as a MIME part of type "+typeNodeConfig, "")
}

// parse goes through the words as the script does.
func (s *shCall) parse() {
	words := slices.Clone(s.c.words)[1:]
	index := func(i int) int { return i + 1 }
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.text == vanished:
		case w.text == "-h" || w.text == "--help":
			s.dead = true
		case !slices.Contains(shOptions, w.text):
			s.rest = append(s.rest, w)
		default:
			j := i + 1
			for j < len(words) && words[j].text == vanished {
				j++
			}
			if j > i+1 {
				s.lacksValue(w, words[i+1])
			}
			if j == len(words) {
				if j == i+1 {
					s.lacksValue(w, word{})
				}
				s.dead = true
				return
			}
			s.options[w.text], s.spans[w.text] = words[j], index(j)
			i = j
		}
	}
}

// lacksValue says that an option takes the next word for its value, because its own is missing.
func (s *shCall) lacksValue(option, value word) {
	if len(value.unset) > 0 {
		s.r.problem(VariableUnset, Certain, s.r.scriptHarm(), value.at,
			"%s is set nowhere in the user data, so %s has no value and takes the word after it instead", variable(value.unset[0]), option.text).
			with(fmt.Sprintf("set it before, or leave %s out: without --apiserver-endpoint and --b64-cluster-ca the script asks EKS for both", option.text), "")
		return
	}
	s.r.problem(ValueMissing, Certain, s.r.scriptHarm(), option.at, "%s has no value, and the script ends with an error", option.text).
		with("write the value behind it as a word of its own", "")
}

// judgeRest looks through what the script ignores for what was meant as an option.
func (s *shCall) judgeRest() {
	for i := 0; i < len(s.rest); i++ {
		w := s.rest[i]
		name, value, hasValue := strings.Cut(w.text, "=")
		switch {
		case hasValue && slices.Contains(shOptions, name):
			s.lostForm(w, name, value)
		case !strings.HasPrefix(w.text, "-"):
			if i > 0 && strings.Contains(w.text, "--") {
				s.outside(w)
			}
		case knownFlag(strings.TrimLeft(name, "-")):
			s.outside(w)
		case s.unknownOption(w, name) == extraArgs && i+1 < len(s.rest):
			i++ // what was meant as its value
			s.r.out.Problems[len(s.r.out.Problems)-1].Write = s.corrected(s.rest[i].text)
		}
	}
}

// lostForm says that the form --option=value is not known to the script.
func (s *shCall) lostForm(w word, name, value string) {
	p := s.r.problem(ArgumentsLost, Certain, JoinsAmiss, w.at,
		"%s knows %s only with its value as the next word: with = between them it ignores both, and the kubelet gets none of it", bySh, name)
	p.with("write them as two words", "")
	if name == extraArgs {
		p.Write = s.corrected(value)
	}
}

// outside says that an argument of the kubelet stands outside of the one word that is passed on.
func (s *shCall) outside(w word) {
	name, _, _ := strings.Cut(w.text, "=")
	if !strings.HasPrefix(name, "--") || !isTelling(name) {
		name = "an argument of the kubelet"
	}
	p := s.r.problem(ArgumentsLost, Certain, JoinsAmiss, w.at,
		"%s takes one word only, and %s stands outside of it: a quote ends too early, or there is none, and the kubelet never gets it", extraArgs, name)
	p.with("put all arguments of the kubelet between one pair of single quotes", "")
	var all []string
	if first, ok := s.options[extraArgs]; ok {
		all = append(all, first.text)
	}
	for _, one := range s.rest[min(1, len(s.rest)):] {
		all = append(all, one.text)
	}
	p.Write = s.corrected(strings.Join(all, " "))
}

// unknownOption reports an unknown option and returns the near one.
func (s *shCall) unknownOption(w word, name string) string {
	p := s.r.problem(OptionUnknown, Certain, JoinsAmiss, w.at, "%s knows no option of this name and ignores it%s", bySh, said(name))
	near := nearest(name, shOptions)
	if near != "" {
		p.with("write", near)
	}
	return near
}

// corrected writes the option for the kubelet's arguments as it works, if
// nothing but labels, taints and numbers is in it.
func (s *shCall) corrected(value string) string {
	flags := strings.Join(corrected(words(value)), " ")
	if flags == "" {
		return ""
	}
	return extraArgs + " '" + flags + "'"
}

// fill makes settings of the options.
func (s *shCall) fill() {
	switch {
	case len(s.rest) > 0 && strings.HasPrefix(s.rest[0].text, "-"):
		s.dead = true
		s.r.problem(ValueMissing, Certain, s.r.scriptHarm(), s.rest[0].at, "%s takes its first argument that is no option for the cluster's name, and this is none", bySh).
			with("write the name of the cluster first", "")
	case len(s.rest) > 0:
		s.start.cluster = s.rest[0].value()
	case !s.dead:
		s.dead = true
		s.r.problem(ValueMissing, Certain, s.r.scriptHarm(), s.c.at, "%s is called without the name of the cluster, and ends with an error", bySh).
			with("write the name behind it", "")
	}
	s.start.endpoint, s.start.ca = s.options["--apiserver-endpoint"].valueOrNone(), s.options["--b64-cluster-ca"].valueOrNone()
	s.swallowed()
	if dns, ok := s.options["--dns-cluster-ip"]; ok {
		s.start.config["clusterDNS"] = []any{dns.value().Text}
		s.start.spots["clusterDNS"] = dns.at
	}
	if extra, ok := s.options[extraArgs]; ok {
		s.extra(extra)
	}
}

func (w word) valueOrNone() Value {
	if w.text == "" {
		return Value{}
	}
	return w.value()
}

// swallowed says that the value of an option is another option.
func (s *shCall) swallowed() {
	for _, option := range shOptions {
		if value, ok := s.options[option]; ok && slices.Contains(shOptions, value.text) {
			s.problemOnce(option, value)
			if option == "--b64-cluster-ca" {
				s.dead = true
			}
		}
	}
}

func (s *shCall) problemOnce(option string, value word) {
	for _, p := range s.r.out.Problems {
		if p.Kind == VariableUnset && p.At.Line == value.at.Line && p.At.Part == value.at.Part {
			return
		}
	}
	s.r.problem(ValueMissing, Likely, s.r.scriptHarm(), value.at, "%s has no value and takes %s for it", option, value.text).
		with("write its value behind it", "")
}

// extra takes the arguments of the kubelet the way that they go: into a line
// Environment='KUBELET_EXTRA_ARGS=…' of a systemd unit, and from there, split
// into words, into the command line.
func (s *shCall) extra(extra word) {
	if strings.Contains(extra.text, "'") {
		s.r.problem(ArgumentsLost, Certain, JoinsAmiss, extra.at,
			"the kubelet's arguments have a single quote in them, at which systemd stops to read them, and the kubelet gets none").
			with("take the inner quotes out: no argument needs them", "")
		if fix := s.corrected(strings.ReplaceAll(extra.text, "'", "")); fix != "" {
			s.r.out.Problems[len(s.r.out.Problems)-1].Write = fix
		}
		return
	}
	for _, name := range extra.unset {
		s.r.problem(VariableUnset, Certain, JoinsAmiss, extra.at, "%s is set nowhere in the user data, so it is empty in the kubelet's arguments", variable(name)).
			with("set it before, or take it out", "")
	}
	s.start.hidden = extra.isVague()
	where := extra.at
	if i := s.spans[extraArgs]; extra.whole && i < len(s.c.spans) {
		where = inner(s.c.spans[i], where)
	}
	for _, one := range split(extra.text) {
		spot := extra.at
		if extra.whole {
			spot = moved(where, extra.text[:one.from])
		}
		s.start.flags = append(s.start.flags, flag{text: strings.ReplaceAll(one.text, mark, "…"), at: spot})
	}
}

// moved is the place after some text.
func moved(from Spot, over string) Spot {
	if lines := strings.Count(over, "\n"); lines > 0 {
		from.Line += lines
		from.Column = len(over) - strings.LastIndexByte(over, '\n')
		return from
	}
	from.Column += len(over)
	return from
}

// splitWord is a word, and where it begins.
type splitWord struct {
	text string
	from int
}

// split splits a line as systemd does, and as a POSIX shell does as far as
// nothing is to be expanded: at blanks, quotes taken off.
func split(line string) []splitWord {
	var out []splitWord
	var word strings.Builder
	from, inWord := 0, false
	begin := func(i int) {
		if !inWord {
			from, inWord = i, true
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			begin(i)
			i++
			word.WriteByte(line[i])
		case c == '\'' || c == '"':
			begin(i)
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				end = len(line) - i - 1
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inWord {
				out = append(out, splitWord{word.String(), from})
				word.Reset()
			}
			inWord = false
		default:
			begin(i)
			word.WriteByte(c)
		}
	}
	if inWord {
		out = append(out, splitWord{word.String(), from})
	}
	return out
}

func words(line string) []string {
	var out []string
	for _, one := range split(line) {
		out = append(out, one.text)
	}
	return out
}
