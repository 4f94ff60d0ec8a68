package userdata

import (
	"io"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// ValueOrNone returns the word as a setting; the zero Value for an empty word.
func (w Word) ValueOrNone() Value {
	if w.Text == "" {
		return Value{}
	}
	return w.Value()
}

// Mark stands for what only the instance can know, such as what a command
// prints: a character that no one writes.
const Mark = "\uE000"

// MaxValue bounds what a variable may hold: each may be used for the next one, which would double it.
const MaxValue = 4096

// Word is one word of a command after expansion.
type Word struct {
	Text  string // with marks where it is vague
	At    Spot
	Unset []string // variables in it that nothing sets
	Whole bool     // all of it stands in the user data as it is, between one pair of quotes or without
}

// IsVague reports whether only the instance can know a part of the word.
func (w Word) IsVague() bool { return strings.Contains(w.Text, Mark) }

// Value is the word as a setting.
func (w Word) Value() Value {
	return Value{Text: strings.ReplaceAll(w.Text, Mark, "…"), Vague: w.IsVague(), At: w.At}
}

// Variables are those of a shell script.
type Variables struct {
	Set map[string]string // with marks

	// foreign: something was read that may set any variable, a file for instance.
	Foreign bool
	missed  []string // what was asked for and is not set
}

// Clone returns a copy that shares nothing with v.
func (v *Variables) Clone() *Variables {
	return &Variables{Set: maps.Clone(v.Set), Foreign: v.Foreign}
}

// Assign gives a variable a value; a longer one than can be kept is vague.
func (v *Variables) Assign(name, value string) {
	if len(value) > MaxValue || len(v.Set) > MaxParts*8 {
		value = Mark
	}
	v.Set[name] = value
}

// ambient are variables that an instance has without anybody setting them.
const ambient = " HOME PATH PWD OLDPWD SHELL USER LOGNAME LANG TERM HOSTNAME HOSTTYPE MACHTYPE OSTYPE UID EUID PPID RANDOM SECONDS LINENO BASH " +
	"BASHPID BASH_SOURCE BASH_VERSION BASH_VERSINFO FUNCNAME PIPESTATUS SHLVL INSTANCE_ID REPLY EPOCHSECONDS TMPDIR XDG_RUNTIME_DIR DIRSTACK GROUPS _ ? $ ! - 0 "

// Get makes variables an expand.Environ. Of a variable of many values nothing is known.
func (v *Variables) Get(name string) expand.Variable {
	value, ok := v.Set[name]
	switch {
	case ok:
	case name == "IFS":
		return expand.Variable{}
	case name == "@" || name == "*":
		value = ""
	case name == "#":
		value = "0"
	case v.Foreign || strings.Contains(ambient, " "+name+" ") || strings.Contains(name, " "):
		value = Mark
	default:
		v.missed = append(v.missed, name)
		return expand.Variable{}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: value}
}

// Each makes variables an expand.Environ. It names none: nothing is ever run with them.
func (v *Variables) Each(func(string, expand.Variable) bool) {}

func (v *Variables) config() *expand.Config {
	return &expand.Config{
		Env: v,
		CmdSubst: func(w io.Writer, _ *syntax.CmdSubst) error {
			_, err := io.WriteString(w, Mark)
			return err
		},
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return Mark, nil },
	}
}

// Fields expands one word of a command into none, one or several.
func (v *Variables) Fields(w *syntax.Word, at Spot) []Word {
	v.missed = nil
	if !isTame(w) {
		return []Word{{Text: Mark, At: at}}
	}
	all, err := Guarded(func() ([]string, error) { return expand.Fields(v.config(), w) })
	if err != nil {
		return []Word{{Text: Mark, At: at}}
	}
	var out []Word
	for _, one := range all {
		out = append(out, Word{Text: one, At: at, Unset: v.missed, Whole: isWhole(w)})
	}
	if len(out) == 0 { // it expands to no word: callers that count words must know
		out = append(out, Word{At: at, Unset: v.missed, Text: Vanished})
	}
	return out
}

// Vanished is the text of a word that expands to nothing at all.
const Vanished = "\uE001"

// Literal expands a word that is never split, such as the value of a variable.
func (v *Variables) Literal(w *syntax.Word) string {
	v.missed = nil
	if w == nil {
		return ""
	}
	if !isTame(w) {
		return Mark
	}
	out, err := Guarded(func() (string, error) { return expand.Literal(v.config(), w) })
	if err != nil {
		return Mark
	}
	return out
}

// Document expands a here-document.
func (v *Variables) Document(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if !isTame(w) {
		return Mark
	}
	out, err := Guarded(func() (string, error) { return expand.Document(v.config(), w) })
	if err != nil || len(out) > MaxUnpacked {
		return Mark
	}
	return out
}

// Guarded runs a function of the shell's library on a stranger's text; a panic of
// it is one more thing that cannot be known.
func Guarded[T any](expansion func() (T, error)) (out T, err error) {
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

// Inner is where the text of a whole word begins: after its quote.
func Inner(w *syntax.Word, at Spot) Spot {
	if len(w.Parts) == 1 {
		if _, bare := w.Parts[0].(*syntax.Lit); !bare {
			at.Column++
		}
	}
	return at
}
