// Package output formats plans, catalogs and other results as tables, sentences and JSON.
//
// In: plans and catalogs.
// Out: rows of tables, sentences, and values whose JSON is a stable interface.
// Never: a decision, a colour, or a system call on the terminal: the width of lines is an argument.
package output

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table is a table with a header.
type Table struct {
	Header []string // titles of the columns
	// Right has the indices of the columns that are aligned to the right, because they have numbers.
	Right []int
	Rows  [][]string // cells of each row, by column
}

// columnGap separates two columns.
const columnGap = "  "

// minColumnWidth is the width, in characters, down to which Fit narrows a column by splitting words.
const minColumnWidth = 12

// Fit returns the table with aligned columns. Each line ends with \n, and has at most width characters if possible: Fit
// wraps the cells of the widest columns at blanks. If that is not enough, it also splits words, in columns wider than
// minColumnWidth. A width of 0 means no limit.
func (t Table) Fit(width int) string {
	widths, minimums := t.widths() // columns are first narrowed to their widest words
	if width > 0 {
		narrowColumns(widths, minimums, width)
		for i := range minimums {
			minimums[i] = min(minimums[i], minColumnWidth)
		}
		narrowColumns(widths, minimums, width)
	}
	var b strings.Builder
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		cells, height := make([][]string, len(row)), 1
		for i, cell := range row {
			cells[i] = wrap(escapeInvisible(cell), widths[i])
			height = max(height, len(cells[i]))
		}
		for line := range height {
			b.WriteString(t.line(cells, widths, line) + "\n")
		}
	}
	return b.String()
}

// narrowColumns makes the widest column one character narrower, until a line has at most width characters. It stops
// earlier if no column is wider than its minimum.
func narrowColumns(widths, minimums []int, width int) {
	total := len(columnGap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := -1
		for i, w := range widths {
			if w > minimums[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// widths returns the width of the widest cell and of the widest word of each column.
func (t Table) widths() (cells, words []int) {
	cells, words = make([]int, len(t.Header)), make([]int, len(t.Header))
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		for i, cell := range row {
			cell = escapeInvisible(cell)
			cells[i] = max(cells[i], utf8.RuneCountInString(cell))
			for word := range strings.FieldsSeq(cell) {
				words[i] = max(words[i], utf8.RuneCountInString(word))
			}
		}
	}
	return cells, words
}

// line returns one line of a row: the lines with this index of all its cells.
func (t Table) line(cells [][]string, widths []int, index int) string {
	var b strings.Builder
	for i, lines := range cells {
		cell := ""
		if index < len(lines) {
			cell = lines[index]
		}
		pad := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0))
		if slices.Contains(t.Right, i) {
			cell = pad + cell
		} else {
			cell += pad
		}
		if i > 0 {
			b.WriteString(columnGap)
		}
		b.WriteString(cell)
	}
	return strings.TrimRight(b.String(), " ")
}

// wrap splits text into lines of at most width characters. It splits at the last blank of a line. Without a blank, it
// splits after the last of the characters "-./,:_" in the second half of the line, or else at width.
func wrap(text string, width int) []string {
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

// escapeInvisible returns text with Go escapes in place of control and invisible characters, including newlines,
// because names may come from untrusted files.
func escapeInvisible(text string) string {
	if !strings.ContainsFunc(text, isUnprintable) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !isUnprintable(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}
