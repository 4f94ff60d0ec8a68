package iampolicy

import "strings"

// arnParts is how many parts an ARN has; the last may hold colons.
const arnParts = 6

// like matches a text with a pattern: * stands for any characters, none too, and ? for one.
func like(pattern, text string) bool {
	star, again := -1, 0 // where the last * stood, and how much of the text it has taken
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, again = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			again++
			p, t = star+1, again
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// arnLike matches an ARN part by part, so that no * reaches from one part into the next. IAM is not as strict about the last
// * of a part: a policy that allows something here allows it there.
func arnLike(pattern, arn string) bool {
	if pattern == "*" {
		return true
	}
	p, a := strings.SplitN(pattern, ":", arnParts), strings.SplitN(arn, ":", arnParts)
	if len(p) != arnParts || len(a) != arnParts {
		return false
	}
	for i := range p {
		if !like(p[i], a[i]) {
			return false
		}
	}
	return true
}
