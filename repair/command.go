package repair

import (
	"bytes"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command is one command of a fix, in words as a shell makes them.
type command struct {
	text  string // as it stands there
	words []string
	asks  map[int][]string // by place among the words: what a shell would put there is what joiner prints when it is run with these words
}

// read takes a fix apart. What is more than commands with plain words, one after another, a person must read.
func read(fix string) ([]command, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(fix), "")
	if err != nil {
		return nil, &ByHand{Line: fix, Why: "it is not written as commands"}
	}
	var out []command
	for _, s := range file.Stmts {
		text := printed(s)
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || len(s.Redirs) > 0 || s.Background || s.Negated || s.Coprocess || len(call.Assigns) > 0 {
			return nil, &ByHand{Line: text, Why: "it is more than a command"}
		}
		c := command{text: text}
		for i, w := range call.Args {
			if args, ok := asked(w); ok {
				c.words, c.asks = append(c.words, ""), map[int][]string{i: args}
				continue
			}
			word, ok := plain(w.Parts)
			if !ok {
				return nil, &ByHand{Line: text, Why: "only a shell can say what its words are"}
			}
			c.words = append(c.words, word)
		}
		out = append(out, c)
	}
	return out, nil
}

// printed is a statement without its comments, on as many lines as it has.
func printed(s *syntax.Stmt) string {
	var b bytes.Buffer
	bare := *s
	bare.Comments = nil
	if err := syntax.NewPrinter().Print(&b, &bare); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// plain is a word in which a shell replaces nothing.
func plain(parts []syntax.WordPart) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[~") {
				return "", false
			}
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || p.Dollar || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// asked are the words of "$(joiner correct …)", without joiner; ok is false where a word is anything else.
func asked(w *syntax.Word) (args []string, ok bool) {
	if len(w.Parts) != 1 {
		return nil, false
	}
	quoted, ok := w.Parts[0].(*syntax.DblQuoted)
	if !ok || len(quoted.Parts) != 1 {
		return nil, false
	}
	subst, ok := quoted.Parts[0].(*syntax.CmdSubst)
	if !ok || len(subst.Stmts) != 1 {
		return nil, false
	}
	call, ok := subst.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(subst.Stmts[0].Redirs) > 0 {
		return nil, false
	}
	for _, arg := range call.Args {
		word, ok := plain(arg.Parts)
		if !ok {
			return nil, false
		}
		args = append(args, word)
	}
	if len(args) < 3 || args[0] != "joiner" || args[1] != "correct" {
		return nil, false
	}
	return args[1:], true
}

// unescaped takes away what keeps a shell from reading a character outside of quotes.
func unescaped(lit string) string {
	var b strings.Builder
	escaped := false
	for _, r := range lit {
		if r == '\\' && !escaped {
			escaped = true
			continue
		}
		escaped = false
		b.WriteRune(r)
	}
	return b.String()
}

// name is what an AWS command does: "eks create-access-entry".
func (c command) name() string {
	if len(c.words) < 3 {
		return ""
	}
	return c.words[1] + " " + c.words[2]
}

func (c command) byHand(why string, args ...any) *ByHand {
	return &ByHand{Line: c.text, Why: fmt.Sprintf(why, args...)}
}

// options are the words from a place on, as --name value.
func (c command) options(from int) (map[string]string, error) {
	out := map[string]string{}
	rest := c.words[min(from, len(c.words)):]
	for len(rest) > 0 {
		if !strings.HasPrefix(rest[0], "--") || len(rest) < 2 || strings.HasPrefix(rest[1], "--") || out[rest[0]] != "" {
			return nil, c.byHand("the option %s is not understood", rest[0])
		}
		out[rest[0]], rest = rest[1], rest[2:]
	}
	return out, nil
}
