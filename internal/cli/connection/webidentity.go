package connection

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Environment variables of pods with IAM roles for service accounts (IRSA).
const (
	tokenVariable = "AWS_WEB_IDENTITY_TOKEN_FILE"
	roleVariable  = "AWS_ROLE_ARN"
)

// webIdentityProblem returns one line on why STS does not accept the token of the service account, and how to fix it.
// callErr is the error of the SDK.
func webIdentityProblem(callErr *smithy.OperationError) string {
	classified := *awserr.Of(awserr.Classify(callErr.Operation(), callErr))
	token := readServiceToken(os.Getenv(tokenVariable))
	if hint := token.hint(classified.Code, classified.Message, os.Getenv(roleVariable)); hint != "" {
		classified.Hint = hint
	}
	return classified.Error()
}

// serviceToken has the claims of a service account's token. The signature of the token is not verified.
type serviceToken struct {
	file      string // path of the token
	Issuer    string `json:"iss"` // "https://oidc.eks.us-east-1.amazonaws.com/id/…"
	Subject   string `json:"sub"` // "system:serviceaccount:NAMESPACE:NAME"
	Audiences any    `json:"aud"` // a string, or a list of strings
	Expires   int64  `json:"exp"` // seconds since 1970
}

// readServiceToken reads a token from its file. The claims stay empty if that fails: the error of STS is more helpful
// than an error about the file.
func readServiceToken(file string) serviceToken {
	out := serviceToken{file: file}
	text, err := os.ReadFile(file)
	if err != nil {
		return out
	}
	parts := strings.Split(strings.TrimSpace(string(text)), ".")
	if len(parts) != 3 { // header, claims, signature
		return out
	}
	if claims, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
		_ = json.Unmarshal(claims, &out)
	}
	return out
}

// host returns the issuer as IAM writes it in condition keys and in the provider's ARN.
func (t serviceToken) host() string { return strings.TrimPrefix(t.Issuer, "https://") }

// audience returns the first audience of the token, or a placeholder if the token has none.
func (t serviceToken) audience() string {
	if list, ok := t.Audiences.([]any); ok && len(list) > 0 {
		return fmt.Sprint(list[0])
	}
	if text, ok := t.Audiences.(string); ok {
		return text
	}
	return "AUDIENCE"
}

// hint returns how to fix the error of STS with this code and message; empty if there is no hint for it. role is the
// ARN of the role that was requested.
func (t serviceToken) hint(code, message, role string) string {
	switch {
	case t.Issuer == "":
		return ""
	case code == "AccessDenied":
		return fmt.Sprintf("there is no role %s, or its trust policy does not allow this service account: allow sts:AssumeRoleWithWebIdentity to the OIDC provider %s"+
			" where %s:sub is %s and %s:aud is %s", role, t.host(), t.host(), t.Subject, t.host(), t.audience())
	case strings.HasPrefix(code, "ExpiredToken"):
		return fmt.Sprintf("the token in %s ended at %s; the kubelet replaces a token before its end, unless the file is a copy or is mounted with subPath; or a clock is wrong",
			t.file, time.Unix(t.Expires, 0).UTC().Format(time.RFC3339))
	case code != "InvalidIdentityToken":
		return ""
	case strings.Contains(message, "No OpenIDConnect provider"):
		return fmt.Sprintf("create an OIDC provider: aws iam create-open-id-connect-provider --url %s --client-id-list sts.amazonaws.com, with the credentials of the account of %s", t.Issuer, role)
	case strings.Contains(message, "audience"):
		return fmt.Sprintf("the token is for the audience %s, and the account's OIDC provider %s does not have that audience: give the service account the annotation eks.amazonaws.com/audience=sts.amazonaws.com",
			t.audience(), t.host())
	}
	return fmt.Sprintf("the account's OIDC provider must be that of this cluster, %s: a recreated cluster has another provider", t.host())
}
