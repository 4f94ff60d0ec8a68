package scenario

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// The two selectors that are not a list of terms. noPod also stands for an empty list of labels.
const (
	everyPod = "*"
	noPod    = "<none>"
)

// parseSelector reads the selector at the beginning of text: everyPod, noPod or the syntax of kubectl, "app=web,tier in
// (a,b),!old". rest is the text after the selector.
func parseSelector(text string) (s cluster.Selector, rest string, err error) {
	if rest, ok := strings.CutPrefix(text, noPod); ok {
		return cluster.Selector{MatchesNothing: true}, rest, nil
	}
	if rest, ok := strings.CutPrefix(text, everyPod); ok {
		return s, rest, nil
	}
	s.Labels = requirements.Requirements{}
	for {
		if text, err = readSelectorTerm(s.Labels, text); err != nil {
			return s, "", err
		}
		next, hasMore := strings.CutPrefix(skipBlanks(text), ",")
		if !hasMore {
			return s, text, nil
		}
		text = skipBlanks(next)
	}
}

// readSelectorTerm adds the first term of text to the requirements. It returns the text after the term.
func readSelectorTerm(to requirements.Requirements, text string) (string, error) {
	afterSign, isAbsent := strings.CutPrefix(text, "!")
	key, rest := selectorWord(afterSign)
	if key == "" {
		return "", fmt.Errorf("%q is not a selector: want KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY, !KEY,"+
			" several with commas between them, or %s for every pod, %s for none", text, everyPod, noPod)
	}
	if isAbsent {
		to.Narrow(key, requirements.Missing())
		return rest, nil
	}
	next := skipBlanks(rest)
	for _, o := range []struct {
		sign     string
		operator requirements.Operator
	}{{"==", requirements.In}, {"=", requirements.In}, {"!=", requirements.NotIn}, {">", requirements.Gt}, {"<", requirements.Lt}} {
		if after, ok := strings.CutPrefix(next, o.sign); ok {
			value, rest := selectorWord(after)
			return rest, narrowByValues(to, key, o.operator, value)
		}
	}
	word, after := selectorWord(next)
	operator, ok := map[string]requirements.Operator{"in": requirements.In, "notin": requirements.NotIn}[word]
	list, hasList := strings.CutPrefix(skipBlanks(after), "(")
	if !ok || !hasList {
		return rest, narrowByValues(to, key, requirements.Exists)
	}
	values, rest, err := selectorValues(list)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", key, word, err)
	}
	return rest, narrowByValues(to, key, operator, values...)
}

// selectorValues reads "a,b)". rest is the text after the bracket.
func selectorValues(text string) (values []string, rest string, err error) {
	for {
		value, rest := selectorWord(skipBlanks(text))
		rest = skipBlanks(rest)
		if rest == "" || rest[0] != ',' && rest[0] != ')' {
			return nil, "", fmt.Errorf("want values with commas between them and a closing bracket, not %q", text)
		}
		text = rest[1:]
		if rest[0] == ')' && value == "" && len(values) == 0 {
			return nil, text, nil // "()"
		}
		values = append(values, value)
		if rest[0] == ')' {
			return values, text, nil
		}
	}
}

// selectorWord returns the key or value at the beginning of text, and the text after it.
func selectorWord(text string) (word, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",=!<>()", r) })
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:]
}

func skipBlanks(text string) string { return strings.TrimLeftFunc(text, unicode.IsSpace) }

func selectorText(s cluster.Selector) string {
	if s.MatchesNothing {
		return noPod
	}
	if len(s.Labels) == 0 {
		return everyPod
	}
	var terms []string
	for _, key := range s.Labels.Keys() {
		terms = append(terms, selectorTerms(key, s.Labels[key])...)
	}
	return strings.Join(terms, ",")
}

// selectorTerms returns selector terms that together mean v. A complement that selects pods without the label (Absent)
// needs != or notin: the other terms require the label.
func selectorTerms(key string, v requirements.Values) []string {
	if !v.Complement {
		switch {
		case v.Absent:
			return []string{"!" + key}
		case len(v.Listed) == 1:
			return []string{key + "=" + v.Listed[0]}
		}
		return []string{key + " in (" + strings.Join(v.Listed, ",") + ")"}
	}
	var out []string
	switch {
	case len(v.Listed) == 1:
		out = append(out, key+"!="+v.Listed[0])
	case len(v.Listed) > 1 || v.Absent:
		out = append(out, key+" notin ("+strings.Join(v.Listed, ",")+")")
	}
	if v.Min != nil {
		out = append(out, fmt.Sprintf("%s>%d", key, *v.Min-1))
	}
	if v.Max != nil {
		out = append(out, fmt.Sprintf("%s<%d", key, *v.Max+1))
	}
	if !v.Absent && v.Min == nil && v.Max == nil {
		out = append(out, key)
	}
	return out
}
