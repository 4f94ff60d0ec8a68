package fix

import (
	"encoding/json"
	"slices"
	"strings"
)

// Kind is the purpose of a step.
type Kind string

// The kinds.
const (
	Change   Kind = "change" // changes Kubernetes or AWS
	ByHand   Kind = "edit"   // the user makes the change: with an editor, or in a system that this program cannot change
	ReadOnly Kind = "look"   // only reads; its output shows the user what to do
	Advice   Kind = "advice" // a sentence without a command
)

// Step is one step of a fix. Only the constructors of this package create steps.
type Step struct {
	kind           Kind
	words          []Word  // the command; empty for advice
	file           string  // file for the command's output; empty: the terminal
	note           string  // comment after the command, or the advice
	invalid        []Value // the invalid identifiers in the command
	hasPlaceholder bool    // the command contains a placeholder that the user must replace

	kube *Kubernetes // the command as an action on Kubernetes; nil for other commands and advice
	aws  *AWS        // the command as a call to AWS; nil for other commands and advice
}

// Word is one word of a command.
type Word struct {
	Text string // the word before quoting; empty if From is set
	From []Word // command whose output is the word; empty: Text is the word
}

// Kind returns the purpose of the step.
func (s Step) Kind() Kind { return s.kind }

// Words returns the words of the command, before quoting; empty for advice.
func (s Step) Words() []Word { return slices.Clone(s.words) }

// Note returns the comment after the command, or the advice.
func (s Step) Note() string { return s.note }

// Kubernetes returns the step as an action on Kubernetes; ok is false for other steps.
func (s Step) Kubernetes() (k Kubernetes, ok bool) {
	if s.kube == nil {
		return Kubernetes{}, false
	}
	return s.kube.clone(), true
}

// AWS returns the step as a call to AWS; ok is false for other steps.
func (s Step) AWS() (a AWS, ok bool) {
	if s.aws == nil {
		return AWS{}, false
	}
	return s.aws.clone(), true
}

// IsComplete reports whether the step can be used as it is: it has no placeholder, and its output does not go to a
// file.
func (s Step) IsComplete() bool { return !s.hasPlaceholder && s.file == "" }

// With returns the step with a comment after the command. For advice, the comment replaces the text. Arguments are
// escaped.
func (s Step) With(format constant, args ...any) Step {
	s.note = sentence(format, args)
	return s
}

// To returns the step with the output of its command redirected to a file. The file name is a constant of the program.
func (s Step) To(file constant) Step {
	s.file = string(file)
	return s
}

// Command returns the command as shell text, without its comment; empty for advice.
func (s Step) Command() string {
	text := shellText(s.words)
	if s.file != "" {
		text += " > " + quote(s.file)
	}
	return text
}

// String returns the step as one line of shell text: the command with its comment, or advice as a comment.
func (s Step) String() string {
	switch command := s.Command(); {
	case command == "":
		return "# " + s.note
	case s.note == "":
		return command
	default:
		return command + "   # " + s.note
	}
}

// shellText returns words as shell text: each in quotes if it needs them, a command inside a word as "$(…)".
func shellText(words []Word) string {
	out := make([]string, len(words))
	for i, w := range words {
		if len(w.From) > 0 {
			out[i] = `"$(` + shellText(w.From) + `)"`
			continue
		}
		out[i] = quote(w.Text)
	}
	return strings.Join(out, " ")
}

// MarshalJSON writes the step for programs: its kind, the words of its command, and its note.
func (s Step) MarshalJSON() ([]byte, error) {
	out := struct {
		Kind    Kind   `json:"kind"`
		Command []any  `json:"command,omitempty"` // words; a nested list is a command whose output is the word
		Note    string `json:"note,omitempty"`
	}{Kind: s.kind, Command: wordsAsJSON(s.words), Note: s.note}
	return json.Marshal(out)
}

func wordsAsJSON(words []Word) []any {
	out := make([]any, len(words))
	for i, w := range words {
		if len(w.From) > 0 {
			out[i] = wordsAsJSON(w.From)
			continue
		}
		out[i] = w.Text
	}
	return out
}

// AdviceStep is advice: a sentence for the user. Arguments are escaped.
func AdviceStep(format constant, args ...any) Step {
	return Step{kind: Advice, note: sentence(format, args)}
}

// Fix is the list of steps that correct a finding. The zero value has no steps.
type Fix struct {
	steps []Step
}

// New returns the fix for a subject such as "EC2NodeClass web"; an empty subject means the cluster. Advice
// replaces each step that has an invalid identifier. If such a step is not ReadOnly, only advice and the valid ReadOnly
// steps remain, because half a fix may do harm.
func New(subject string, steps ...Step) Fix {
	var out Fix
	hasInvalidChange := slices.ContainsFunc(steps, func(s Step) bool { return len(s.invalid) > 0 && s.kind != ReadOnly })
	for _, s := range steps {
		for _, v := range s.invalid {
			if advice := invalidAdvice(subject, v); !slices.ContainsFunc(out.steps, func(o Step) bool { return o.note == advice.note }) {
				out.steps = append(out.steps, advice)
			}
		}
		if len(s.invalid) == 0 && (!hasInvalidChange || s.kind == ReadOnly) {
			out.steps = append(out.steps, s)
		}
	}
	return out
}

func invalidAdvice(subject string, v Value) Step {
	if subject == "" {
		subject = "the cluster"
	}
	if v.text == "" {
		return AdviceStep("no command can be given for %s: the %s is not known", subject, v.kind)
	}
	return AdviceStep("no command is given for %s: the %s is not valid: %s", subject, v.kind, v.text)
}

// Steps returns the steps in order.
func (f Fix) Steps() []Step { return slices.Clone(f.steps) }

// And returns the fix with further steps appended. It appends nothing if the fix has no step of kind Change or ByHand,
// or if a further step has an invalid identifier.
func (f Fix) And(steps ...Step) Fix {
	if !f.hasKind(Change) && !f.hasKind(ByHand) || slices.ContainsFunc(steps, func(s Step) bool { return len(s.invalid) > 0 }) {
		return f
	}
	return Fix{steps: append(slices.Clone(f.steps), steps...)}
}

// Only returns a fix with only the steps of the given kinds.
func (f Fix) Only(kinds ...Kind) Fix {
	return Fix{steps: slices.DeleteFunc(slices.Clone(f.steps), func(s Step) bool { return !slices.Contains(kinds, s.kind) })}
}

// Correction returns the fix without the steps of kind ReadOnly.
func (f Fix) Correction() Fix { return f.Only(Change, ByHand, Advice) }

// IsZero reports whether the fix has no steps.
func (f Fix) IsZero() bool { return len(f.steps) == 0 }

// Changes reports whether the fix has a step of kind Change.
func (f Fix) Changes() bool { return f.hasKind(Change) }

func (f Fix) hasKind(k Kind) bool {
	return slices.ContainsFunc(f.steps, func(s Step) bool { return s.kind == k })
}

// Touches reports whether a step changes or edits an object, given by its singular resource name and its name.
func (f Fix) Touches(resource, name string) bool {
	return slices.ContainsFunc(f.steps, func(s Step) bool {
		return s.kind != ReadOnly && s.kube != nil && s.kube.Resource == resource && slices.Contains(s.kube.Names, name)
	})
}

// Deletes reports whether a step deletes objects of a kind.
func (f Fix) Deletes(resource string) bool {
	return slices.ContainsFunc(f.steps, func(s Step) bool { return s.kube != nil && s.kube.Verb == "delete" && s.kube.Resource == resource })
}

// String returns the fix as lines of shell text.
func (f Fix) String() string {
	out := make([]string, len(f.steps))
	for i, s := range f.steps {
		out[i] = s.String()
	}
	return strings.Join(out, "\n")
}

// MarshalJSON returns the text of String as a JSON string.
func (f Fix) MarshalJSON() ([]byte, error) { return json.Marshal(f.String()) }
