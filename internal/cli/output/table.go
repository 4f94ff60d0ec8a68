// Package output turns decisions into what people and programs read.
//
// In: plans and catalogs.
// Out: rows of tables, sentences, and the values whose JSON is a contract.
// Never: a decision, a colour, or a look at the terminal: how wide lines may be is an argument.
package output

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table is rows under a header.
type Table struct {
	Header []string
	// Right names the columns, by index, that are aligned to the right: numbers.
	Right []int
	Rows  [][]string
}

// gap is what stands between two columns.
const gap = "  "

// String writes the table with aligned columns, each line ended by \n.
func (t Table) String() string { return t.Fit(0) }

// leastColumn is how narrow a column of long names may become.
const leastColumn = 12

// Fit is String with lines of at most width characters, as far as that can be: the widest columns are wrapped at blanks, and if that is not enough,
// names are cut, down to columns of leastColumn characters. Without a width (0) lines are as long as they are.
func (t Table) Fit(width int) string {
	widths, words := t.widths()
	if width > 0 {
		narrow(widths, words, width)
		for i := range words {
			words[i] = min(words[i], leastColumn)
		}
		narrow(widths, words, width)
	}
	var b strings.Builder
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		cells, height := make([][]string, len(row)), 1
		for i, cell := range row {
			cells[i] = wrapped(visible(cell), widths[i])
			height = max(height, len(cells[i]))
		}
		for line := range height {
			b.WriteString(t.line(cells, widths, line) + "\n")
		}
	}
	return b.String()
}

// narrow takes from the widest columns until a line has no more than width characters, or all columns are as narrow as they may be.
func narrow(widths, least []int, width int) {
	total := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// widths are those of the columns: as wide as their widest cell, and as their widest word.
func (t Table) widths() (cells, words []int) {
	cells, words = make([]int, len(t.Header)), make([]int, len(t.Header))
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		for i, cell := range row {
			cell = visible(cell)
			cells[i] = max(cells[i], utf8.RuneCountInString(cell))
			for word := range strings.FieldsSeq(cell) {
				words[i] = max(words[i], utf8.RuneCountInString(word))
			}
		}
	}
	return cells, words
}

// line writes one line of a row.
func (t Table) line(cells [][]string, widths []int, line int) string {
	var b strings.Builder
	for i, lines := range cells {
		cell := ""
		if line < len(lines) {
			cell = lines[line]
		}
		pad := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0))
		if slices.Contains(t.Right, i) {
			cell = pad + cell
		} else {
			cell += pad
		}
		if i > 0 {
			b.WriteString(gap)
		}
		b.WriteString(cell)
	}
	return strings.TrimRight(b.String(), " ")
}

// wrapped cuts text into lines of at most width characters: at blanks, else behind a sign that separates, else anywhere.
func wrapped(text string, width int) []string {
	var out []string
	rest := []rune(text)
	for len(rest) > width {
		at, skip := width, 0
		for i := width; i > 0; i-- {
			if rest[i] == ' ' {
				at, skip = i, 1
				break
			}
			if strings.ContainsRune("-./,:_", rest[i-1]) && at == width && i < width && i > width/2 {
				at = i
			}
		}
		out, rest = append(out, string(rest[:at])), rest[at+skip:]
	}
	return append(out, string(rest))
}

// visible writes what would command a terminal, or end the line, as Go quotes it:
// names come from files that anybody may have written.
func visible(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !unprintable(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// indent puts two blanks before each line.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}
