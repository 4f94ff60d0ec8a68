package userdata

import "strings"

// PositionAfter returns the position of the end of a text that begins at the position from.
func PositionAfter(from Position, text string) Position {
	if lines := strings.Count(text, "\n"); lines > 0 {
		from.Line += lines
		from.Column = len(text) - strings.LastIndexByte(text, '\n')
		return from
	}
	from.Column += len(text)
	return from
}

// SplitWord is a word with the index at which it begins.
type SplitWord struct {
	Text string // the word without quotes
	From int    // index in the line, in bytes
}

// Split splits a line at blanks and removes quotes, like systemd. From a line without expansions, a POSIX shell gets
// the same words.
func Split(line string) []SplitWord {
	var out []SplitWord
	var word strings.Builder
	from, inWord := 0, false
	begin := func(i int) {
		if !inWord {
			from, inWord = i, true
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			begin(i)
			i++
			word.WriteByte(line[i])
		case c == '\'' || c == '"':
			begin(i)
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 { // unclosed: the rest of the line is quoted
				end = len(line) - i - 1
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inWord {
				out = append(out, SplitWord{word.String(), from})
				word.Reset()
			}
			inWord = false
		default:
			begin(i)
			word.WriteByte(c)
		}
	}
	if inWord {
		out = append(out, SplitWord{word.String(), from})
	}
	return out
}

// Words returns the texts of the words of Split.
func Words(line string) []string {
	var out []string
	for _, word := range Split(line) {
		out = append(out, word.Text)
	}
	return out
}
