package userdata

import "strings"

// Letters are those of the English alphabet.
const Letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// IsTelling reports whether a name that a user wrote may be repeated: it is a
// word as names are, and not what a password looks like.
func IsTelling(name string) bool {
	return name != "" && len(name) <= 60 && strings.Trim(name, Letters+"-_./") == ""
}

// Quoted names what was written in brackets, if it may be repeated.
func Quoted(name string) string {
	if !IsTelling(name) {
		return ""
	}
	return " (" + name + ")"
}

// Variable names a variable of a shell, if it looks like one.
func Variable(name string) string {
	if name != strings.ToUpper(name) && !IsTelling(name) {
		return "a variable"
	}
	return "$" + name
}

// Nearest is the name among those known that was probably meant, empty if none is near.
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

// Distance is how many letters have to be put in, taken out, changed or swapped
// with their neighbour to make one word of another; limit if that many or more.
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
