package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Words in types.tsv.
const (
	firstColumn = "type"
	lastColumn  = "other"

	nameOfDefaults = "default" // first cell of the line of defaults
	sameAsDefault  = "-"       // cell of a fact that equals the default
	sameAsAbove    = "^"       // cell that equals the cell above it
	noValue        = "none"    // empty text or empty list
)

// ParseTypes parses types.tsv. Errors name the file, the line and the column. No two types share a slice.
//
// The file has comments after "#", a header line with the names of the columns, a line of defaults, and a line per
// type, sorted by name. Cells are separated by tabs. The first column has the name of the type. The cell "-" stands for
// the default, and in the line of defaults for the zero value; at the end of a line it may be missing. In the line of a
// type, the cell "^" stands for the cell above it. setFact has the notation of the other cells.
//
// The last column, "other", has the facts without a column as NAME=VALUE, sorted by name and separated by "; ". A fact
// that a line does not list there has the default.
func ParseTypes(file, text string) ([]Facts, error) {
	var p typesParser
	lineNumber := 0
	for line := range strings.Lines(text) {
		lineNumber++
		if strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.addLine(strings.Split(strings.TrimSuffix(line, "\n"), "\t")); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, lineNumber, err)
		}
	}
	if p.defaults == nil {
		return nil, fmt.Errorf("%s:%d: the file ends before the line of defaults", file, lineNumber)
	}
	return p.types, nil
}

// typesParser has the result of the lines of types.tsv that are parsed so far.
type typesParser struct {
	columns  []TypeColumn // columns of the header line, without lastColumn; nil before the header line
	others   []TypeColumn // facts without a column, which may be in lastColumn
	defaults []string     // cells of the line of defaults; nil before this line
	above    []string     // cells of the previous line, without "^"; nil before the first type
	types    []Facts      // sorted by name
}

func (p *typesParser) addLine(cells []string) error {
	var f Facts
	if p.columns == nil {
		return p.setHeader(cells)
	}
	for len(cells) < len(p.columns)+1 {
		cells = append(cells, sameAsDefault)
	}
	switch {
	case len(cells) > len(p.columns)+1:
		return fmt.Errorf("want at most %d columns, have %d", len(p.columns)+1, len(cells))
	case p.defaults == nil && cells[0] != nameOfDefaults:
		return fmt.Errorf("column %s: %q: want the line of defaults, which begins with %q", firstColumn, cells[0], nameOfDefaults)
	case p.defaults == nil:
		p.defaults = cells
		return p.setFacts(&f, cells)
	case !strings.Contains(cells[0], "."):
		return fmt.Errorf("column %s: %q: want the name of an instance type, such as m5.large", firstColumn, cells[0])
	case len(p.types) > 0 && cells[0] <= p.types[len(p.types)-1].Name:
		return fmt.Errorf("column %s: %q follows %q: types must be sorted by name, each once", firstColumn, cells[0],
			p.types[len(p.types)-1].Name)
	}
	if err := p.copyFromAbove(cells); err != nil {
		return err
	}
	err := cmp.Or(p.setFacts(&f, p.defaults), p.setFacts(&f, cells))
	p.types = append(p.types, f)
	return err
}

// copyFromAbove replaces each cell "^" with the cell above it.
func (p *typesParser) copyFromAbove(cells []string) error {
	for i, cell := range cells {
		if cell != sameAsAbove {
			continue
		}
		if p.above == nil {
			return fmt.Errorf("column %d: %q: want a value, because no type is above", i+1, cell)
		}
		cells[i] = p.above[i]
	}
	p.above = cells
	return nil
}

func (p *typesParser) setHeader(names []string) error {
	last := len(names) - 1
	if names[0] != firstColumn || names[last] != lastColumn {
		return fmt.Errorf("the first column is %q and the last is %q, want %q and %q", names[0], names[last], firstColumn, lastColumn)
	}
	p.others = TypeColumns()
	for _, name := range names[:last] {
		i := indexOfColumn(p.others, name)
		if i < 0 {
			return fmt.Errorf("column %s: no such fact, or a second column with this name", name)
		}
		p.columns = append(p.columns, p.others[i])
		p.others = slices.Delete(p.others, i, i+1)
	}
	return nil
}

func (p *typesParser) setFacts(f *Facts, cells []string) error {
	for i, c := range p.columns {
		if cells[i] == sameAsDefault {
			continue
		}
		if err := setFact(c.Field(f), cells[i]); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
	}
	if err := p.setOthers(f, cells[len(p.columns)]); err != nil {
		return fmt.Errorf("column %s: %w", lastColumn, err)
	}
	return nil
}

func (p *typesParser) setOthers(f *Facts, cell string) error {
	if cell == sameAsDefault {
		return nil
	}
	previous := ""
	for pair := range strings.SplitSeq(cell, "; ") {
		name, value, ok := strings.Cut(pair, "=")
		i := indexOfColumn(p.others, name)
		switch {
		case !ok:
			return fmt.Errorf("%q: want NAME=VALUE", pair)
		case i < 0:
			return fmt.Errorf("%s: no such fact, or a fact with its own column", name)
		case name <= previous:
			return errors.New(name + ": facts must be sorted by name, each once")
		}
		if err := setFact(p.others[i].Field(f), value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		previous = name
	}
	return nil
}

func indexOfColumn(columns []TypeColumn, name string) int {
	return slices.IndexFunc(columns, func(c TypeColumn) bool { return c.Name == name })
}
