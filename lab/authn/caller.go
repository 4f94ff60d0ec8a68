package authn

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Caller is the identity that created a token.
type Caller struct {
	ARN         string // as STS returns it: "arn:aws:sts::111122223333:assumed-role/node/i-0…"
	RoleARN     string // without session and path: "arn:aws:iam::111122223333:role/node"; of a user: the user's ARN
	Account     string // account id
	UserID      string // "AROA…:i-0…"
	Session     string // session name; for instances, the instance id
	AccessKeyID string // access key that signed the request
}

// caller sends the signed request to STS, which returns the identity of the signer.
func (w *Webhook) caller(ctx context.Context, signed *url.URL) (Caller, error) {
	endpoint, err := url.Parse(w.Endpoint)
	if err != nil {
		return Caller{}, fmt.Errorf("parse the endpoint of AWS: %w", err)
	}
	target := *signed
	target.Scheme, target.Host = endpoint.Scheme, endpoint.Host
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return Caller{}, fmt.Errorf("call STS: %w", err)
	}
	r.Host = signed.Host // the host is part of the signature
	r.Header.Set(clusterHeader, w.Cluster)
	r.Header.Set("Accept", "application/json")
	response, err := w.client.Do(r)
	if err != nil {
		return Caller{}, fmt.Errorf("call STS: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return Caller{}, fmt.Errorf("call STS: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return Caller{}, fmt.Errorf("error from AWS (expected 200, got %d). Body: %s", response.StatusCode, strings.TrimSpace(string(body)))
	}
	return readCaller(body, signed)
}

// callerIdentity is the response of STS to GetCallerIdentity.
type callerIdentity struct {
	Result struct {
		Arn     string
		UserID  string `xml:"UserId" json:"UserId"`
		Account string
	} `xml:"GetCallerIdentityResult" json:"GetCallerIdentityResult"`
}

// readCaller parses STS's response: JSON when the request asks for JSON, XML by default.
func readCaller(body []byte, signed *url.URL) (Caller, error) {
	var identity callerIdentity
	var err error
	if strings.HasPrefix(strings.TrimSpace(string(body)), "{") {
		wrapped := struct{ GetCallerIdentityResponse *callerIdentity }{&identity}
		err = json.Unmarshal(body, &wrapped)
	} else {
		err = xml.Unmarshal(body, &identity)
	}
	if err != nil {
		return Caller{}, fmt.Errorf("read the response of STS: %w", err)
	}
	c := Caller{ARN: identity.Result.Arn, Account: identity.Result.Account, UserID: identity.Result.UserID}
	c.RoleARN, c.Session, err = splitPrincipal(c.ARN)
	if err != nil {
		return Caller{}, err
	}
	c.AccessKeyID, _, _ = strings.Cut(signed.Query().Get("X-Amz-Credential"), "/")
	return c, nil
}

// splitPrincipal splits the ARN of an STS session into the ARN of its role and the session name. It returns an IAM ARN
// unchanged, without a session name. STS omits the role's path, so a mapping must omit the path too.
func splitPrincipal(arn string) (role, session string, err error) {
	parts := strings.SplitN(arn, ":", 6) // "arn", partition, service, region, account, resource
	if len(parts) != 6 || parts[0] != "arn" {
		return "", "", fmt.Errorf("arn %q is invalid", arn)
	}
	if parts[2] == "iam" {
		return arn, "", nil
	}
	resource := strings.Split(parts[5], "/")
	if parts[2] != "sts" || resource[0] != "assumed-role" || len(resource) < 3 {
		return "", "", fmt.Errorf("unrecognized resource %q in arn %q", parts[5], arn)
	}
	role = fmt.Sprintf("arn:%s:iam::%s:role/%s", parts[1], parts[4], resource[1])
	return role, resource[len(resource)-1], nil
}
