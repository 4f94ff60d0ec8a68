package connection

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
)

// TestWebIdentityProblem: an error of IAM roles for service accounts (IRSA) is one line with a fix. Without a readable
// token, and for other error codes, the error of STS is unchanged.
func TestWebIdentityProblem(t *testing.T) {
	claims := `{"iss":"https://oidc.example.com/id/A","sub":"system:serviceaccount:kube-system:joiner","aud":["sts.amazonaws.com"],"exp":1700000000}`
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(roleVariable, "arn:aws:iam::111122223333:role/r")
	for name, c := range map[string]struct{ file, code, message, want string }{
		"trust policy": {file, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity",
			"there is no role arn:aws:iam::111122223333:role/r, or its trust policy does not allow this service account: allow sts:AssumeRoleWithWebIdentity to the OIDC provider" +
				" oidc.example.com/id/A where oidc.example.com/id/A:sub is system:serviceaccount:kube-system:joiner and oidc.example.com/id/A:aud is sts.amazonaws.com"},
		"expired": {file, "ExpiredTokenException", "Token expired",
			"the token in " + file + " ended at 2023-11-14T22:13:20Z; the kubelet replaces a token"},
		"no provider": {file, "InvalidIdentityToken",
			"No OpenIDConnect provider found in your account for https://oidc.example.com/id/A", "--url https://oidc.example.com/id/A --client-id-list sts.amazonaws.com"},
		"audience": {file, "InvalidIdentityToken", "Incorrect token audience", "the token is for the audience sts.amazonaws.com"},
		"provider of another cluster": {file, "InvalidIdentityToken", "Couldn't retrieve verification key from your identity provider",
			"must be that of this cluster, oidc.example.com/id/A"},
		"no token":    {"/none", "AccessDenied", "no", "AssumeRoleWithWebIdentity: AccessDenied: no"},
		"other codes": {file, "ServiceUnavailable", "later", "AssumeRoleWithWebIdentity: ServiceUnavailable: later"},
	} {
		t.Setenv(tokenVariable, c.file)
		got := CredentialsProblem(&smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRoleWithWebIdentity",
			Err: &smithy.GenericAPIError{Code: c.code, Message: c.message}})
		if !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want one line with %q", name, got, c.want)
		}
	}
}
