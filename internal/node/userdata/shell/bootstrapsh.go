package shell

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// ShOptions are the options of /etc/eks/bootstrap.sh, each of which takes the next word as its value. bootstrap.sh
// recognizes an option only as a separate word: it ignores --option=value like any unknown argument.
// Source: templates/al2/runtime/bootstrap.sh of github.com/awslabs/amazon-eks-ami.
var ShOptions = []string{
	"--use-max-pods", "--b64-cluster-ca", "--apiserver-endpoint", "--kubelet-extra-args", "--enable-docker-bridge",
	"--aws-api-retry-attempts", "--docker-config-json", "--containerd-config-file", "--pause-container-account",
	"--pause-container-version", "--dns-cluster-ip", "--ip-family", "--service-ipv6-cidr", "--enable-local-outpost",
	"--cluster-id", "--mount-bpf-fs", "--local-disks", "--container-runtime",
}

// shCall is one call of bootstrap.sh, parsed like the script parses its arguments.
type shCall struct {
	r          *userdata.Reader
	command    command
	start      userdata.Start           // the resulting start of the kubelet
	options    map[string]userdata.Word // value of each option
	valueIndex map[string]int           // index of each option's value in command.words
	rest       []userdata.Word          // words that are neither options nor values
	endsEarly  bool                     // bootstrap.sh ends before it starts the kubelet
}

func readBootstrapCall(r *userdata.Reader, c command) {
	if r.System() == catalog.AL2023 {
		reportCallOnAL2023(r, c)
		return
	}
	call := &shCall{r: r, command: c, options: map[string]userdata.Word{}, valueIndex: map[string]int{}}
	call.start = userdata.Start{
		By: userdata.BySh, At: c.at, IsUnconditional: c.sure, Config: map[string]any{}, Positions: map[string]userdata.Position{},
	}
	first := len(r.Out.Problems)
	call.parse()
	call.reportStrayWords()
	call.fill()
	r.LowerCertainty(first, c.sure)
	if !call.endsEarly {
		r.Starts = append(r.Starts, call.start)
	}
}

// reportCallOnAL2023 reports a call of bootstrap.sh on AL2023, where it does not work.
func reportCallOnAL2023(r *userdata.Reader, c command) {
	certainty := userdata.Certain
	if !c.sure {
		certainty = userdata.Likely
	}
	r.Report(userdata.OtherFamily, certainty, r.ScriptHarm(), c.at,
		"%s does not work on an image of AL2023: it prints an error, and its arguments are lost", userdata.BySh).
		Suggest("write a NodeConfig for nodeadm instead, as a MIME part of type "+userdata.TypeNodeConfig, "")
}

// parse sets options and rest from the words after the program, like bootstrap.sh.
func (s *shCall) parse() {
	words := s.command.words[1:]
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.Text == userdata.EmptyExpansion: // the shell passes no word
		case w.Text == "-h" || w.Text == "--help":
			s.endsEarly = true
		case !slices.Contains(ShOptions, w.Text):
			s.rest = append(s.rest, w)
		default:
			j := i + 1
			for j < len(words) && words[j].Text == userdata.EmptyExpansion {
				j++
			}
			if j > i+1 {
				s.reportMissingValue(w, words[i+1])
			}
			if j == len(words) {
				if j == i+1 {
					s.reportMissingValue(w, userdata.Word{})
				}
				s.endsEarly = true
				return
			}
			s.options[w.Text], s.valueIndex[w.Text] = words[j], j+1 // +1, because words lacks the program
			i = j
		}
	}
}

// reportMissingValue reports an option without a value. value is the word that should be its value but expands to
// nothing, or the zero Word if there is no word.
func (s *shCall) reportMissingValue(option, value userdata.Word) {
	if len(value.Unset) > 0 {
		s.r.Report(userdata.VariableUnset, userdata.Certain, s.r.ScriptHarm(), value.At,
			"%s is set nowhere in the user data, so %s has no value and takes the word after it instead", userdata.Variable(value.Unset[0]),
			option.Text).
			Suggest(fmt.Sprintf("set it before, or leave %s out: without --apiserver-endpoint and --b64-cluster-ca the script asks EKS for both", option.Text), "")
		return
	}
	s.r.Report(userdata.ValueMissing, userdata.Certain, s.r.ScriptHarm(), option.At,
		"%s has no value, and the script ends with an error", option.Text).
		Suggest("write the value behind it as a word of its own", "")
}

// reportStrayWords reports the words of rest that are probably options or arguments of the kubelet.
func (s *shCall) reportStrayWords() {
	for i := 0; i < len(s.rest); i++ {
		w := s.rest[i]
		name, value, hasValue := strings.Cut(w.Text, "=")
		switch {
		case hasValue && slices.Contains(ShOptions, name):
			s.reportEqualsForm(w, name, value)
		case !strings.HasPrefix(w.Text, "-"):
			if i > 0 && strings.Contains(w.Text, "--") { // word 0 is the cluster's name
				s.reportOutside(w)
			}
		case kubelet.KnownFlag(strings.TrimLeft(name, "-")):
			s.reportOutside(w)
		case s.reportUnknownOption(w, name) == kubelet.ExtraArgs && i+1 < len(s.rest):
			i++ // the next word is the kubelet's arguments, behind a misspelt option
			s.r.Out.Problems[len(s.r.Out.Problems)-1].Write = s.correctExtraArgs(s.rest[i].Text)
		}
	}
}

// reportEqualsForm reports the form --option=value, which bootstrap.sh does not support.
func (s *shCall) reportEqualsForm(w userdata.Word, name, value string) {
	p := s.r.Report(userdata.ArgumentsLost, userdata.Certain, userdata.JoinsDifferently, w.At,
		"%s accepts %s only with its value as the next word: with = between them it ignores both, and the kubelet gets neither", userdata.BySh, name)
	p.Suggest("write them as two words", "")
	if name == kubelet.ExtraArgs {
		p.Write = s.correctExtraArgs(value)
	}
}

// reportOutside reports an argument of the kubelet that is outside of the word after ExtraArgs, the only word that
// bootstrap.sh passes on.
func (s *shCall) reportOutside(w userdata.Word) {
	name, _, _ := strings.Cut(w.Text, "=")
	if !strings.HasPrefix(name, "--") || !userdata.IsQuotable(name) {
		name = "an argument of the kubelet"
	}
	p := s.r.Report(userdata.ArgumentsLost, userdata.Certain, userdata.JoinsDifferently, w.At,
		"%s takes one word only, and %s is outside of it: a quote ends too early or is missing, and the kubelet never gets it", kubelet.ExtraArgs, name)
	p.Suggest("put all arguments of the kubelet between one pair of single quotes", "")
	var all []string
	if inside, ok := s.options[kubelet.ExtraArgs]; ok {
		all = append(all, inside.Text)
	}
	for _, word := range s.rest[min(1, len(s.rest)):] { // the first word is the cluster's name
		all = append(all, word.Text)
	}
	p.Write = s.correctExtraArgs(strings.Join(all, " "))
}

// reportUnknownOption reports an unknown option, and returns the nearest option of ShOptions; empty if none is near.
func (s *shCall) reportUnknownOption(w userdata.Word, name string) string {
	p := s.r.Report(userdata.OptionUnknown, userdata.Certain, userdata.JoinsDifferently, w.At,
		"%s has no option of this name and ignores it%s", userdata.BySh, userdata.InParentheses(name))
	near := userdata.Nearest(name, ShOptions)
	if near != "" {
		p.Suggest("write", near)
	}
	return near
}

// correctExtraArgs returns ExtraArgs with the arguments that kubelet.CorrectArguments returns; empty if there are none.
func (s *shCall) correctExtraArgs(arguments string) string {
	flags := strings.Join(kubelet.CorrectArguments(userdata.Words(arguments)), " ")
	if flags == "" {
		return ""
	}
	return kubelet.ExtraArgs + " '" + flags + "'"
}

// fill sets the fields of start from options and rest, and endsEarly if bootstrap.sh rejects them.
func (s *shCall) fill() {
	switch {
	case len(s.rest) > 0 && strings.HasPrefix(s.rest[0].Text, "-"):
		s.endsEarly = true
		s.r.Report(userdata.ValueMissing, userdata.Certain, s.r.ScriptHarm(), s.rest[0].At,
			"%s uses its first argument that is not an option as the cluster's name, but this is not a cluster name", userdata.BySh).
			Suggest("write the name of the cluster first", "")
	case len(s.rest) > 0:
		s.start.Cluster = s.rest[0].Value()
	case !s.endsEarly:
		s.endsEarly = true
		s.r.Report(userdata.ValueMissing, userdata.Certain, s.r.ScriptHarm(), s.command.at,
			"%s is called without the name of the cluster, and ends with an error", userdata.BySh).
			Suggest("write the name behind it", "")
	}
	s.start.Endpoint, s.start.CA = s.options["--apiserver-endpoint"].ValueOrNone(), s.options["--b64-cluster-ca"].ValueOrNone()
	s.reportSwallowedOptions()
	if dns, ok := s.options["--dns-cluster-ip"]; ok {
		s.start.Config["clusterDNS"] = []any{dns.Value().Text}
		s.start.Positions["clusterDNS"] = dns.At
	}
	if extra, ok := s.options[kubelet.ExtraArgs]; ok {
		s.addExtraArgs(extra)
	}
}

func (s *shCall) reportSwallowedOptions() {
	for _, option := range ShOptions {
		if value, ok := s.options[option]; ok && slices.Contains(ShOptions, value.Text) {
			s.reportSwallowedOption(option, value)
			if option == "--b64-cluster-ca" { // bootstrap.sh cannot decode the option as base64
				s.endsEarly = true
			}
		}
	}
}

// reportSwallowedOption reports an option whose value is another option, unless reportMissingValue has reported that
// line.
func (s *shCall) reportSwallowedOption(option string, value userdata.Word) {
	for _, p := range s.r.Out.Problems {
		if p.Kind == userdata.VariableUnset && p.At.Line == value.At.Line && p.At.Part == value.At.Part {
			return
		}
	}
	s.r.Report(userdata.ValueMissing, userdata.Likely, s.r.ScriptHarm(), value.At, "%s has no value and takes %s for it", option, value.Text).
		Suggest("write its value behind it", "")
}

// addExtraArgs adds the kubelet's arguments to start. On the instance they become a line
// Environment='KUBELET_EXTRA_ARGS=…' of a systemd unit, which systemd splits into words for the command line.
func (s *shCall) addExtraArgs(extra userdata.Word) {
	if strings.Contains(extra.Text, "'") {
		s.r.Report(userdata.ArgumentsLost, userdata.Certain, userdata.JoinsDifferently, extra.At,
			"the kubelet's arguments contain a single quote, at which systemd stops reading, and the kubelet gets none of them").
			Suggest("remove the inner quotes: no argument needs them", "")
		if fix := s.correctExtraArgs(strings.ReplaceAll(extra.Text, "'", "")); fix != "" {
			s.r.Out.Problems[len(s.r.Out.Problems)-1].Write = fix
		}
		return
	}
	for _, name := range extra.Unset {
		s.r.Report(userdata.VariableUnset, userdata.Certain, userdata.JoinsDifferently, extra.At,
			"%s is set nowhere in the user data, so it is empty in the kubelet's arguments", userdata.Variable(name)).
			Suggest("set it before, or remove it", "")
	}
	s.start.HasUnknownFlags = extra.IsVague()
	begin := extra.At
	if i := s.valueIndex[kubelet.ExtraArgs]; extra.IsLiteral && i < len(s.command.sources) {
		begin = userdata.Inner(s.command.sources[i], begin)
	}
	for _, word := range userdata.Split(extra.Text) {
		position := extra.At
		if extra.IsLiteral {
			position = userdata.PositionAfter(begin, extra.Text[:word.From])
		}
		s.start.Flags = append(s.start.Flags, userdata.Flag{Text: strings.ReplaceAll(word.Text, userdata.UnknownText, "…"), At: position})
	}
}
