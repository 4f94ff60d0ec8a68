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

// Limits of what is read: every user who may write an EC2NodeClass writes user data.
const (
	maxBytes    = 16384   // EC2's own, before base64
	maxInput    = 1 << 16 // beyond this nothing is read: EC2 takes a quarter of it
	maxUnpacked = 1 << 18 // of one packed piece
	maxParts    = 64
	maxNesting  = 4 // of MIME messages within each other
)

var errUnfolds = errors.New("it unfolds to more than can be read")

// unpack undoes base64 and gzip, as Amazon Linux' cloud-init and nodeadm do.
func unpack(data []byte) ([]byte, error) {
	if plain, ok := decoded(data); ok {
		data = plain
	}
	return gunzip(data)
}

// decoded undoes base64. Text that merely has the letters of base64, such as one
// word, is none: what comes out must be something that an instance reads.
func decoded(data []byte) ([]byte, bool) {
	packed := bytes.TrimSpace(data)
	if len(packed) < 16 || bytes.ContainsAny(packed, " :<[#") {
		return nil, false
	}
	plain, err := base64.StdEncoding.DecodeString(string(packed))
	if err != nil {
		return nil, false
	}
	return plain, isGzip(plain) || utf8.Valid(plain)
}

func isGzip(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// gunzip undoes gzip where there is any.
func gunzip(data []byte) ([]byte, error) {
	if !isGzip(data) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("its gzip is broken")
	}
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, errors.New("its gzip is broken or ends early")
	case len(out) > maxUnpacked:
		return nil, errUnfolds
	}
	return out, nil
}

// read finds out what the data is, and has it read as the instance would.
func (r *reader) read() {
	data := r.in.Data
	if data == nil {
		data = []byte(r.in.Own)
	}
	if len(data) > maxBytes {
		r.problem(TooLong, Certain, NeverJoins, Spot{}, "it has %d bytes, and EC2 takes %d", len(data), maxBytes).
			with("shorten it, or pack it with gzip, which cloud-init and nodeadm undo", "")
	}
	if len(data) > maxInput {
		return
	}
	plain, err := unpack(data)
	if err != nil {
		r.problem(NotUnpackable, Certain, NeverJoins, Spot{}, "%s", err.Error()).with("pack it again, or write it as it is", "")
		return
	}
	r.readForm(text{body: string(plain), at: Spot{Line: 1, Column: 1}})
}

// readForm reads a text by its form and by who reads it.
func (r *reader) readForm(t text) {
	r.out.Form = formOf(t.body)
	system := r.system()
	switch {
	case r.out.Form == FormNothing && system == "":
	case system == bottlerocketSystem:
		r.bottlerocket(t)
	case system == windowsSystem:
		r.windows(t)
	case system == "" && r.out.Form == FormBottlerocket:
		r.bottlerocket(t)
	case system == "" && r.out.Form == FormPowerShell:
		r.windows(t)
	default:
		r.cloudInit(t)
	}
}

// formOf returns the format by the first line, as cloud-init does, and then by typical content.
func formOf(body string) string {
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

// isNodeConfig reports whether a text says of itself that nodeadm is to read it.
func isNodeConfig(body string) bool {
	return hasLine(body, func(line string) bool {
		return strings.HasPrefix(line, "apiVersion:") && strings.Contains(line, "node.eks.aws") ||
			strings.HasPrefix(line, "kind:") && strings.Contains(line, "NodeConfig")
	})
}

func hasLine(body string, is func(string) bool) bool {
	for line := range strings.Lines(body) {
		if is(strings.TrimRight(line, "\r\n")) {
			return true
		}
	}
	return false
}
