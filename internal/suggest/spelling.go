// Package suggest finds the known word that the writer of a misspelled word probably meant.
//
// In: an unknown word, and the known words.
// Out: the most similar known word, if any is similar enough.
// Never: a dissimilar suggestion, or a suggestion that depends on the order of the known words.
package suggest

import (
	"slices"
	"strings"
)

// Nearest returns the element of words that is most similar to word. It returns the first of these that exists:
//
//   - the element with the smallest Distance, if the distance is at most a third of the longer word's length
//   - the shortest element that contains word, if word has at least minPart bytes
//   - ""
//
// Nearest ignores case, spaces, hyphens, underscores and dots. Of equally similar elements, it returns the first in
// alphabetical order.
func Nearest(word string, words []string) string {
	folded := fold(word)
	if folded == "" {
		return ""
	}
	best, bestDistance := "", 0
	for _, w := range slices.Sorted(slices.Values(words)) {
		other := fold(w)
		d := Distance(folded, other)
		if d <= max(len(folded), len(other))/3 && (best == "" || d < bestDistance) {
			best, bestDistance = w, d
		}
	}
	if best != "" || len(folded) < minPart {
		return best
	}
	for _, w := range slices.Sorted(slices.Values(words)) {
		if strings.Contains(fold(w), folded) && (best == "" || len(w) < len(best)) {
			best = w
		}
	}
	return best
}

// minPart is the minimum length, in bytes, of a word that Nearest searches inside other words.
const minPart = 3

// Hint returns the nearest known word as a question in brackets, for the caller to append to an unknown word. It
// returns "" if no known word is similar.
func Hint(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// fold returns the word in lower case, without hyphens, underscores, dots and spaces.
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(word))
}

// Distance returns the edit distance of a and b (optimal string alignment): the minimum number of edits that turn a
// into b. An edit inserts, deletes or changes a byte, or swaps two neighboring bytes. No byte is edited twice.
func Distance(a, b string) int {
	twoAbove, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
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
				row[j] = min(row[j], twoAbove[j-2]+1)
			}
		}
		twoAbove, above, row = above, row, twoAbove
	}
	return above[len(b)]
}
