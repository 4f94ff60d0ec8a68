package auth

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// editMapRoles appends a row to the text of mapRoles and removes the rows of the same role. It leaves all other lines
// unchanged, including comments. ok is false if the text is not a list in the block style of YAML, which all
// documentation uses.
func editMapRoles(raw string, row diagnosis.Mapping) (text string, ok bool) {
	head, rows, indent, ok := splitRows(raw)
	if !ok {
		return "", false
	}
	var b strings.Builder
	b.WriteString(head)
	for _, r := range rows {
		if arn, ok := arnIn(r); !ok {
			return "", false // the row is in another notation, such as {rolearn: …}
		} else if RoleName(arn) == RoleName(row.ARN) {
			b.WriteString(commentsAfter(r))
			continue
		}
		b.WriteString(r)
	}
	if out := b.String(); out != "" && !strings.HasSuffix(out, "\n") {
		b.WriteByte('\n')
	}
	var added strings.Builder
	writeRow(row, &added)
	for line := range strings.Lines(added.String()) {
		b.WriteString(indent + line)
	}
	return b.String(), true
}

// splitRows cuts text with a YAML list in block style into the text before the list (head) and the rows. A row includes
// the lines up to the next row. indent is the text before the dash of each row. ok is false if raw is no such text.
func splitRows(raw string) (head string, rows []string, indent string, ok bool) {
	for line := range strings.Lines(raw) {
		bare := strings.TrimLeft(line, " ")
		spaces := line[:len(line)-len(bare)]
		isRow := strings.HasPrefix(bare, "- ") || strings.TrimSpace(bare) == "-"
		switch {
		case isRow && (len(rows) == 0 || spaces == indent):
			indent = spaces
			rows = append(rows, line)
		case len(rows) > 0:
			rows[len(rows)-1] += line
		case strings.TrimSpace(line) == "" || strings.HasPrefix(bare, "#"):
			head += line
		default:
			return "", nil, "", false // "[]", "{…}", or no list
		}
	}
	return head, rows, indent, len(rows) > 0
}

// arnIn returns the ARN in a row's field rolearn; false if the row does not have exactly one such field.
func arnIn(row string) (string, bool) {
	arn, count := "", 0
	for line := range strings.Lines(row) {
		field := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "-"))
		value, ok := strings.CutPrefix(field, "rolearn:")
		if !ok {
			continue
		}
		count++
		if i := strings.Index(value, " #"); i >= 0 {
			value = value[:i]
		}
		arn = strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return arn, count == 1 && arn != ""
}

// commentsAfter returns the empty lines and comments at the end of a row, which are about the next row.
func commentsAfter(row string) string {
	var tail []string
	for line := range strings.Lines(row) {
		if bare := strings.TrimSpace(line); bare == "" || strings.HasPrefix(bare, "#") {
			tail = append(tail, line)
			continue
		}
		tail = nil
	}
	return strings.Join(tail, "")
}
