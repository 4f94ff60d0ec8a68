// Package view turns decisions into what people and programs read.
//
// In: plans and catalogs.
// Out: rows of tables, sentences, and the values whose JSON is a contract.
// Never: a decision, a colour, or a width that depends on the terminal.
package view

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
func (t Table) String() string {
	all := [][]string{t.Header}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = visible(cell)
		}
		all = append(all, cells)
	}
	widths := make([]int, len(t.Header))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if slices.Contains(t.Right, i) {
				cell = pad + cell
			} else {
				cell += pad
			}
			if i > 0 {
				line.WriteString(gap)
			}
			line.WriteString(cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
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
