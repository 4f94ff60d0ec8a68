package instance

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// maxUserData is the maximum size of unpacked user data, in bytes. Longer data is truncated.
const maxUserData = 1 << 20

// part is one part of user data, as split by cloud-init.
type part struct {
	kind string // content type: "text/x-shellscript"
	name string // file name; "part-001" for a first part without a file name
	body []byte
}

// Content types of parts that the lab's images process.
const (
	kindShell      = "text/x-shellscript"
	kindNodeConfig = "application/node.eks.aws"

	// kindNotMultipart is cloud-init's type for text that it does not recognize.
	kindNotMultipart = "text/x-not-multipart"
)

// splitUserData splits user data as cloud-init does. It unpacks gzip data and MIME archives, and derives a missing
// content type from the first line of a part.
func splitUserData(data []byte) ([]part, error) {
	data, err := gunzip(data)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	head, body, ok := archive(data)
	if !ok {
		return []part{{kind: sniff(data), name: "part-001", body: data}}, nil
	}
	_, params, err := mime.ParseMediaType(head.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("read the archive's content type: %w", err)
	}
	if params["boundary"] == "" {
		return nil, errors.New("the archive's content type names no boundary")
	}
	return splitArchive(multipart.NewReader(bytes.NewReader(body), params["boundary"]))
}

// archive splits data into MIME headers and body. It returns false if data is not a multipart MIME archive.
func archive(data []byte) (textproto.MIMEHeader, []byte, bool) {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	head, body, ok := strings.Cut(text, "\n\n")
	if !ok {
		return nil, nil, false
	}
	headers := textproto.MIMEHeader{}
	last := ""
	for _, line := range strings.Split(head, "\n") {
		if last != "" && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")) {
			headers.Set(last, headers.Get(last)+" "+strings.TrimSpace(line))
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, nil, false
		}
		last = strings.TrimSpace(name)
		headers.Set(last, strings.TrimSpace(value))
	}
	kind := strings.ToLower(headers.Get("Content-Type"))
	return headers, []byte(body), strings.HasPrefix(kind, "multipart/")
}

// splitArchive returns the parts of a MIME archive. After an error it also returns the parts before the error.
func splitArchive(reader *multipart.Reader) ([]part, error) {
	var parts []part
	for {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return parts, fmt.Errorf("read part %d of the archive: %w", len(parts)+1, err)
		}
		body, err := readPart(p)
		if err != nil {
			return parts, fmt.Errorf("read part %d of the archive: %w", len(parts)+1, err)
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil || kind == "text/plain" {
			kind = sniff(body)
		}
		name := p.FileName()
		if name == "" {
			name = fmt.Sprintf("part-%03d", len(parts)+1)
		}
		parts = append(parts, part{kind: kind, name: name, body: body})
	}
}

// readPart returns the body of a part, decoded from base64 and unpacked.
func readPart(p *multipart.Part) ([]byte, error) {
	var source io.Reader = p
	if strings.EqualFold(p.Header.Get("Content-Transfer-Encoding"), "base64") {
		source = base64.NewDecoder(base64.StdEncoding, p)
	}
	body, err := io.ReadAll(io.LimitReader(source, maxUserData))
	if err != nil {
		return nil, err
	}
	return gunzip(body)
}

// sniff returns the content type of a part, derived from its first line as cloud-init does.
func sniff(body []byte) string {
	switch {
	case bytes.HasPrefix(body, []byte("#!")):
		return kindShell
	case bytes.HasPrefix(body, []byte("#cloud-config")):
		return "text/cloud-config"
	case bytes.HasPrefix(body, []byte("#cloud-boothook")):
		return "text/cloud-boothook"
	}
	return kindNotMultipart
}

// gunzip unpacks gzip data. It returns other data unchanged.
func gunzip(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack user data: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(r, maxUserData))
	if err != nil {
		return nil, fmt.Errorf("unpack user data: %w", err)
	}
	return out, nil
}
