package userdata

import "strings"

// Letters are the letters of the English alphabet.
const Letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// IsQuotable reports whether a name that a user wrote may be quoted in a problem. Such a name has at most 60 bytes,
// and consists of letters and the characters - _ . /. A name with digits may be a password.
func IsQuotable(name string) bool {
	return name != "" && len(name) <= 60 && strings.Trim(name, Letters+"-_./") == ""
}

// InParentheses returns " (name)", or "" if IsQuotable rejects the name.
func InParentheses(name string) string {
	if !IsQuotable(name) {
		return ""
	}
	return " (" + name + ")"
}

// Variable returns $name for a variable of a shell script. It returns "a variable" for a name that has lower-case
// letters and that IsQuotable rejects.
func Variable(name string) string {
	if name != strings.ToUpper(name) && !IsQuotable(name) {
		return "a variable"
	}
	return "$" + name
}

// Nearest returns the known name that the user probably meant: the nearest one, at a Distance of at most 2; empty if
// there is none. Known names with fewer than four letters are ignored: too many words are near them.
func Nearest(name string, known []string) string {
	if len(name) > 80 {
		return ""
	}
	best, least := "", 3
	for _, candidate := range known {
		if len(candidate) < 4 {
			continue
		}
		if d := Distance(name, candidate, least); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// Distance returns the minimum number of letters to insert, delete, change or swap with their neighbor to turn the word
// a into b. It returns limit if the number is not below limit.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	// Rows of the table of distances between beginnings of a and b, the oldest first.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}
