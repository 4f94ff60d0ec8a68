package output

import "strings"

// contextLines is the number of unchanged lines shown before and after a change.
const contextLines = 2

// Difference returns the line-by-line difference of two texts: removed lines start with "- ", added lines with "+ ",
// and unchanged lines with two spaces. Unchanged lines farther than contextLines from a change are left out. If the
// texts are too long for commonSubsequence, all lines are shown as removed and added.
func Difference(before, after string) []string {
	a, b := lines(before), lines(after)
	var all []string
	i, j := 0, 0 // next lines of a and b; the pair added below is the end of both
	for _, same := range append(commonSubsequence(a, b), [2]int{len(a), len(b)}) {
		for ; i < same[0]; i++ {
			all = append(all, "- "+a[i])
		}
		for ; j < same[1]; j++ {
			all = append(all, "+ "+b[j])
		}
		if i < len(a) && j < len(b) {
			all = append(all, "  "+a[i])
			i, j = i+1, j+1
		}
	}
	return changedLines(all)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// commonSubsequence returns a longest common subsequence of the lines, as pairs of an index in a and one in b; nil if
// the texts are too long.
func commonSubsequence(a, b []string) [][2]int {
	const maxCells = 4 << 20 // length then has 32 MiB: for instance for two texts of 2,048 lines
	if len(a)*len(b) > maxCells {
		return nil
	}
	length := make([][]int, len(a)+1) // length[i][j] is the length of the subsequence of a[i:] and b[j:]
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return out
}

// changedLines returns the changed lines and contextLines lines before and after each. An ellipsis stands for omitted
// lines after a group.
func changedLines(all []string) []string {
	keep := make([]bool, len(all))
	for i, line := range all {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		for k := max(0, i-contextLines); k <= min(len(all)-1, i+contextLines); k++ {
			keep[k] = true
		}
	}
	var out []string
	for i, line := range all {
		if keep[i] {
			out = append(out, line)
		} else if i > 0 && keep[i-1] {
			out = append(out, "  …")
		}
	}
	return out
}
