package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// evaluate returns whether a statement succeeds. known is true only for the commands true, false and :, and for a test
// of known texts.
func (w *walker) evaluate(s *syntax.Stmt) (succeeds, known bool) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		succeeds, known = w.evaluateCall(c)
	case *syntax.TestClause:
		succeeds, known = w.evaluateExpr(c.X)
	}
	return succeeds != s.Negated, known
}

func (w *walker) evaluateCall(c *syntax.CallExpr) (succeeds, known bool) {
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
		for _, word := range w.vars.Fields(arg, userdata.Position{}) {
			if word.IsVague() {
				return false, false
			}
			if word.Text != userdata.EmptyExpansion {
				words = append(words, word.Text)
			}
		}
	}
	if name == "[" && len(words) > 0 {
		words = words[:len(words)-1] // without ]
	}
	return evaluateTest(words)
}

// evaluateTest evaluates the arguments of the command test. known is true only for a text alone, -z, -n, =, == and !=.
func evaluateTest(words []string) (succeeds, known bool) {
	if len(words) > 1 && words[0] == "!" {
		succeeds, known = evaluateTest(words[1:])
		return !succeeds, known
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

// evaluateExpr evaluates the expression between [[ and ]]. known is true only for a test of known texts.
func (w *walker) evaluateExpr(x syntax.TestExpr) (succeeds, known bool) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		return w.evaluateExpr(x.X)
	case *syntax.Word:
		text := w.vars.Literal(x)
		return text != "", !strings.Contains(text, userdata.UnknownText)
	case *syntax.UnaryTest:
		return w.evaluateUnary(x)
	case *syntax.BinaryTest:
		left, isLeftWord := x.X.(*syntax.Word)
		right, isRightWord := x.Y.(*syntax.Word)
		if !isLeftWord || !isRightWord {
			return false, false
		}
		a, b := w.vars.Literal(left), w.vars.Literal(right)
		isPattern := strings.ContainsAny(b, `*?[\`)
		if strings.Contains(a+b, userdata.UnknownText) || isPattern {
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

// evaluateUnary evaluates a negation, -z or -n between [[ and ]].
func (w *walker) evaluateUnary(x *syntax.UnaryTest) (succeeds, known bool) {
	if x.Op == syntax.TsNot {
		succeeds, known = w.evaluateExpr(x.X)
		return !succeeds, known
	}
	word, ok := x.X.(*syntax.Word)
	if !ok || x.Op != syntax.TsEmpStr && x.Op != syntax.TsNempStr {
		return false, false
	}
	text := w.vars.Literal(word)
	return (text == "") == (x.Op == syntax.TsEmpStr), !strings.Contains(text, userdata.UnknownText)
}
