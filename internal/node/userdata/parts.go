package userdata

import (
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/textproto"
	"strings"
)

// The content types that an instance acts on.
const (
	typeScript      = "text/x-shellscript"
	typeBoothook    = "text/cloud-boothook"
	typeCloudConfig = "text/cloud-config"
	typeNodeConfig  = "application/node.eks.aws"
	typePlain       = "text/plain"
)

// part is one piece of user data.
type part struct {
	kind string // content type, without parameters
	text text
}

// parts splits a MIME message into its parts. Any other text is one part, whose type follows from its first line.
func (r *reader) parts(t text) []part {
	if formOf(t.body) != FormMIME {
		t.at.Line += strings.Count(t.body[:len(t.body)-len(strings.TrimLeft(t.body, "\n"))], "\n")
		t.body = strings.TrimLeft(t.body, "\n")
		return []part{{kind: sniff(t.body), text: t}}
	}
	var out []part
	r.splitMIME(t.body, 0, &out)
	return out
}

// sniff returns a part's type by its first line.
func sniff(body string) string {
	switch formOf(body) {
	case FormScript:
		if strings.HasPrefix(body, "#cloud-boothook") {
			return typeBoothook
		}
		return typeScript
	case FormCloudConfig:
		return typeCloudConfig
	case FormNodeConfig:
		return typeNodeConfig
	}
	return typePlain
}

// splitMIME adds the parts of a message, and of messages within it.
func (r *reader) splitMIME(message string, depth int, out *[]part) {
	head, body, _ := headers(strings.TrimLeft(message, "\r\n\t "))
	kind, params, err := mime.ParseMediaType(head.Get("Content-Type"))
	spot := Spot{Part: len(*out)}
	switch {
	case depth >= maxNesting || len(*out) >= maxParts:
		r.problem(BadMIME, Likely, NeverJoins, spot, "it has too many parts, or too many messages within each other")
		return
	case err != nil || !strings.HasPrefix(kind, "multipart/"):
		r.problem(BadMIME, Certain, r.unreadable(), spot, "it begins as a MIME message, and its Content-Type is no multipart type").
			with("begin it with", `Content-Type: multipart/mixed; boundary="BOUNDARY"`)
		return
	case params["boundary"] == "":
		r.problem(BadMIME, Certain, r.unreadable(), spot, "the Content-Type of the MIME message names no boundary").
			with("name the one that stands before each part", kind+`; boundary="BOUNDARY"`)
		return
	}
	pieces, closed := splitAt(body, params["boundary"])
	switch {
	case len(pieces) == 0:
		r.problem(BadMIME, Certain, r.unreadable(), spot, "the boundary that the MIME message names stands before no part, so it has none").
			with("write a line of two dashes and the boundary before each part", "")
	case !closed:
		r.problem(BadMIME, Likely, JoinsAmiss, spot, "the MIME message does not end with its boundary, and may be cut off").
			with("end it with a line of two dashes, the boundary and two dashes", "")
	}
	for _, piece := range pieces {
		r.addPart(piece, depth, out)
	}
}

// unreadable is the harm of a message that cannot be read: all of it is lost, if none of it is ours.
func (r *reader) unreadable() Harm {
	if r.in.Family == familyCustom {
		return unlessStarted
	}
	return NeverJoins
}

// addPart adds one part, or what is in it.
func (r *reader) addPart(piece string, depth int, out *[]part) {
	head, body, ok := headers(piece)
	kind, _, err := mime.ParseMediaType(head.Get("Content-Type"))
	if ok && err == nil && strings.HasPrefix(kind, "multipart/") {
		r.splitMIME(piece, depth+1, out)
		return
	}
	at := Spot{Part: len(*out) + 1, Line: 1, Column: 1}
	if len(*out) >= maxParts {
		return
	}
	if !ok {
		r.problem(BadMIME, Likely, JoinsAmiss, at, "no empty line parts the headers of this part from its body, so some of it is lost").
			with("write an empty line after the headers", "")
	}
	body, err2 := transferred(head.Get("Content-Transfer-Encoding"), body)
	if err2 == nil {
		var plain []byte
		plain, err2 = gunzip([]byte(body))
		body = string(plain)
	}
	if err2 != nil {
		r.problem(NotUnpackable, Certain, JoinsAmiss, at, "what this part holds is not packed as its headers say")
		return
	}
	if err != nil || kind == typePlain || kind == "" {
		kind = sniff(body)
	}
	if kind == typeNodeConfig { // nodeadm undoes base64 there, too
		if plain, ok := decoded([]byte(body)); ok {
			body = string(plain)
		}
	}
	*out = append(*out, part{kind: kind, text: text{body: body, at: at}})
}

// transferred undoes a transfer encoding.
func transferred(encoding, body string) (string, error) {
	var source io.Reader
	switch strings.ToLower(encoding) {
	case "base64":
		source = base64.NewDecoder(base64.StdEncoding, strings.NewReader(body))
	case "quoted-printable":
		source = quotedprintable.NewReader(strings.NewReader(body))
	default:
		return body, nil
	}
	out, err := io.ReadAll(io.LimitReader(source, maxUnpacked))
	return string(out), err
}

// headers parts the headers of a message or a part from its body. The third
// result is false when no empty line stands between them.
func headers(message string) (textproto.MIMEHeader, string, bool) {
	out := textproto.MIMEHeader{}
	last := ""
	for rest := message; rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimRight(line, "\r")
		name, value, ok := strings.Cut(line, ":")
		switch {
		case line == "":
			return out, rest, true
		case last != "" && (line[0] == ' ' || line[0] == '\t'):
			out.Set(last, out.Get(last)+" "+strings.TrimSpace(line))
		case ok && !strings.ContainsAny(name, " \t#"):
			last = name
			out.Set(name, strings.TrimSpace(value))
		default:
			return out, line + "\n" + rest, false
		}
	}
	return out, "", true
}

// splitAt cuts a body at the lines of its boundary. The second result says whether the closing one is there.
func splitAt(body, boundary string) (pieces []string, closed bool) {
	var piece strings.Builder
	inside := false
	flush := func() {
		if inside {
			pieces = append(pieces, strings.TrimSuffix(piece.String(), "\n"))
			piece.Reset()
		}
	}
	for line := range strings.Lines(body) {
		switch trimmed := strings.TrimRight(line, " \t\r\n"); {
		case trimmed == "--"+boundary+"--":
			flush()
			return pieces, true
		case trimmed == "--"+boundary:
			flush()
			inside = true
		case inside:
			piece.WriteString(line)
		}
	}
	flush()
	return pieces, false
}
