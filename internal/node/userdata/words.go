package userdata

import "strings"

// MovedSpot is the place after some text.
func MovedSpot(from Spot, over string) Spot {
	if lines := strings.Count(over, "\n"); lines > 0 {
		from.Line += lines
		from.Column = len(over) - strings.LastIndexByte(over, '\n')
		return from
	}
	from.Column += len(over)
	return from
}

// SplitWord is a word, and where it begins.
type SplitWord struct {
	Text string
	From int
}

// Split splits a line as systemd does, and as a POSIX shell does as far as
// nothing is to be expanded: at blanks, quotes taken off.
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
			if end < 0 {
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

// Words splits a line of a shell script into its words.
func Words(line string) []string {
	var out []string
	for _, one := range Split(line) {
		out = append(out, one.Text)
	}
	return out
}
