package iampolicy

import "strings"

// arnParts is the number of parts of an ARN. The last part may contain colons.
const arnParts = 6

// like matches a text against a pattern: * stands for any number of characters, ? for one.
func like(pattern, text string) bool {
	// star is the position of the last * in the pattern; -1: none. retry is the position in the text where the match of
	// that * ends.
	star, retry := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			retry++
			p, t = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// arnLike matches an ARN part by part: a * does not match the colon between two parts. In IAM, a * in a Resource
// matches that colon too. So a pattern matches less here than in IAM: an Allow with a Resource never allows more
// than in IAM, but a Deny may deny less. For NotResource it is the opposite.
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
