package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// holds returns whether a statement succeeds. known is false unless the statement is true, false or a test of known
// texts.
func (w *walker) holds(s *syntax.Stmt) (holds, known bool) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		holds, known = w.callHolds(c)
	case *syntax.TestClause:
		holds, known = w.exprHolds(c.X)
	}
	return holds != s.Negated, known
}

// callHolds does the same as holds for a simple command.
func (w *walker) callHolds(c *syntax.CallExpr) (holds, known bool) {
	if len(c.Args) == 0 {
		return false, false
	}
	name := c.Args[0].Lit()
	switch name {
	case "true", ":":
		return true, true
	case "false":
		return false, true
	case "[", "test":
	default:
		return false, false
	}
	var words []string
	for _, arg := range c.Args[1:] {
		for _, one := range w.vars.Fields(arg, userdata.Spot{}) {
			if one.IsVague() {
				return false, false
			}
			if one.Text != userdata.Vanished {
				words = append(words, one.Text)
			}
		}
	}
	if name == "[" && len(words) > 0 {
		words = words[:len(words)-1]
	}
	return testHolds(words)
}

// testHolds evaluates the words of the command test. Tests of files are unknown.
func testHolds(words []string) (holds, known bool) {
	if len(words) > 1 && words[0] == "!" {
		holds, known = testHolds(words[1:])
		return !holds, known
	}
	switch len(words) {
	case 0:
		return false, true
	case 1:
		return words[0] != "", true
	case 2:
		switch words[0] {
		case "-z":
			return words[1] == "", true
		case "-n":
			return words[1] != "", true
		}
	case 3:
		switch words[1] {
		case "=", "==":
			return words[0] == words[2], true
		case "!=":
			return words[0] != words[2], true
		}
	}
	return false, false
}

// exprHolds evaluates the expression between [[ and ]]. known is false unless it is a test of known texts.
func (w *walker) exprHolds(x syntax.TestExpr) (holds, known bool) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		return w.exprHolds(x.X)
	case *syntax.Word:
		text := w.vars.Literal(x)
		return text != "", !strings.Contains(text, userdata.Mark)
	case *syntax.UnaryTest:
		return w.unaryHolds(x)
	case *syntax.BinaryTest:
		left, ok := x.X.(*syntax.Word)
		right, ok2 := x.Y.(*syntax.Word)
		if !ok || !ok2 {
			return false, false
		}
		a, b := w.vars.Literal(left), w.vars.Literal(right)
		if strings.Contains(a+b, userdata.Mark) || strings.ContainsAny(b, `*?[\`) {
			return false, false
		}
		switch x.Op {
		case syntax.TsMatch, syntax.TsMatchShort:
			return a == b, true
		case syntax.TsNoMatch:
			return a != b, true
		default:
		}
	}
	return false, false
}

// unaryHolds evaluates a negation, -z or -n in such an expression.
func (w *walker) unaryHolds(x *syntax.UnaryTest) (holds, known bool) {
	if x.Op == syntax.TsNot {
		holds, known = w.exprHolds(x.X)
		return !holds, known
	}
	one, ok := x.X.(*syntax.Word)
	if !ok || x.Op != syntax.TsEmpStr && x.Op != syntax.TsNempStr {
		return false, false
	}
	text := w.vars.Literal(one)
	return (text == "") == (x.Op == syntax.TsEmpStr), !strings.Contains(text, userdata.Mark)
}
