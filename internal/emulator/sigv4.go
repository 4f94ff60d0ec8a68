package emulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signature is the AWS Signature Version 4 of a request, with its parameters:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html.
type signature struct {
	accessKey string
	date      string // of the credential scope: "20260102"
	region    string
	service   string
	headers   []string // names of the signed headers, in lower case
	value     string   // hexadecimal
	token     string   // session token; empty: none
	at        time.Time
	presigned bool // the signature is in the URL, and not in the headers
}

const (
	algorithm       = "AWS4-HMAC-SHA256"
	amzTime         = "20060102T150405Z"                                                 // format of the time of a signature
	emptyHash       = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of an empty body
	unsignedPayload = "UNSIGNED-PAYLOAD"                                                 // used as the hash of a body that is not signed
)

// scopeOf returns the service and region that a request is signed for; empty for an unsigned request.
func scopeOf(r *http.Request) (service, region string) {
	sig, err := readSignature(r)
	if err != nil {
		return "", ""
	}
	return sig.service, sig.region
}

var errUnsigned = errors.New("request is not signed")

// readSignature reads the signature from the headers, or from the URL of a presigned request.
func readSignature(r *http.Request) (signature, error) {
	if q := r.URL.Query(); q.Has("X-Amz-Signature") {
		return readPresigned(q)
	}
	header := r.Header.Get("Authorization")
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	if !ok {
		return signature{}, errUnsigned
	}
	sig := signature{token: r.Header.Get("X-Amz-Security-Token")}
	credential := ""
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			sig.headers = strings.Split(value, ";")
		case "Signature":
			sig.value = value
		}
	}
	return sig, sig.parseCredential(credential, r.Header.Get("X-Amz-Date"))
}

func readPresigned(q url.Values) (signature, error) {
	sig := signature{
		token: q.Get("X-Amz-Security-Token"), value: q.Get("X-Amz-Signature"), presigned: true,
		headers: strings.Split(q.Get("X-Amz-SignedHeaders"), ";"),
	}
	if q.Get("X-Amz-Algorithm") != algorithm {
		return signature{}, errors.New("X-Amz-Algorithm is not " + algorithm)
	}
	if n, err := strconv.Atoi(q.Get("X-Amz-Expires")); err != nil || n < 1 || n > 7*24*3600 {
		return signature{}, errors.New("X-Amz-Expires is not a number of seconds up to a week")
	}
	return sig, sig.parseCredential(q.Get("X-Amz-Credential"), q.Get("X-Amz-Date"))
}

// parseCredential sets the fields that the credential and the timestamp contain. It returns an error if one of them is
// malformed, or if the signature has no value or no headers.
func (s *signature) parseCredential(credential, timestamp string) error {
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[4] != "aws4_request" {
		return errors.New("credential must have the form KEY/DATE/REGION/SERVICE/aws4_request")
	}
	s.accessKey, s.date, s.region, s.service = parts[0], parts[1], parts[2], parts[3]
	at, err := time.Parse(amzTime, timestamp)
	if err != nil {
		return errors.New("date must have the form YYYYMMDDTHHMMSSZ")
	}
	s.at = at
	if !strings.HasPrefix(timestamp, s.date) {
		return errors.New("date in credential scope does not match the date of the request")
	}
	if s.value == "" || len(s.headers) == 0 {
		return errors.New("the signature is incomplete")
	}
	return nil
}

// matches reports whether the request was signed with the secret.
func (s signature) matches(secret string, r *http.Request, body []byte) bool {
	sum := sha256.Sum256([]byte(s.canonical(r, body)))
	scope := s.date + "/" + s.region + "/" + s.service + "/aws4_request"
	stringToSign := algorithm + "\n" + s.at.Format(amzTime) + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + secret)
	for _, part := range []string{s.date, s.region, s.service, "aws4_request"} {
		key = mac(key, part)
	}
	got, err := hex.DecodeString(s.value)
	return err == nil && hmac.Equal(mac(key, stringToSign), got)
}

// canonical returns the canonical request, which is the text that is signed.
func (s signature) canonical(r *http.Request, body []byte) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n")
	b.WriteString(canonicalPath(r.URL) + "\n")
	b.WriteString(canonicalQuery(r.URL.Query()) + "\n")
	headers := slices.Sorted(slices.Values(s.headers))
	for _, name := range headers {
		b.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(headers, ";") + "\n")
	b.WriteString(s.payloadHash(r, body))
	return b.String()
}

// payloadHash returns the hash of the body for the canonical request; unsignedPayload if the body is not signed.
func (s signature) payloadHash(r *http.Request, body []byte) string {
	if r.Header.Get("X-Amz-Content-Sha256") == unsignedPayload {
		return unsignedPayload
	}
	if len(body) == 0 {
		return emptyHash
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// canonicalPath returns the path, encoded a second time, as all services except S3 require.
func canonicalPath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		return "/"
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = escape(p)
	}
	return strings.Join(parts, "/")
}

// canonicalQuery returns the sorted parameters without the signature.
func canonicalQuery(q url.Values) string {
	var pairs []string
	for name, values := range q {
		if name == "X-Amz-Signature" {
			continue
		}
		for _, v := range values {
			pairs = append(pairs, escape(name)+"="+escape(v))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// headerValue returns the value of a header in the canonical request: several values are joined with commas, and each
// run of spaces becomes one space. Host and Content-Length are not in r.Header.
func headerValue(r *http.Request, name string) string {
	switch strings.ToLower(name) {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	values := slices.Clone(r.Header.Values(name))
	for i, v := range values {
		values[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(values, ",")
}

// escape percent-encodes all but the unreserved characters.
func escape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
