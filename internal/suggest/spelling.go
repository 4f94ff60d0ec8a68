// Package suggest finds the known name that a misspelled one probably means.
//
// In: a word that is not there, and those that are.
// Out: the nearest of them, if one is near.
// Never: a guess that is far off, or one that depends on the order of the words.
package suggest

import (
	"slices"
	"strings"
)

// Nearest returns the word that is most like the given one: the one that needs the fewest edits (Distance), at most a third of
// the longer word, or else the shortest that begins with it or has it as a part. Case, hyphens, underscores and dots do not count. It
// returns "" if there is none; of several that are as near, the first by name.
func Nearest(word string, words []string) string {
	plain := fold(word)
	if plain == "" {
		return ""
	}
	best, least := "", 0
	for _, w := range slices.Sorted(slices.Values(words)) {
		other := fold(w)
		d := Distance(plain, other)
		if d <= max(len(plain), len(other))/3 && (best == "" || d < least) {
			best, least = w, d
		}
	}
	if best != "" || len(plain) < shortestPart {
		return best
	}
	for _, w := range slices.Sorted(slices.Values(words)) {
		if strings.Contains(fold(w), plain) && (best == "" || len(w) < len(best)) {
			best = w
		}
	}
	return best
}

// shortestPart is how many letters a word must have for it to be the part of another.
const shortestPart = 3

// Hint is " (did you mean NEAREST?)", to stand behind a word that is not there, or "" where nothing is near.
func Hint(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// fold takes away what people leave out or write otherwise.
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(word))
}

// Distance is how many letters must be put in, left out, changed or swapped with their neighbour to make b of a, none of them
// twice. Letters are bytes: what is compared are names of settings.
func Distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			changed := above[j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			row[j] = min(above[j]+1, row[j-1]+1, changed)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
