package authn

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The parts of a token, as aws-iam-authenticator and `aws eks get-token` create it.
const (
	prefix        = "k8s-aws-v1."
	clusterHeader = "x-k8s-aws-id"
	emptyHash     = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of an empty body
	timeFormat    = "20060102T150405Z"

	// TokenLife is the lifetime of a token: STS accepts a presigned request for 15 minutes after its date, even if the
	// request states a longer expiry.
	TokenLife = 15 * time.Minute
)

// Token creates a bearer token from AWS credentials: a presigned STS request, which proves the identity of its signer
// to the cluster.
func Token(ctx context.Context, credentials aws.Credentials, region, cluster string, now time.Time) (string, error) {
	endpoint := "https://sts." + region + ".amazonaws.com/"
	query := url.Values{"Action": {"GetCallerIdentity"}, "Version": {"2011-06-15"}, "X-Amz-Expires": {"60"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"?"+query.Encode(), nil)
	if err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	r.Header.Set(clusterHeader, cluster)
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, credentials, r, emptyHash, "sts", region, now)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString([]byte(signed)), nil
}

// parse returns the presigned request in a token. It rejects a request that is not GetCallerIdentity to STS, or whose
// signature omits the cluster's header. STS checks the signature, see Webhook.caller.
func (w *Webhook) parse(token string, now time.Time) (*url.URL, error) {
	encoded, ok := strings.CutPrefix(token, prefix)
	if !ok {
		return nil, fmt.Errorf("input token was not formatted correctly: token is missing expected %q prefix", prefix)
	}
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("input token was not formatted correctly: %w", err)
	}
	u, err := url.Parse(string(decoded))
	if err != nil {
		return nil, fmt.Errorf("input token was not formatted correctly: %w", err)
	}
	if u.Host != "sts."+w.Region+".amazonaws.com" && u.Host != w.emulatorHost() {
		return nil, fmt.Errorf("unexpected hostname %q in pre-signed URL", u.Host)
	}
	if u.Path != "/" && u.Path != "" {
		return nil, fmt.Errorf("unexpected path %q in pre-signed URL", u.Path)
	}
	query := map[string]string{}
	for name, values := range u.Query() {
		if len(values) != 1 {
			return nil, fmt.Errorf("query parameter with multiple values not supported: %s", name)
		}
		query[strings.ToLower(name)] = values[0]
	}
	return u, checkQuery(query, now)
}

// checkQuery checks the parameters and the date of the presigned request. The keys of query are parameter names in
// lower case.
func checkQuery(query map[string]string, now time.Time) error {
	for name := range query {
		switch name {
		case "action", "version", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires",
			"x-amz-security-token", "x-amz-signature", "x-amz-signedheaders", "x-amz-user-agent":
		default:
			return fmt.Errorf("non-whitelisted query parameter %q", name)
		}
	}
	if query["action"] != "GetCallerIdentity" {
		return fmt.Errorf("unexpected action %q in pre-signed URL", query["action"])
	}
	if !strings.Contains(";"+strings.ToLower(query["x-amz-signedheaders"])+";", ";"+clusterHeader+";") {
		return fmt.Errorf("client did not sign the %s header in the pre-signed URL", clusterHeader)
	}
	signedAt, err := time.Parse(timeFormat, query["x-amz-date"])
	if err != nil {
		return fmt.Errorf("X-Amz-Date parameter must be present in pre-signed URL: %w", err)
	}
	if age := now.Sub(signedAt); age > TokenLife {
		return fmt.Errorf("X-Amz-Date parameter is expired (%.f minute expiration) %s", TokenLife.Minutes(), signedAt)
	} else if age < -5*time.Minute { // AWS accepts a clock that is five minutes ahead
		return fmt.Errorf("X-Amz-Date parameter is in the future: %s", signedAt)
	}
	return nil
}
