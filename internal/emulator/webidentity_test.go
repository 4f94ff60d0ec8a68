package emulator_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// The issuer of service account tokens that the account trusts, and an issuer that it does not trust.
const (
	issuer      = "https://oidc.eks.us-east-1.amazonaws.com/id/ABCD"
	otherIssuer = "https://oidc.eks.us-east-1.amazonaws.com/id/EFGH"
)

// signer creates service account tokens, as a cluster's API server does.
type signer struct{ key *rsa.PrivateKey }

func (s signer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(map[string]string{"alg": "RS256", "kid": "k1"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// keySet returns the JSON Web Key Set with the signer's key, which has the id k1, and an EC key, which STS must skip.
func (s signer) keySet() []byte {
	number := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	return fmt.Appendf(nil, `{"keys":[{"kty":"EC","kid":"k0"},{"kty":"RSA","kid":"k1","alg":"RS256","n":%q,"e":%q}]}`,
		number(s.key.N.Bytes()), number(big.NewInt(int64(s.key.E)).Bytes()))
}

// TestWebIdentity: a role can be assumed with a service account token if the issuer signed the token, the token has
// not expired, its audience is STS, and the trust policy allows the service account. Otherwise STS returns an error.
// The session's keys are valid.
func TestWebIdentity(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	otherKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var provider identity.Provider
	b.server.Do(func(w *world.World, now time.Time) {
		if provider, err = w.Account(account).CreateIdentityProvider(issuer, "sts.amazonaws.com"); err != nil {
			t.Fatal(err)
		}
		if err := w.SetIssuerKeys(issuer, signer{key}.keySet()); err != nil {
			t.Fatal(err)
		}
		host := strings.TrimPrefix(issuer, "https://")
		trust := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":"sts:AssumeRole"},
			{"Effect":"Allow","Principal":{"Federated":"` + provider.ARN + `"},"Action":"sts:AssumeRoleWithWebIdentity",
			"Condition":{"StringEquals":{"` + host + `:aud":"sts.amazonaws.com","` + host + `:sub":"system:serviceaccount:kube-system:joiner"}}}]}`
		if _, err := w.Account(account).CreateRole(now, identity.Role{Name: "controller", TrustPolicy: trust}); err != nil {
			t.Fatal(err)
		}
	})
	validClaims := func() map[string]any {
		return map[string]any{"iss": issuer, "sub": "system:serviceaccount:kube-system:joiner",
			"aud": []string{"sts.amazonaws.com"}, "exp": b.clock().Add(time.Hour).Unix()}
	}
	tokenWith := func(name string, value any) string {
		claims := validClaims()
		claims[name] = value
		return signer{key}.token(t, claims)
	}
	client := sts.New(sts.Options{Region: region, BaseEndpoint: &b.url, RetryMaxAttempts: 1})
	assume := func(role, token string) (*sts.AssumeRoleWithWebIdentityOutput, error) {
		return client.AssumeRoleWithWebIdentity(t.Context(), &sts.AssumeRoleWithWebIdentityInput{
			RoleArn: aws.String("arn:aws:iam::" + account + ":role/" + role), RoleSessionName: aws.String("s"), WebIdentityToken: &token,
		})
	}
	for name, c := range map[string]struct{ role, token, want string }{
		"another service account": {"controller", tokenWith("sub", "system:serviceaccount:default:default"), "AccessDenied"},
		"no such role":            {"none", signer{key}.token(t, validClaims()), "AccessDenied"},
		"expired":                 {"controller", tokenWith("exp", b.clock().Add(-time.Minute).Unix()), "ExpiredTokenException"},
		"another audience":        {"controller", tokenWith("aud", "https://kubernetes.default.svc"), "InvalidIdentityToken"},
		"another issuer":          {"controller", tokenWith("iss", otherIssuer), "InvalidIdentityToken"},
		"another key":             {"controller", signer{otherKey}.token(t, validClaims()), "InvalidIdentityToken"},
		"not a token":             {"controller", "abc", "InvalidIdentityToken"},
	} {
		if _, err := assume(c.role, c.token); code(t, err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	out, err := assume("controller", tokenWith("aud", "sts.amazonaws.com"))
	if err != nil {
		t.Fatal(err)
	}
	if *out.SubjectFromWebIdentityToken != "system:serviceaccount:kube-system:joiner" || *out.Provider != provider.ARN ||
		*out.Audience != "sts.amazonaws.com" {
		t.Errorf("the session has the subject %s, the provider %s and the audience %s, want the token's", *out.SubjectFromWebIdentityToken, *out.Provider, *out.Audience)
	}
	caller, err := sts.NewFromConfig(b.config(*out.Credentials.AccessKeyId, *out.Credentials.SecretAccessKey, *out.Credentials.SessionToken)).
		GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || !strings.HasSuffix(*caller.Arn, ":assumed-role/controller/s") {
		t.Errorf("the caller identity of the keys is %v, %v, want the session s of the role", caller, err)
	}
}
