package diagnosis

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Hidden stands in a text for what was a secret.
const Hidden = "[hidden]"

// secret is a form in which secrets stand in logs, messages and scripts.
type secret struct {
	form *regexp.Regexp
	with string
}

// secrets are the forms that are known.
var secrets = []secret{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), Hidden},
	{regexp.MustCompile(`k8s-aws-v1\.[A-Za-z0-9_=-]+`), Hidden},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}(\.[A-Za-z0-9_-]+)*`), Hidden},
	{regexp.MustCompile(`\b(AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b`), Hidden},
	{regexp.MustCompile(`\b(gh[pousr]_|github_pat_|glpat-|xox[abprs]-)[A-Za-z0-9_-]{10,}`), Hidden},
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), Hidden}, // a kubeadm bootstrap token
	// Of a URL, and of a proxy without one, all that stands before the last @ of the word: passwords may have any sign in them.
	{regexp.MustCompile(`(://[^/\s:@"']*:)[^\s"']+@`), "${1}" + Hidden + "@"},
	{regexp.MustCompile(`(://)[^/\s:@"']{8,}@`), "${1}" + Hidden + "@"},
	{regexp.MustCompile(`(?i)(proxy["']?\s*[=:]\s*["']?)[^\s"':@/]+:[^\s"']+@`), "${1}" + Hidden + "@"},
	{regexp.MustCompile(`(?i)(X-Amz-(Signature|Security-Token|Credential)=)[^&\s"']+`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)\b((bearer|basic) )[A-Za-z0-9._~+/=-]{8,}`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)((password|passwd|passphrase|secret[a-z_-]*|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|auth[_-]?key|credential[s]?|license[_-]?key|dsn)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&"']+)`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)(--(password|token|secret|api-key|auth-key|access-key|client-secret)[= ])("[^"]*"|'[^']*'|\S+)`), "${1}" + Hidden},
}

// Mask takes secrets out of a text: tokens, keys, passwords, signatures. It is for whoever writes Evidence: what it holds of logs,
// messages and user data has gone through here.
func Mask(text string) string {
	for _, s := range secrets {
		text = s.form.ReplaceAllString(text, s.with)
	}
	return text
}

// userOf is who a URL says that somebody is, with the password, which may have any sign in it but quotes when the URL is no valid one.
var userOf = regexp.MustCompile(`(://)[^\s"']*@|(://)[^/\s:@"']*:[^/"'@\n]{1,100}@`)

// MaskURLs takes users and their passwords out of the URLs of a text, and nothing else: it is for messages of libraries, which quote what they
// could not read, such as the address of a proxy.
func MaskURLs(text string) string {
	return userOf.ReplaceAllString(text, "${1}${2}"+Hidden+"@")
}

// MaskAll takes secrets out of a text of lines, and shortens it to the last bytes of it, from a whole line on.
func MaskAll(text string, most int) string {
	if len(text) > most {
		text = text[len(text)-most:]
		if _, whole, ok := strings.Cut(text, "\n"); ok {
			text = whole
		}
	}
	return Mask(strings.ToValidUTF8(text, "?"))
}

// accounts are the ids of AWS accounts.
var accounts = regexp.MustCompile(`\b[0-9]{12}\b`)

// MaskAccounts writes numbers in place of the ids of AWS accounts: the same id always becomes the same number.
func MaskAccounts(e Evidence) (Evidence, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return Evidence{}, fmt.Errorf("mask accounts: %w", err)
	}
	known := map[string]string{}
	text = accounts.ReplaceAllFunc(text, func(id []byte) []byte {
		if known[string(id)] == "" {
			known[string(id)] = fmt.Sprintf("%012d", len(known)+1)
		}
		return []byte(known[string(id)])
	})
	var out Evidence
	if err := json.Unmarshal(text, &out); err != nil {
		return Evidence{}, fmt.Errorf("mask accounts: %w", err)
	}
	return out, nil
}
