package userdata

import (
	"io"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// mark stands for what only the instance can know, such as what a command
// prints: a character that no one writes.
const mark = "\uE000"

// maxValue bounds what a variable may hold: each may be used for the next one, which would double it.
const maxValue = 4096

// word is one word of a command after expansion.
type word struct {
	text  string // with marks where it is vague
	at    Spot
	unset []string // variables in it that nothing sets
	whole bool     // all of it stands in the user data as it is, between one pair of quotes or without
}

func (w word) isVague() bool { return strings.Contains(w.text, mark) }

// value is the word as a setting.
func (w word) value() Value {
	return Value{Text: strings.ReplaceAll(w.text, mark, "…"), Vague: w.isVague(), At: w.at}
}

// variables are those of a shell script.
type variables struct {
	set map[string]string // with marks

	// foreign: something was read that may set any variable, a file for instance.
	foreign bool
	missed  []string // what was asked for and is not set
}

func (v *variables) clone() *variables {
	return &variables{set: maps.Clone(v.set), foreign: v.foreign}
}

// assign gives a variable a value; a longer one than can be kept is vague.
func (v *variables) assign(name, value string) {
	if len(value) > maxValue || len(v.set) > maxParts*8 {
		value = mark
	}
	v.set[name] = value
}

// ambient are variables that an instance has without anybody setting them.
const ambient = " HOME PATH PWD OLDPWD SHELL USER LOGNAME LANG TERM HOSTNAME HOSTTYPE MACHTYPE OSTYPE UID EUID PPID RANDOM SECONDS LINENO BASH " +
	"BASHPID BASH_SOURCE BASH_VERSION BASH_VERSINFO FUNCNAME PIPESTATUS SHLVL INSTANCE_ID REPLY EPOCHSECONDS TMPDIR XDG_RUNTIME_DIR DIRSTACK GROUPS _ ? $ ! - 0 "

// Get makes variables an expand.Environ. Of a variable of many values nothing is known.
func (v *variables) Get(name string) expand.Variable {
	value, ok := v.set[name]
	switch {
	case ok:
	case name == "IFS":
		return expand.Variable{}
	case name == "@" || name == "*":
		value = ""
	case name == "#":
		value = "0"
	case v.foreign || strings.Contains(ambient, " "+name+" ") || strings.Contains(name, " "):
		value = mark
	default:
		v.missed = append(v.missed, name)
		return expand.Variable{}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: value}
}

// Each makes variables an expand.Environ. It names none: nothing is ever run with them.
func (v *variables) Each(func(string, expand.Variable) bool) {}

func (v *variables) config() *expand.Config {
	return &expand.Config{
		Env: v,
		CmdSubst: func(w io.Writer, _ *syntax.CmdSubst) error {
			_, err := io.WriteString(w, mark)
			return err
		},
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return mark, nil },
	}
}

// fields expands one word of a command into none, one or several.
func (v *variables) fields(w *syntax.Word, at Spot) []word {
	v.missed = nil
	if !isTame(w) {
		return []word{{text: mark, at: at}}
	}
	all, err := guarded(func() ([]string, error) { return expand.Fields(v.config(), w) })
	if err != nil {
		return []word{{text: mark, at: at}}
	}
	var out []word
	for _, one := range all {
		out = append(out, word{text: one, at: at, unset: v.missed, whole: isWhole(w)})
	}
	if len(out) == 0 { // it expands to no word: callers that count words must know
		out = append(out, word{at: at, unset: v.missed, text: vanished})
	}
	return out
}

// vanished is the text of a word that expands to nothing at all.
const vanished = "\uE001"

// literal expands a word that is never split, such as the value of a variable.
func (v *variables) literal(w *syntax.Word) string {
	v.missed = nil
	if w == nil {
		return ""
	}
	if !isTame(w) {
		return mark
	}
	out, err := guarded(func() (string, error) { return expand.Literal(v.config(), w) })
	if err != nil {
		return mark
	}
	return out
}

// document expands a here-document.
func (v *variables) document(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if !isTame(w) {
		return mark
	}
	out, err := guarded(func() (string, error) { return expand.Document(v.config(), w) })
	if err != nil || len(out) > maxUnpacked {
		return mark
	}
	return out
}

// guarded runs a function of the shell's library on a stranger's text; a panic of
// it is one more thing that cannot be known.
func guarded[T any](expansion func() (T, error)) (out T, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF
		}
	}()
	return expansion()
}

// isTame reports whether a word can be expanded at little cost: braces and
// replacements can make much of little.
func isTame(w *syntax.Word) bool {
	expansions, tame := 0, true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			tame = tame && !(strings.Contains(n.Value, "{") && (strings.Contains(n.Value, "..") || strings.Contains(n.Value, ",")))
		case *syntax.ParamExp:
			expansions++
			if n.Repl != nil || n.Names != 0 || n.Excl || n.Index != nil {
				tame = false
			}
		case *syntax.ArithmExp, *syntax.ExtGlob:
			tame = false
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		}
		return tame
	})
	return tame && expansions <= 32
}

// isWhole reports whether a word is one literal, quoted or not.
func isWhole(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return !strings.Contains(p.Value, `\`)
	case *syntax.SglQuoted:
		return !p.Dollar
	case *syntax.DblQuoted:
		if len(p.Parts) == 1 {
			lit, ok := p.Parts[0].(*syntax.Lit)
			return ok && !strings.Contains(lit.Value, `\`)
		}
	}
	return false
}

// inner is where the text of a whole word begins: after its quote.
func inner(w *syntax.Word, at Spot) Spot {
	if len(w.Parts) == 1 {
		if _, bare := w.Parts[0].(*syntax.Lit); !bare {
			at.Column++
		}
	}
	return at
}
