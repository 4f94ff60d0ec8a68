package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// Limits on user data. Any user who may write an EC2NodeClass may write hostile user data.
const (
	MaxBytes    = 16384   // bytes; EC2's limit, before base64
	MaxInput    = 1 << 16 // bytes; longer user data is not read. Four times MaxBytes
	MaxUnpacked = 1 << 18 // bytes of one unpacked part
	MaxParts    = 64      // parts of a MIME message
	MaxNesting  = 4       // nesting depth of MIME messages
)

var errTooLarge = errors.New("it unpacks to more than can be read")

// Unpack decodes base64 and gzip, like Amazon Linux' cloud-init and nodeadm.
func Unpack(data []byte) ([]byte, error) {
	if plain, ok := DecodeBase64(data); ok {
		data = plain
	}
	return Gunzip(data)
}

// DecodeBase64 decodes base64, and returns true if the result is gzip or UTF-8. It returns false for a text of less
// than 16 bytes, because a single word may happen to be valid base64.
func DecodeBase64(data []byte) ([]byte, bool) {
	encoded := bytes.TrimSpace(data)
	if len(encoded) < 16 || bytes.ContainsAny(encoded, " :<[#") {
		return nil, false
	}
	plain, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return nil, false
	}
	return plain, isGzip(plain) || utf8.Valid(plain)
}

func isGzip(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// Gunzip decompresses gzip, and returns other data unchanged. The error is the text of a problem.
func Gunzip(data []byte) ([]byte, error) {
	if !isGzip(data) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("its gzip is broken")
	}
	out, err := io.ReadAll(io.LimitReader(r, MaxUnpacked+1))
	switch {
	case err != nil:
		return nil, errors.New("its gzip is broken or ends early")
	case len(out) > MaxUnpacked:
		return nil, errTooLarge
	}
	return out, nil
}

// FormOf returns the form of a text, one of the constants Form…: by its first line, as cloud-init does, and otherwise
// by lines that are typical of a form.
func FormOf(body string) string {
	body = strings.TrimLeft(body, "\ufeff\n\r\t ")
	lower := strings.ToLower(body[:min(len(body), 64)])
	switch {
	case body == "":
		return FormNothing
	case strings.HasPrefix(lower, "mime-version:"), strings.HasPrefix(lower, "content-type:"):
		return FormMIME
	case strings.HasPrefix(body, "#!"), strings.HasPrefix(body, "#cloud-boothook"):
		return FormScript
	case strings.HasPrefix(body, "#cloud-config"):
		return FormCloudConfig
	case strings.HasPrefix(lower, "<powershell>"), strings.HasPrefix(lower, "<script>"), strings.HasPrefix(lower, "<persist>"),
		strings.HasPrefix(lower, "version: 1.") && strings.Contains(body, "\ntasks:"):
		return FormPowerShell
	case isNodeConfig(body):
		return FormNodeConfig
	case hasLine(body, func(line string) bool {
		return strings.HasPrefix(line, "[settings") || strings.HasPrefix(line, "[[settings")
	}),
		hasLine(body, func(line string) bool { return strings.HasPrefix(line, "settings.") && strings.Contains(line, "=") }):
		return FormBottlerocket
	}
	return FormUnknown
}

func isNodeConfig(body string) bool {
	return hasLine(body, func(line string) bool {
		return strings.HasPrefix(line, "apiVersion:") && strings.Contains(line, "node.eks.aws") ||
			strings.HasPrefix(line, "kind:") && strings.Contains(line, "NodeConfig")
	})
}

func hasLine(body string, matches func(string) bool) bool {
	for line := range strings.Lines(body) {
		if matches(strings.TrimRight(line, "\r\n")) {
			return true
		}
	}
	return false
}
