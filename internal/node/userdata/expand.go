package userdata

import (
	"io"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// UnknownText is a placeholder for text that is known only on the instance, such as the output of a command. It is a
// character that users do not write.
const UnknownText = "\uE000"

// MaxValue limits the length of a variable's value, in bytes: a script could otherwise double a value again and again.
const MaxValue = 4096

// Word is one word of a command after expansion.
type Word struct {
	Text      string   // contains UnknownText for each piece that is known only on the instance
	At        Position // position of the word
	Unset     []string // variables in the word that are never set
	IsLiteral bool     // whether the word is a single literal in the user data, quoted or not
}

// IsVague reports whether a part of the word is known only on the instance.
func (w Word) IsVague() bool { return strings.Contains(w.Text, UnknownText) }

// Value returns the word as a setting, with "…" for each UnknownText.
func (w Word) Value() Value {
	return Value{Text: strings.ReplaceAll(w.Text, UnknownText, "…"), Vague: w.IsVague(), At: w.At}
}

// ValueOrNone returns the word as a setting, or the zero Value for an empty word.
func (w Word) ValueOrNone() Value {
	if w.Text == "" {
		return Value{}
	}
	return w.Value()
}

// Variables are the variables of a shell script.
type Variables struct {
	Set map[string]string // values by name; a value may contain UnknownText

	// Foreign is true if the script reads a source that may set any variable, for instance a file.
	Foreign bool
	unset   []string // variables that the last expansion used and that are not set
}

// Clone returns a copy whose variables can be changed independently of v.
func (v *Variables) Clone() *Variables {
	return &Variables{Set: maps.Clone(v.Set), Foreign: v.Foreign}
}

// Assign sets a variable. The value becomes UnknownText if it is longer than MaxValue, or if the script has more than
// MaxParts*8 variables: both limit the memory.
func (v *Variables) Assign(name, value string) {
	if len(value) > MaxValue || len(v.Set) > MaxParts*8 {
		value = UnknownText
	}
	v.Set[name] = value
}

// ambient are variables that are set on an instance by default, each between two spaces.
const ambient = " HOME PATH PWD OLDPWD SHELL USER LOGNAME LANG TERM HOSTNAME HOSTTYPE MACHTYPE OSTYPE UID EUID PPID RANDOM SECONDS LINENO BASH " +
	"BASHPID BASH_SOURCE BASH_VERSION BASH_VERSINFO FUNCNAME PIPESTATUS SHLVL INSTANCE_ID REPLY EPOCHSECONDS TMPDIR XDG_RUNTIME_DIR DIRSTACK GROUPS _ ? $ ! - 0 "

// Get implements expand.Environ. It returns UnknownText for an ambient variable and for an array. If v.Foreign is true,
// it also returns UnknownText for any variable that is not assigned. Otherwise it returns
// an unset variable, and adds the name to v.unset.
func (v *Variables) Get(name string) expand.Variable {
	value, ok := v.Set[name]
	switch {
	case ok:
	case name == "IFS": // unset: the shell splits words at white space
		return expand.Variable{}
	case name == "@" || name == "*": // user data gets no arguments
		value = ""
	case name == "#":
		value = "0"
	case v.Foreign || strings.Contains(ambient, " "+name+" ") || strings.Contains(name, " "):
		value = UnknownText
	default:
		v.unset = append(v.unset, name)
		return expand.Variable{}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: value}
}

// Each implements expand.Environ. It lists no variables, because no commands are run with them.
func (v *Variables) Each(func(string, expand.Variable) bool) {}

// config returns the configuration of the shell library: the output of a substituted command is UnknownText.
func (v *Variables) config() *expand.Config {
	return &expand.Config{
		Env: v,
		CmdSubst: func(w io.Writer, _ *syntax.CmdSubst) error {
			_, err := io.WriteString(w, UnknownText)
			return err
		},
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return UnknownText, nil },
	}
}

// Fields expands one word of a command into one or more words. The result is one word with the text EmptyExpansion if
// the word expands to nothing, and one word with the text UnknownText if it cannot be expanded.
func (v *Variables) Fields(w *syntax.Word, at Position) []Word {
	v.unset = nil
	if !isCheapToExpand(w) {
		return []Word{{Text: UnknownText, At: at}}
	}
	texts, err := CatchPanic(func() ([]string, error) { return expand.Fields(v.config(), w) })
	if err != nil {
		return []Word{{Text: UnknownText, At: at}}
	}
	var out []Word
	for _, text := range texts {
		out = append(out, Word{Text: text, At: at, Unset: v.unset, IsLiteral: isSingleLiteral(w)})
	}
	if len(out) == 0 { // callers that count words need a placeholder
		out = append(out, Word{At: at, Unset: v.unset, Text: EmptyExpansion})
	}
	return out
}

// EmptyExpansion is the text of a word that expands to no word.
const EmptyExpansion = "\uE001"

// Literal expands a word that the shell never splits, such as a variable's value. The result is UnknownText if the word
// cannot be expanded.
func (v *Variables) Literal(w *syntax.Word) string {
	v.unset = nil
	if w == nil {
		return ""
	}
	if !isCheapToExpand(w) {
		return UnknownText
	}
	out, err := CatchPanic(func() (string, error) { return expand.Literal(v.config(), w) })
	if err != nil {
		return UnknownText
	}
	return out
}

// Document expands a here-document. The result is UnknownText if it cannot be expanded, or is longer than MaxUnpacked.
func (v *Variables) Document(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if !isCheapToExpand(w) {
		return UnknownText
	}
	out, err := CatchPanic(func() (string, error) { return expand.Document(v.config(), w) })
	if err != nil || len(out) > MaxUnpacked {
		return UnknownText
	}
	return out
}

// CatchPanic calls a function that parses or expands user text with a library, and returns an error if it panics.
func CatchPanic[T any](call func() (T, error)) (out T, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF
		}
	}()
	return call()
}

// isCheapToExpand reports whether a word can be expanded at little cost. Braces and replacements are rejected, because
// they can expand a short word to a very long text. More than 32 variables are rejected, because each may have MaxValue
// bytes. References by prefix, indirect ones, array elements, arithmetic and extended patterns are rejected too.
func isCheapToExpand(w *syntax.Word) bool {
	expansions, isCheap := 0, true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			hasBraces := strings.Contains(n.Value, "{") && (strings.Contains(n.Value, "..") || strings.Contains(n.Value, ","))
			isCheap = isCheap && !hasBraces
		case *syntax.ParamExp:
			expansions++
			if n.Repl != nil || n.Names != 0 || n.Excl || n.Index != nil {
				isCheap = false
			}
		case *syntax.ArithmExp, *syntax.ExtGlob:
			isCheap = false
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false // config returns UnknownText for it
		}
		return isCheap
	})
	return isCheap && expansions <= 32
}

// isSingleLiteral reports whether a word is a single literal without escapes, quoted or not.
func isSingleLiteral(w *syntax.Word) bool {
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

// Inner returns the position of the text of a word that is a single literal: after its opening quote, if any.
func Inner(w *syntax.Word, at Position) Position {
	if len(w.Parts) == 1 {
		if _, bare := w.Parts[0].(*syntax.Lit); !bare {
			at.Column++
		}
	}
	return at
}
