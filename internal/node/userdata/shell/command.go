package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// call processes the simple command of the statement s, or its assignments if it has no command. input is the standard
// input of the command.
func (w *walker) call(c *syntax.CallExpr, s *syntax.Stmt, sure bool, input userdata.Text) {
	at := w.position(c.Pos())
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			w.assign(a)
		}
		return
	}
	cmd := command{at: at, sure: sure, input: input}
	for _, arg := range c.Args {
		for _, word := range w.vars.Fields(arg, w.position(arg.Pos())) {
			if w.nounset && sure && len(word.Unset) > 0 && !hasDefault(arg) {
				w.end(word.At, "the script ends here, because "+userdata.Variable(word.Unset[0])+" is not set and set -u is on")
			}
			cmd.words, cmd.sources = append(cmd.words, word), append(cmd.sources, arg)
		}
	}
	if w.ended == nil {
		w.do(cmd, s)
	}
}

// hasDefault reports whether a word contains an expansion such as ${NAME:-default}, which set -u accepts.
func hasDefault(arg *syntax.Word) bool {
	found := false
	syntax.Walk(arg, func(n syntax.Node) bool {
		p, ok := n.(*syntax.ParamExp)
		found = found || ok && p.Exp != nil
		return true
	})
	return found
}

// wrappers are commands that run the command in their arguments.
var wrappers = []string{"sudo", "exec", "command", "env", "nohup", "time", "eval", "nice", "stdbuf", "bash", "sh",
	"timeout", "retry", "unbuffer"}

// do processes a command whose words are expanded: a function, a start of the kubelet, a wrapper, a builtin, or another
// program that may write files.
func (w *walker) do(c command, s *syntax.Stmt) {
	words := slices.DeleteFunc(slices.Clone(c.words), func(word userdata.Word) bool { return word.Text == userdata.EmptyExpansion })
	if len(words) == 0 {
		return
	}
	name := words[0].Text
	rest := words[1:]
	if body, ok := w.funcs[name]; ok {
		if w.callDepth < maxCallDepth {
			w.callDepth++
			w.stmt(body, c.sure, c.input)
			w.callDepth--
		}
		return
	}
	switch base := path.Base(name); {
	case base == "bootstrap.sh":
		readBootstrapCall(w.r, c)
	case base == "nodeadm":
		readNodeadmCall(w.r, c)
	case slices.Contains(wrappers, base) && len(rest) > 0:
		w.doWrapped(base, c, rest, s)
	case !w.builtin(name, c, rest, s):
		w.recordWrites(base, c, s)
	}
}

// builtin processes tests and commands that change the shell itself. rest are the arguments. It returns false for other
// commands.
func (w *walker) builtin(name string, c command, rest []userdata.Word, s *syntax.Stmt) bool {
	switch name {
	case "source", ".":
		w.vars.Foreign = true
		recordStartFileChanges(w.r, rest, c.at)
	case "exit":
		if c.sure {
			w.end(c.at, "the script ends here")
		}
	case "false", "test", "[":
		w.endAtFailedTest(s, c.sure)
	case "set", "unset", "read", "mapfile", "readarray":
		for _, word := range rest {
			w.changeSetting(name, word.Text)
		}
	default:
		return false
	}
	return true
}

// changeSetting processes one argument of the command name: set, unset, read, mapfile or readarray.
func (w *walker) changeSetting(name, argument string) {
	switch name {
	case "set":
		w.option(argument)
	case "unset":
		delete(w.vars.Set, argument)
	default:
		w.vars.Assign(argument, userdata.UnknownText)
	}
}

// doWrapped processes the command in the arguments rest of a wrapper, such as sudo. base is the wrapper's name.
func (w *walker) doWrapped(base string, c command, rest []userdata.Word, s *syntax.Stmt) {
	if base == "eval" {
		w.vars.Foreign = true
	}
	hasScript := slices.ContainsFunc(rest, func(word userdata.Word) bool { return word.Text == "-c" })
	if (base == "bash" || base == "sh") && hasScript {
		w.r.Unevaluated = append(w.r.Unevaluated, "the command at "+c.at.String()+" is a script within a script")
		return
	}
	skip := len(c.words) - len(rest) // the wrapper, and words before rest that expand to nothing
	for i, word := range rest {
		isAssignment := base == "env" && strings.Contains(word.Text, "=")
		isDuration := base == "timeout" && i == 0
		if strings.HasPrefix(word.Text, "-") || isAssignment || isDuration {
			continue
		}
		inner := c
		inner.words, inner.sources = c.words[skip+i:], c.sources[skip+i:]
		w.do(inner, s)
		if base == "exec" && c.sure {
			w.end(c.at, "the script ends here, because exec replaces it with another program")
		}
		return
	}
}

// recordWrites records the files that a command writes, and arguments that name a file on which the kubelet's start
// depends. base is the name of the program.
func (w *walker) recordWrites(base string, c command, s *syntax.Stmt) {
	output, known := w.output(base, c)
	for _, target := range w.targets(base, c, s) {
		if known {
			kubelet.RecordWritten(w.r, target, output)
		}
		if known && !w.appends(s) {
			w.r.Files[target] = output
		} else {
			w.r.Files[target] = userdata.Text{Vague: true, Body: userdata.UnknownText, At: c.at}
		}
		if !known || !kubelet.SetsProxies(output) { // kubelet.JudgeProxy evaluates proxies
			RecordStartFileChange(w.r, target, c.at)
		}
	}
	// These commands change none of the files in their arguments, or targets has returned the file.
	if !slices.Contains([]string{"cat", "tee", "echo", "grep", "ls", "stat", "test", "logger", "printf", "mkdir"}, base) {
		recordStartFileChanges(w.r, c.words[1:], c.at)
	}
}

// output returns the standard output of a command; false if the script does not determine it, or if it is too long.
func (w *walker) output(base string, c command) (userdata.Text, bool) {
	switch base {
	case "cat", "tee":
		return c.input, c.input.Body != ""
	case "echo":
		var words []string
		for _, word := range c.words[1:] {
			if word.Text != userdata.EmptyExpansion && !strings.HasPrefix(word.Text, "-") {
				words = append(words, word.Text)
			}
		}
		body := strings.Join(words, " ") + "\n"
		out := userdata.Text{Body: body, At: c.at, Vague: strings.Contains(body, userdata.UnknownText)}
		if len(c.words) > 1 {
			out.At = c.words[len(c.words)-1].At
		}
		return out, len(body) < userdata.MaxUnpacked
	}
	return userdata.Text{}, false
}

func (w *walker) pipedOutput(s *syntax.Stmt) userdata.Text {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return userdata.Text{}
	}
	cmd := command{at: w.position(c.Pos())}
	cmd.input, _ = w.hereDocument(s)
	for _, arg := range c.Args {
		cmd.words = append(cmd.words, w.vars.Fields(arg, w.position(arg.Pos()))...)
	}
	out, _ := w.output(path.Base(cmd.words[0].Text), cmd)
	return out
}

// targets returns the files that a command writes.
func (w *walker) targets(base string, c command, s *syntax.Stmt) []string {
	var out []string
	for _, redirect := range s.Redirs {
		if redirect.Op == syntax.RdrOut || redirect.Op == syntax.AppOut || redirect.Op == syntax.RdrClob {
			out = append(out, w.vars.Literal(redirect.Word))
		}
	}
	if base == "tee" {
		for _, word := range c.words[1:] {
			if !strings.HasPrefix(word.Text, "-") {
				out = append(out, word.Text)
			}
		}
	}
	return out
}

func (w *walker) appends(s *syntax.Stmt) bool {
	return slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return r.Op == syntax.AppOut })
}

// hereDocument returns the here-document or here-string of a statement; false if there is none.
func (w *walker) hereDocument(s *syntax.Stmt) (userdata.Text, bool) {
	for _, redirect := range s.Redirs {
		switch redirect.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if redirect.Hdoc == nil {
				return userdata.Text{}, false
			}
			body := w.vars.Document(redirect.Hdoc)
			if redirect.Op == syntax.DashHdoc {
				body = strings.ReplaceAll("\n"+body, "\n\t", "\n")[1:]
			}
			at := w.position(redirect.Hdoc.Pos())
			return userdata.Text{Body: body, At: at, Vague: strings.Contains(body, userdata.UnknownText)}, true
		case syntax.WordHdoc:
			body := w.vars.Literal(redirect.Word)
			return userdata.Text{Body: body + "\n", At: w.position(redirect.Word.Pos()), Vague: strings.Contains(body, userdata.UnknownText)}, true
		default:
		}
	}
	return userdata.Text{}, false
}

// assign processes an assignment. Arrays are known only on the instance.
func (w *walker) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	if a.Array != nil || a.Index != nil {
		w.vars.Assign(a.Name.Value, userdata.UnknownText)
		return
	}
	value := w.vars.Literal(a.Value)
	if a.Append {
		old, ok := w.vars.Set[a.Name.Value]
		if !ok && w.vars.Foreign {
			old = userdata.UnknownText
		}
		value = old + value
	}
	w.vars.Assign(a.Name.Value, value)
}

// declare processes the assignments of export, declare, local and similar commands.
func (w *walker) declare(c *syntax.DeclClause) {
	for _, a := range c.Args {
		w.assign(a)
	}
}

// option processes one argument of the command set, or of the interpreter in the first line: -e and -u turn an option
// on, +e and +u turn it off.
func (w *walker) option(option string) {
	on := strings.HasPrefix(option, "-")
	switch option {
	case "errexit":
		w.errexit = true
	case "nounset":
		w.nounset = true
	}
	if (!on && !strings.HasPrefix(option, "+")) || strings.HasPrefix(option, "--") {
		return
	}
	if strings.Contains(option, "e") {
		w.errexit = on
	}
	if strings.Contains(option, "u") {
		w.nounset = on
	}
}

// startFiles are prefixes of the paths of files on which the kubelet's start depends.
var startFiles = []string{"/etc/eks/bootstrap.sh", "/etc/systemd/system/kubelet", "/etc/kubernetes/kubelet/",
	"/var/lib/kubelet/config", "/etc/default/kubelet", "/etc/sysconfig/kubelet"}

// RecordStartFileChange records in r.Unevaluated that the script changes the file, if the kubelet's start depends on
// the file.
func RecordStartFileChange(r *userdata.Reader, file string, position userdata.Position) {
	if slices.ContainsFunc(startFiles, func(prefix string) bool { return strings.HasPrefix(file, prefix) }) {
		r.Unevaluated = append(r.Unevaluated, "the script changes, at "+position.String()+", files that the kubelet is started with")
	}
}

func recordStartFileChanges(r *userdata.Reader, words []userdata.Word, position userdata.Position) {
	for _, word := range words {
		RecordStartFileChange(r, word.Text, position)
	}
}
