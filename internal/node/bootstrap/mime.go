package bootstrap

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"
)

// The content types of user data that cloud-init and nodeadm read.
const (
	shellScript = `text/x-shellscript; charset="us-ascii"`
	cloudConfig = `text/cloud-config; charset="us-ascii"`
	nodeConfig  = "application/node.eks.aws"
)

type part struct {
	header []string // lines such as "Content-Type: text/plain"
	body   string
}

func newPart(contentType, body string) part {
	return part{[]string{"Content-Type: " + contentType}, body}
}

func mimeMessage(parts []part) string {
	boundary := boundaryFor(parts)
	var b strings.Builder
	b.WriteString("MIME-Version: 1.0\n")
	b.WriteString(`Content-Type: multipart/mixed; boundary="` + boundary + "\"\n\n")
	for _, p := range parts {
		b.WriteString("--" + boundary + "\n")
		for _, line := range p.header {
			b.WriteString(line + "\n")
		}
		b.WriteString("\n" + p.body)
		if !strings.HasSuffix(p.body, "\n") {
			b.WriteString("\n")
		}
	}
	b.WriteString("--" + boundary + "--\n")
	return b.String()
}

// boundaryFor returns "//", which EKS uses, or a longer boundary if a line of a part begins with "--//".
func boundaryFor(parts []part) string {
	boundary := "//"
	for {
		if !slices.ContainsFunc(parts, func(p part) bool { return strings.Contains("\n"+p.body, "\n--"+boundary) }) {
			return boundary
		}
		sum := sha256.Sum256([]byte(boundary))
		boundary = "//" + hex.EncodeToString(sum[:8])
	}
}

// userParts returns the user's own user data as parts: the parts of a MIME message, or any other text as one part.
// contentTypeOf must return the content type of a text that is not a MIME message.
func userParts(text string, contentTypeOf func(string) string) ([]part, error) {
	text = strings.ReplaceAll(text, "\r", "")
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if !isMIME(text) {
		return []part{newPart(contentTypeOf(text), text)}, nil
	}
	m, err := mail.ReadMessage(strings.NewReader(strings.TrimLeft(text, "\n \t")))
	if err != nil {
		return nil, fmt.Errorf("spec.userData begins as a MIME message but cannot be parsed: %w", err)
	}
	mediaType, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(mediaType, "multipart/") || params["boundary"] == "" {
		return nil, fmt.Errorf("spec.userData is a MIME message of type %q, want multipart/mixed with a boundary", m.Header.Get("Content-Type"))
	}
	return splitParts(multipart.NewReader(m.Body, params["boundary"]))
}

func isMIME(text string) bool {
	text = strings.ToLower(strings.TrimLeft(text, "\n \t"))
	return strings.HasPrefix(text, "mime-version:") || strings.HasPrefix(text, "content-type:")
}

// splitParts returns the parts of a MIME message, each with its headers sorted by name and its body unchanged.
func splitParts(r *multipart.Reader) ([]part, error) {
	var out []part
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read part %d of the MIME message in spec.userData: %w", len(out)+1, err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, fmt.Errorf("read part %d of the MIME message in spec.userData: %w", len(out)+1, err)
		}
		next := part{body: string(body)}
		for _, k := range slices.Sorted(maps.Keys(p.Header)) {
			for _, v := range p.Header[k] {
				next.header = append(next.header, k+": "+v)
			}
		}
		out = append(out, next)
	}
}
