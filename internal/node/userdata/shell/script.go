// Package shell follows a shell script to the commands that start the kubelet: bootstrap.sh of AL2, and nodeadm.
//
// In: a userdata.Reader and a script.
// Out: starts of the kubelet and problems, added to the Reader.
// Never: running a command; a value that may be a secret in a problem.
package shell

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// Limits on following a script.
const (
	MaxScript    = 1 << 17 // bytes
	MaxBraces    = 200     // depth that Nesting returns
	maxSteps     = 20000   // commands, counting each call of a function
	maxCallDepth = 6       // depth of function calls
)

// walker follows a script without running it. It tracks the values of variables, the written files, and which commands
// run in any case.
type walker struct {
	r     *userdata.Reader
	part  int // number of the script's part in the user data
	vars  *userdata.Variables
	funcs map[string]*syntax.Stmt // bodies of functions, by name

	errexit, nounset bool               // set -e and set -u are on
	steps, callDepth int                // number of commands so far, and current depth of function calls
	ended            *userdata.Position // where the script certainly ends; nil: no end found so far
	endReason        string             // why the script ends there, for a problem
}

// command is one command of a script.
type command struct {
	words   []userdata.Word // the program and its arguments
	sources []*syntax.Word  // for each of words, the word of the script from which it was expanded
	at      userdata.Position
	sure    bool          // the command runs in any case
	input   userdata.Text // standard input, if the script contains it
}

// ReadScript reads one script. A script for another interpreter than a shell is only recorded in r.Unevaluated.
func ReadScript(r *userdata.Reader, p userdata.Part) {
	body := p.Text.Body
	at := p.Text.At
	first, _, _ := strings.Cut(body, "\n")
	hasInterpreter := strings.HasPrefix(body, "#!")
	switch {
	case hasInterpreter && strings.HasSuffix(first, "\r"):
		r.Report(userdata.ScriptBroken, userdata.Certain, r.ScriptHarm(), at,
			"its lines end with carriage returns, so Linux finds no interpreter for the script").
			Suggest("end each line with a line feed alone", "")
		return
	case !hasInterpreter && slices.Contains([]string{userdata.FormBottlerocket, userdata.FormPowerShell}, userdata.FormOf(body)):
		r.ReportUnknownPart(p)
		return
	case !hasInterpreter && userdata.FormOf(body) == userdata.FormNodeConfig && r.System() == catalog.AL2:
		r.ReportNodeConfigOnAL2(at)
		return
	case !hasInterpreter && p.Kind == userdata.TypeScript:
		r.Report(userdata.ScriptBroken, userdata.Certain, r.ScriptHarm(), at, "the script does not begin with #!, so it is not run").
			Suggest("begin it with", "#!/bin/bash")
		return
	case p.Kind == userdata.TypeBoothook: // needs no interpreter
	case !isShell(first):
		r.Unevaluated = append(r.Unevaluated, "the script at "+at.String()+" is not a shell script")
		return
	}
	w := &walker{r: r, part: at.Part, vars: &userdata.Variables{Set: map[string]string{}}, funcs: map[string]*syntax.Stmt{}}
	if interpreter, ok := strings.CutPrefix(first, "#!"); ok {
		for i, word := range strings.Fields(interpreter) {
			if i > 0 {
				w.option(word)
			}
		}
	}
	w.run(body)
}

// isShell reports whether the first line of a script names a shell as its interpreter.
func isShell(first string) bool {
	words := strings.Fields(strings.TrimPrefix(first, "#!"))
	if len(words) == 0 {
		return false
	}
	name := path.Base(words[0])
	if name == "env" && len(words) > 1 {
		name = words[len(words)-1]
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") {
				name = path.Base(w)
				break
			}
		}
	}
	return slices.Contains([]string{"sh", "bash", "dash", "ash"}, name)
}

// run parses the script and follows it, up to the first statement that cannot be parsed.
func (w *walker) run(body string) {
	if len(body) > MaxScript || Nesting(body) > MaxBraces {
		w.r.Unevaluated = append(w.r.Unevaluated, "a script is too long, or too deep, to be read")
		return
	}
	var stmts []*syntax.Stmt
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	var parseErr error
	for s, err := range parser.StmtsSeq(strings.NewReader(body)) {
		if err != nil {
			parseErr = err
			break
		}
		stmts = append(stmts, s)
	}
	before := len(w.r.Starts)
	w.stmts(stmts, true)
	if parseErr != nil {
		w.reportBroken(parseErr, len(w.r.Starts) > before)
		return
	}
	if w.ended != nil && len(w.r.Starts) == before {
		w.reportUnreached(stmts)
	}
}

// reportBroken reports where the shell stops parsing the script. The shell runs the commands before that position.
// isStarted is true if one of these commands starts the kubelet.
func (w *walker) reportBroken(err error, isStarted bool) {
	position, what := userdata.Position{Part: w.part}, "the shell cannot parse the script from here on"
	certainty, harm := userdata.Likely, w.r.ScriptHarm()
	var parseErr syntax.ParseError
	if errors.As(err, &parseErr) {
		position.Line, position.Column = int(parseErr.Pos.Line()), int(parseErr.Pos.Col())
		switch {
		case strings.Contains(parseErr.Text, "without closing quote"):
			certainty, what = userdata.Certain, "the quote that is opened here is never closed, so the quoted text extends to the end of the script"
		case strings.Contains(parseErr.Text, "here-document"):
			what = "the here-document that begins here is never ended"
		}
	}
	if isStarted {
		certainty = userdata.Likely
	}
	w.r.Report(userdata.ScriptBroken, certainty, harm, position, "%s", what).Suggest("close it", "")
	if !strings.Contains(what, "quote") && !strings.Contains(what, "here-") { // there is nothing to close
		w.r.Out.Problems[len(w.r.Out.Problems)-1].Fix = "try it with bash -n"
	}
}

// reportUnreached reports a script that ends, at w.ended, before it calls bootstrap.sh.
func (w *walker) reportUnreached(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 || path.Base(call.Args[0].Lit()) != "bootstrap.sh" {
				return true
			}
			line := int(call.Pos().Line())
			if line <= w.ended.Line {
				return true
			}
			harm := w.r.ScriptHarm()
			w.r.Report(userdata.NeverReached, userdata.Certain, harm, *w.ended, "%s, before it starts the kubelet in line %d", w.endReason, line).
				Suggest("remove that, or move it after the start", "")
			return false
		})
	}
}

// end records that the script ends at position, if it does not end earlier. why is the text for a problem.
func (w *walker) end(position userdata.Position, why string) {
	if w.ended == nil {
		w.ended, w.endReason = &position, why
	}
}

// stmts follows statements until the script ends. sure is true if they run in any case.
func (w *walker) stmts(all []*syntax.Stmt, sure bool) {
	for _, s := range all {
		if w.ended != nil {
			return
		}
		w.stmt(s, sure, userdata.Text{})
	}
}

// stmt follows one statement. sure is true if it runs in any case; input is its standard input.
func (w *walker) stmt(s *syntax.Stmt, sure bool, input userdata.Text) {
	if w.steps++; w.steps > maxSteps || s.Cmd == nil {
		return
	}
	if doc, ok := w.hereDocument(s); ok {
		input = doc
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(c, s, sure, input)
	case *syntax.DeclClause:
		w.declare(c)
	case *syntax.BinaryCmd:
		w.binary(c, sure, input)
	case *syntax.FuncDecl:
		if c.Name != nil {
			w.funcs[c.Name.Value] = c.Body
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt, sure, input)
		}
	case *syntax.TestClause:
		w.endAtFailedTest(s, sure)
	default:
		w.compound(c, sure)
	}
}

// compound follows the statements within a block, a subshell, an if, a loop or a case.
func (w *walker) compound(c syntax.Command, sure bool) {
	switch c := c.(type) {
	case *syntax.Block:
		w.stmts(c.Stmts, sure)
	case *syntax.Subshell:
		w.inSubshell(func(sub *walker) { sub.stmts(c.Stmts, sure) })
	case *syntax.IfClause:
		w.branch(c, sure)
	case *syntax.WhileClause:
		w.stmts(c.Cond, sure)
		w.conditionally(func() { w.stmts(c.Do, false) })
	case *syntax.ForClause:
		if each, ok := c.Loop.(*syntax.WordIter); ok {
			w.vars.Assign(each.Name.Value, userdata.UnknownText)
		}
		w.conditionally(func() { w.stmts(c.Do, false) })
	case *syntax.CaseClause:
		for _, item := range c.Items {
			w.conditionally(func() { w.stmts(item.Stmts, false) })
		}
	}
}

// inSubshell calls walk for a subshell. The variables of the subshell are not visible outside. An exit in the
// subshell does not end the script.
func (w *walker) inSubshell(walk func(*walker)) {
	sub := *w
	sub.vars = w.vars.Clone()
	walk(&sub)
	w.steps = sub.steps
}

// conditionally calls walk for commands that may not run. Afterwards, variables that these commands change are known
// only on the instance. An exit in these commands does not end the script.
func (w *walker) conditionally(walk func()) {
	before := w.vars.Clone()
	walk()
	w.ended = nil
	for name, value := range w.vars.Set {
		if old, ok := before.Set[name]; !ok || old != value {
			w.vars.Assign(name, userdata.UnknownText)
		}
	}
}

// branch follows an if, an elif or an else. If its condition is known, only the branch that runs is followed.
func (w *walker) branch(c *syntax.IfClause, sure bool) {
	if c.Cond == nil { // else
		w.stmts(c.Then, sure)
		return
	}
	w.stmts(c.Cond[:len(c.Cond)-1], sure) // the last statement is the condition
	succeeds, known := w.evaluate(c.Cond[len(c.Cond)-1])
	switch {
	case !known:
		w.followCondition(c.Cond[len(c.Cond)-1], sure)
		w.conditionally(func() { w.stmts(c.Then, false) })
		if c.Else != nil {
			w.conditionally(func() { w.branch(c.Else, false) })
		}
	case succeeds:
		w.stmts(c.Then, sure)
	case c.Else != nil:
		w.branch(c.Else, sure)
	}
}

// followCondition follows a condition that is a command. set -e does not apply to conditions.
func (w *walker) followCondition(s *syntax.Stmt, sure bool) {
	if _, ok := s.Cmd.(*syntax.TestClause); !ok {
		old := w.errexit
		w.errexit = false
		w.stmt(s, sure, userdata.Text{})
		w.errexit = old
	}
}

// binary follows a pipe, or two statements with && or || between.
func (w *walker) binary(c *syntax.BinaryCmd, sure bool, input userdata.Text) {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		output := w.pipedOutput(c.X)
		w.inSubshell(func(sub *walker) { sub.stmt(c.X, sure, input) })
		w.inSubshell(func(sub *walker) { sub.stmt(c.Y, sure, output) })
		return
	}
	succeeds, known := w.evaluate(c.X)
	if !known {
		w.followCondition(c.X, sure)
		if w.ended == nil {
			w.conditionally(func() { w.stmt(c.Y, false, userdata.Text{}) })
		}
		return
	}
	if succeeds == (c.Op == syntax.AndStmt) {
		w.stmt(c.Y, sure, userdata.Text{})
	}
}

// endAtFailedTest ends the script at a test that certainly runs and fails, if set -e is on.
func (w *walker) endAtFailedTest(s *syntax.Stmt, sure bool) {
	if succeeds, known := w.evaluate(s); sure && known && !succeeds && w.errexit {
		w.end(w.position(s.Pos()), "the script ends here, because the test fails and set -e is on")
	}
}

// position converts a position in the script to one in the user data.
func (w *walker) position(p syntax.Pos) userdata.Position {
	return userdata.Position{Part: w.part, Line: int(p.Line()), Column: int(p.Col())}
}

// Nesting returns an estimate of the nesting depth of brackets and backquotes. Each backquote counts as an opening
// bracket, brackets within quotes are included, and an empty line closes all brackets.
func Nesting(body string) int {
	depth, deepest := 0, 0
	for i := range len(body) {
		switch body[i] {
		case '(', '{', '`':
			depth++
			deepest = max(deepest, depth)
		case ')', '}':
			depth = max(depth-1, 0)
		case '\n':
			if strings.HasPrefix(body[i:], "\n\n") {
				depth = 0
			}
		}
	}
	return deepest
}
