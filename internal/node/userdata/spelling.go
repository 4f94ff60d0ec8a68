package userdata

import "strings"

// Letters are the letters of the English alphabet.
const Letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// IsTelling reports whether a name that a user wrote may be repeated in a problem: it looks like an ordinary name, not
// like a password.
func IsTelling(name string) bool {
	return name != "" && len(name) <= 60 && strings.Trim(name, Letters+"-_./") == ""
}

// Quoted returns the name in parentheses if it may be repeated, else "".
func Quoted(name string) string {
	if !IsTelling(name) {
		return ""
	}
	return " (" + name + ")"
}

// Variable returns the name of a shell variable if it is one, else a placeholder.
func Variable(name string) string {
	if name != strings.ToUpper(name) && !IsTelling(name) {
		return "a variable"
	}
	return "$" + name
}

// Nearest returns the known name that the user probably meant, empty if none is similar.
func Nearest(name string, known []string) string {
	if len(name) > 80 {
		return ""
	}
	best, least := "", 3
	for _, one := range known {
		if len(one) < 4 {
			continue
		}
		if d := Distance(name, one, least); d < least {
			best, least = one, d
		}
	}
	return best
}

// Distance returns the number of letters to insert, delete, change or swap with their neighbor to turn one word into
// the other. It returns limit if the number is not below limit.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
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
