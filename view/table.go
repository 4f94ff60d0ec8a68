// Package view turns decisions into what people and programs read.
//
// In: plans and catalogs.
// Out: rows of tables, sentences, and the values whose JSON is a contract.
// Never: a decision, a colour, or a width that depends on the terminal.
package view

import (
	"slices"
	"strings"
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
	all := append([][]string{t.Header}, t.Rows...)
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

// indent puts two blanks before each line.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}
