package reading

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
	"github.com/joiner-sh/joiner/internal/node/userdata/shell"
)

// callRewrite is a call of bootstrap.sh that is being rewritten.
type callRewrite struct {
	in      userdata.Input
	own     string      // the whole script
	drop    string      // a flag of the kubelet to remove, without dashes
	cluster string      // the cluster's name as written in the script
	options [][2]string // options of bootstrap.sh and their values, as written in the script
	kubelet []string    // arguments of the kubelet
	first   string      // arguments of the kubelet to write before the others, each followed by a blank
}

// rewriteCall returns the script with a corrected call of bootstrap.sh. Each option is a separate word. The kubelet's
// arguments are in one pair of quotes, with the startup taint, and without drop and unknown flags. ok is false if the
// script has no call. It is also false if the call has words that are known only on the instance or cannot be quoted.
func rewriteCall(in userdata.Input, own, drop string) (text string, ok bool) {
	args := bootWords(own)
	if args == nil {
		return "", false
	}
	c := &callRewrite{in: in, own: own, drop: drop}
	if !c.parse(args[1:]) {
		return "", false
	}
	call, ok := c.write(c.source(args[0]))
	from, to := args[0].Pos().Offset(), args[len(args)-1].End().Offset()
	return own[:from] + call + own[to:], ok
}

// setMaxPods returns the user's script with a call of bootstrap.sh that sets max-pods, so that bootstrap.sh does not
// look up the number by the instance type. It returns the script unchanged if the call cannot be rewritten.
func setMaxPods(in userdata.Input, pods int) string {
	args := bootWords(in.Own)
	if args == nil {
		return in.Own
	}
	c := &callRewrite{in: in, own: in.Own, drop: "max-pods"}
	if !c.parse(args[1:]) {
		return in.Own
	}
	const lookUp = "--use-max-pods"
	c.options = slices.DeleteFunc(c.options, func(o [2]string) bool { return o[0] == lookUp })
	c.options, c.first = append(c.options, [2]string{lookUp, "false"}), "--max-pods="+strconv.Itoa(pods)+" "
	call, ok := c.write(c.source(args[0]))
	if !ok {
		return in.Own
	}
	return in.Own[:args[0].Pos().Offset()] + call + in.Own[args[len(args)-1].End().Offset():]
}

// parseScript parses a script. It returns nil if the shell could not parse it.
func parseScript(own string) *syntax.File {
	if len(own) > shell.MaxScript || shell.Nesting(own) > shell.MaxBraces {
		return nil
	}
	file, err := userdata.CatchPanic(func() (*syntax.File, error) {
		return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(own), "")
	})
	if err != nil {
		return nil
	}
	return file
}

// bootWords returns the words of the first call of bootstrap.sh, including the program; nil if there is no call.
func bootWords(own string) (found []*syntax.Word) {
	file := parseScript(own)
	if file == nil {
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || found != nil {
			return found == nil
		}
		if i := slices.IndexFunc(call.Args, func(w *syntax.Word) bool { return path.Base(w.Lit()) == "bootstrap.sh" }); i >= 0 {
			found = call.Args[i:]
		}
		return true
	})
	return found
}

// source returns a word as written in the script.
func (c *callRewrite) source(w *syntax.Word) string {
	return c.own[w.Pos().Offset():w.End().Offset()]
}

// parse parses the words of the call after the program. It returns false if a word of an option is known only on the
// instance.
func (c *callRewrite) parse(args []*syntax.Word) bool {
	for i := 0; i < len(args); i++ {
		text, isLiteral := literalText(args[i])
		name, value, assigned := strings.Cut(text, "=")
		raw, rawValue, rawAssigned := strings.Cut(c.source(args[i]), "=") // as written in the script
		option := similarOption(name)
		isOption := isLiteral && slices.Contains(shell.ShOptions, option)
		switch {
		case rawAssigned && slices.Contains(shell.ShOptions, raw) && raw != kubelet.ExtraArgs:
			c.options = append(c.options, [2]string{raw, rawValue})
		case !isLiteral && strings.HasPrefix(raw, "-"):
			return false
		case isOption && assigned: // ExtraArgs, or a misspelt or quoted option
			c.add(option, "'"+value+"'", value)
		case isOption:
			used, ok := c.addWithValue(option, args[i+1:])
			if !ok {
				return false
			}
			i += used
		case isLiteral && strings.Contains(text, "--"):
			i += c.addStray(text, args[i+1:])
		case c.cluster == "":
			c.cluster = c.source(args[i])
		}
	}
	return true
}

// similarOption returns the option of bootstrap.sh that name probably misspells. It returns name itself if name is an
// option or a flag of the kubelet, or if no option is similar.
func similarOption(name string) string {
	if slices.Contains(shell.ShOptions, name) || !strings.HasPrefix(name, "--") || kubelet.KnownFlag(name[2:]) {
		return name
	}
	if near := userdata.Nearest(name, shell.ShOptions); near != "" {
		return near
	}
	return name
}

// addWithValue records an option whose value is the first of the words after it, and returns how many of these words it
// used. It returns false if the option is ExtraArgs and its value is known only on the instance.
func (c *callRewrite) addWithValue(option string, after []*syntax.Word) (used int, ok bool) {
	if len(after) == 0 {
		return 0, true
	}
	next, isLiteral := literalText(after[0])
	switch {
	case slices.Contains(shell.ShOptions, next):
		return 0, true // the option has no value
	case !isLiteral && option == kubelet.ExtraArgs:
		return 0, false
	}
	c.add(option, c.source(after[0]), next)
	return 1, true
}

// addStray records an argument of the kubelet that is among the options of bootstrap.sh, and returns how many of the
// following words are its value.
func (c *callRewrite) addStray(text string, after []*syntax.Word) int {
	c.kubelet = append(c.kubelet, userdata.Words(text)...)
	if strings.Contains(text, "=") || len(after) == 0 || kubelet.IsSwitch(strings.TrimLeft(text, "-")) {
		return 0
	}
	next, isLiteral := literalText(after[0])
	if !isLiteral || strings.HasPrefix(next, "-") {
		return 0
	}
	c.kubelet = append(c.kubelet, next)
	return 1
}

// add records an option with its value. source is the value as written in the script, text the value itself, which is
// used only for the kubelet's arguments.
func (c *callRewrite) add(option, source, text string) {
	if option == kubelet.ExtraArgs {
		c.kubelet = append(c.kubelet, userdata.Words(text)...)
		return
	}
	c.options = append(c.options, [2]string{option, source})
}

// write returns the rewritten call of program. It returns false if the name of the cluster is unknown, or if an
// argument of the kubelet cannot be written between single quotes.
func (c *callRewrite) write(program string) (string, bool) {
	if text, isLiteral := parseLiteral(c.cluster); c.in.Cluster != "" && isLiteral && text != c.in.Cluster {
		c.cluster = c.in.Cluster
	}
	if c.cluster == "" {
		return "", false
	}
	out := []string{program, c.cluster}
	for _, o := range c.options {
		text, isLiteral := parseLiteral(o[1])
		switch {
		case o[0] == "--b64-cluster-ca" && isLiteral && c.in.CA != "" && !sameAuthority(text, c.in.CA):
			o[1] = c.in.CA
		case o[0] == "--apiserver-endpoint" && isLiteral && c.in.Endpoint != "" && !strings.EqualFold(text, c.in.Endpoint):
			o[1] = c.in.Endpoint
		}
		out = append(out, o[0], o[1])
	}
	flags := c.first + strings.Join(correctArguments(c.in, c.kubelet, c.drop), " ")
	return strings.Join(append(out, kubelet.ExtraArgs, "'"+flags+"'"), " "), !strings.ContainsAny(flags, "'\n")
}

// correctArguments returns the arguments of the kubelet with the startup taint, without drop, and without those that
// the kubelet does not accept. A misspelt flag gets the nearest known name.
func correctArguments(in userdata.Input, all []string, drop string) []string {
	var flags []userdata.Flag
	for _, text := range all {
		flags = append(flags, userdata.Flag{Text: text})
	}
	args, _ := kubelet.Arguments(flags)
	var out, taints []string
	minor := kubelet.Minor((&userdata.Reader{In: in})) // 0: unknown, for which all removed flags are left out
	for _, a := range args {
		if removedIn, isRemoved := kubelet.Removed[a.Name]; a.Name == drop || isRemoved && (minor == 0 || minor >= removedIn) {
			continue
		}
		if !kubelet.KnownFlag(a.Name) {
			if a.Name = userdata.Nearest(a.Name, strings.Fields(kubelet.Switches+kubelet.Values)); a.Name == "" {
				continue
			}
		}
		switch {
		case a.Name == "register-with-taints":
			taints = append(taints, strings.Split(a.Value, ",")...)
			continue
		case a.Name == "node-labels":
			if a.Value = allowedLabels(a.Value); a.Value == "" {
				continue
			}
		case !a.HasValue && !kubelet.IsSwitch(a.Name):
			continue
		}
		flag := "--" + a.Name
		if a.HasValue {
			flag += "=" + a.Value
		}
		out = append(out, flag)
	}
	return append(out, "--register-with-taints="+
		strings.Join(kubelet.CorrectTaints(slices.DeleteFunc(taints, func(t string) bool { return t == "" })), ","))
}

// allowedLabels returns the labels of a list that a kubelet is allowed to set.
func allowedLabels(labels string) string {
	var out []string
	for _, label := range strings.Split(labels, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(label), "=")
		if ok && kubelet.IsKey(key) && (value == "" || kubelet.IsLabelValue(value)) &&
			(!kubelet.IsKubernetes(key) || kubelet.IsKubeletsOwn(key)) {
			out = append(out, key+"="+value)
		}
	}
	return strings.Join(out, ",")
}

// parseLiteral parses source as one word, and returns the result of literalText for this word. For an empty source it
// returns "" and true.
func parseLiteral(source string) (string, bool) {
	var out *syntax.Word
	_, err := userdata.CatchPanic(func() (any, error) {
		for w, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).WordsSeq(strings.NewReader(source)) {
			if err != nil {
				return nil, err
			}
			out = w
		}
		return nil, nil
	})
	if err != nil || out == nil {
		return "", source == ""
	}
	return literalText(out)
}

// literalText returns the text of a word. It returns false if the shell expands anything in the word.
func literalText(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(strings.ReplaceAll(lit.Value, `\"`, `"`))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// replaceCalls returns a script in which change has been applied to each call of a program, directly or as the first
// argument of a wrapper such as sudo.
func replaceCalls(own, program string, change func(string) string) string {
	file := parseScript(own)
	if file == nil {
		return own
	}
	type span struct{ from, to uint }
	var spans []span
	syntax.Walk(file, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		call, ok := s.Cmd.(*syntax.CallExpr)
		if ok && slices.ContainsFunc(call.Args[:min(2, len(call.Args))],
			func(w *syntax.Word) bool { return path.Base(w.Lit()) == path.Base(program) }) {
			spans = append(spans, span{call.Pos().Offset(), call.End().Offset()})
		}
		return true
	})
	for _, s := range slices.Backward(spans) { // from the end, so that earlier offsets stay valid
		own = own[:s.from] + change(own[s.from:s.to]) + own[s.to:]
	}
	return own
}

// shorten returns a script without comments and other text that the shell does not need; it returns any other form of
// user data unchanged.
func shorten(own string) string {
	first, body, _ := strings.Cut(own, "\n")
	file := parseScript(body)
	if file == nil || userdata.FormOf(own) != userdata.FormScript {
		return own
	}
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, file); err != nil {
		return own
	}
	return first + "\n" + b.String()
}
