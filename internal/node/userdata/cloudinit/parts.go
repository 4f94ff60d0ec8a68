package cloudinit

import (
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/textproto"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// parts splits a MIME message into its parts. Any other text is a single part.
func parts(r *userdata.Reader, t userdata.Text) []userdata.Part {
	if userdata.FormOf(t.Body) != userdata.FormMIME {
		body := strings.TrimLeft(t.Body, "\n")
		t.At.Line += len(t.Body) - len(body) // one line for each newline
		t.Body = body
		return []userdata.Part{{Kind: sniff(t.Body), Text: t}}
	}
	var out []userdata.Part
	splitMIME(r, t.Body, 0, &out)
	return out
}

// sniff returns a part's type, derived from its text by userdata.FormOf.
func sniff(body string) string {
	switch userdata.FormOf(body) {
	case userdata.FormScript:
		if strings.HasPrefix(body, "#cloud-boothook") {
			return userdata.TypeBoothook
		}
		return userdata.TypeScript
	case userdata.FormCloudConfig:
		return userdata.TypeCloudConfig
	case userdata.FormNodeConfig:
		return userdata.TypeNodeConfig
	}
	return userdata.TypePlain
}

// splitMIME adds the parts of a message, and of messages within the message, to out.
func splitMIME(r *userdata.Reader, message string, depth int, out *[]userdata.Part) {
	head, body, _ := splitHeaders(strings.TrimLeft(message, "\r\n\t "))
	kind, params, err := mime.ParseMediaType(head.Get("Content-Type"))
	position := userdata.Position{Part: len(*out)}
	switch {
	case depth >= userdata.MaxNesting || len(*out) >= userdata.MaxParts:
		r.Report(userdata.BadMIME, userdata.Likely, userdata.NeverJoins, position,
			"it has too many parts, or too many messages within each other")
		return
	case err != nil || !strings.HasPrefix(kind, "multipart/"):
		r.Report(userdata.BadMIME, userdata.Certain, unreadableHarm(r), position,
			"it begins as a MIME message, and its Content-Type is not a multipart type").
			Suggest("begin it with", `Content-Type: multipart/mixed; boundary="BOUNDARY"`)
		return
	case params["boundary"] == "":
		r.Report(userdata.BadMIME, userdata.Certain, unreadableHarm(r), position, "the Content-Type of the MIME message names no boundary").
			Suggest("name the boundary that precedes each part", kind+`; boundary="BOUNDARY"`)
		return
	}
	pieces, closed := splitAt(body, params["boundary"])
	switch {
	case len(pieces) == 0:
		r.Report(userdata.BadMIME, userdata.Certain, unreadableHarm(r), position,
			"no part begins with the boundary that the MIME message names, so the message has no parts").
			Suggest("write a line of two dashes and the boundary before each part", "")
	case !closed:
		r.Report(userdata.BadMIME, userdata.Likely, userdata.JoinsDifferently, position,
			"the MIME message does not end with its boundary, and may be cut off").
			Suggest("end it with a line of two dashes, the boundary and two dashes", "")
	}
	for _, piece := range pieces {
		addPart(r, piece, depth, out)
	}
}

// unreadableHarm returns the harm of a message that cannot be read. For the family Custom, Joiner adds no part, and the
// image may start the kubelet by itself. For the other families, Joiner's part is lost as well.
func unreadableHarm(r *userdata.Reader) userdata.Severity {
	if r.In.Family == userdata.FamilyCustom {
		return userdata.UnlessStarted
	}
	return userdata.NeverJoins
}

// addPart adds one part to out, or the parts of a part that is itself a message.
func addPart(r *userdata.Reader, piece string, depth int, out *[]userdata.Part) {
	head, body, hasEmptyLine := splitHeaders(piece)
	kind, _, kindErr := mime.ParseMediaType(head.Get("Content-Type"))
	if hasEmptyLine && kindErr == nil && strings.HasPrefix(kind, "multipart/") {
		splitMIME(r, piece, depth+1, out)
		return
	}
	at := userdata.Position{Part: len(*out) + 1, Line: 1, Column: 1}
	if len(*out) >= userdata.MaxParts {
		return
	}
	if !hasEmptyLine {
		r.Report(userdata.BadMIME, userdata.Likely, userdata.JoinsDifferently, at,
			"no empty line separates the headers of this part from its body, so some of it is lost").
			Suggest("write an empty line after the headers", "")
	}
	body, err := decodeBody(head.Get("Content-Transfer-Encoding"), body)
	if err == nil {
		var plain []byte
		plain, err = userdata.Gunzip([]byte(body))
		body = string(plain)
	}
	if err != nil {
		r.Report(userdata.NotUnpackable, userdata.Certain, userdata.JoinsDifferently, at, "this part is not encoded as its headers say")
		return
	}
	if kindErr != nil || kind == userdata.TypePlain || kind == "" {
		kind = sniff(body)
	}
	if kind == userdata.TypeNodeConfig { // nodeadm also decodes base64 that no header announces
		if plain, ok := userdata.DecodeBase64([]byte(body)); ok {
			body = string(plain)
		}
	}
	*out = append(*out, userdata.Part{Kind: kind, Text: userdata.Text{Body: body, At: at}})
}

// decodeBody decodes a body by its Content-Transfer-Encoding: base64 or quoted-printable. With another encoding it
// returns the body unchanged.
func decodeBody(encoding, body string) (string, error) {
	var source io.Reader
	switch strings.ToLower(encoding) {
	case "base64":
		source = base64.NewDecoder(base64.StdEncoding, strings.NewReader(body))
	case "quoted-printable":
		source = quotedprintable.NewReader(strings.NewReader(body))
	default:
		return body, nil
	}
	out, err := io.ReadAll(io.LimitReader(source, userdata.MaxUnpacked))
	return string(out), err
}

// splitHeaders splits a message or a part into headers and body. It returns false if no empty line separates the
// headers from the first line that is no header; the body then begins with that line.
func splitHeaders(message string) (textproto.MIMEHeader, string, bool) {
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

// splitAt returns the pieces of a body between the lines of its boundary. closed reports whether the closing boundary
// is present.
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
