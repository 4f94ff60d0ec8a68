package diagnosis

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Hidden replaces secrets in texts.
const Hidden = "[hidden]"

// secret is one form that secrets have in logs, messages and scripts.
type secret struct {
	pattern     *regexp.Regexp
	replacement string // of a match; may refer to groups of the pattern
}

var secrets = []secret{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), Hidden},
	{regexp.MustCompile(`k8s-aws-v1\.[A-Za-z0-9_=-]+`), Hidden},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}(\.[A-Za-z0-9_-]+)*`), Hidden},
	{regexp.MustCompile(`\b(AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b`), Hidden},
	{regexp.MustCompile(`\b(gh[pousr]_|github_pat_|glpat-|xox[abprs]-)[A-Za-z0-9_-]{10,}`), Hidden},
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), Hidden}, // a kubeadm bootstrap token
	// In a URL or a proxy address, everything from the password to the last @ before a space or a quote is replaced,
	// because a password may contain an @.
	{regexp.MustCompile(`(://[^/\s:@"']*:)[^\s"']+@`), "${1}" + Hidden + "@"},
	{regexp.MustCompile(`(://)[^/\s:@"']{8,}@`), "${1}" + Hidden + "@"}, // 8: keeps users such as "git", which are no tokens
	{regexp.MustCompile(`(?i)(proxy["']?\s*[=:]\s*["']?)[^\s"':@/]+:[^\s"']+@`), "${1}" + Hidden + "@"},
	{regexp.MustCompile(`(?i)(X-Amz-(Signature|Security-Token|Credential)=)[^&\s"']+`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)\b((bearer|basic) )[A-Za-z0-9._~+/=-]{8,}`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)((password|passwd|passphrase|secret[a-z_-]*|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|auth[_-]?key|credential[s]?|license[_-]?key|dsn)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&"']+)`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)(--(password|token|secret|api-key|auth-key|access-key|client-secret)[= ])("[^"]*"|'[^']*'|\S+)`), "${1}" + Hidden},
}

// Mask replaces secrets in a text: tokens, keys, passwords, signatures. Collectors of Evidence call Mask for logs,
// messages and user data.
func Mask(text string) string {
	for _, s := range secrets {
		text = s.pattern.ReplaceAllString(text, s.replacement)
	}
	return text
}

// urlUser matches the user and password of a URL, in one of two forms. The first has no spaces, and ends at the last @
// before a space or a quote. The second is for invalid URLs: a password of 1 to 100 characters may contain spaces.
var urlUser = regexp.MustCompile(`(://)[^\s"']*@|(://)[^/\s:@"']*:[^/"'@\n]{1,100}@`)

// MaskURLs replaces only users and passwords in the URLs of a text. It is for errors of libraries that repeat invalid
// input, such as the address of a proxy.
func MaskURLs(text string) string {
	return urlUser.ReplaceAllString(text, "${1}${2}"+Hidden+"@")
}

// MaskTail returns the end of a text, without secrets. Before secrets are replaced, the end has at most maxBytes. A cut
// text begins with a whole line.
func MaskTail(text string, maxBytes int) string {
	if len(text) > maxBytes {
		text = text[len(text)-maxBytes:]
		if _, whole, ok := strings.Cut(text, "\n"); ok {
			text = whole
		}
	}
	return Mask(strings.ToValidUTF8(text, "?"))
}

// accountIDs matches numbers of 12 digits, the form of AWS account IDs.
var accountIDs = regexp.MustCompile(`\b[0-9]{12}\b`)

// MaskAccounts returns the evidence with each AWS account ID replaced by its number: 000000000001 for the first ID.
func MaskAccounts(e Evidence) (Evidence, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return Evidence{}, fmt.Errorf("mask account IDs: %w", err)
	}
	masked := map[string]string{} // by account ID
	text = accountIDs.ReplaceAllFunc(text, func(id []byte) []byte {
		if masked[string(id)] == "" {
			masked[string(id)] = fmt.Sprintf("%012d", len(masked)+1)
		}
		return []byte(masked[string(id)])
	})
	var out Evidence
	if err := json.Unmarshal(text, &out); err != nil {
		return Evidence{}, fmt.Errorf("mask account IDs: %w", err)
	}
	return out, nil
}
