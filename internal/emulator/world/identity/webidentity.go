package identity

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Provider is an IAM OIDC identity provider: the account trusts the tokens of an issuer. Service accounts of a cluster
// can assume roles only if the account has a provider for the cluster's issuer.
type Provider struct {
	ARN       string   // "arn:aws:iam::111122223333:oidc-provider/…"
	Issuer    string   // URL: "https://oidc.eks.us-east-1.amazonaws.com/id/…"
	Audiences []string // accepted audiences of tokens: "sts.amazonaws.com"
}

// CreateIdentityProvider makes the account trust those tokens of an issuer that have one of the audiences.
func (a *IAM) CreateIdentityProvider(issuer string, audiences ...string) (Provider, error) {
	host, ok := strings.CutPrefix(issuer, "https://")
	if !ok {
		return Provider{}, failure.New("InvalidInput", "Invalid Open ID Connect Provider URL")
	}
	p := Provider{ARN: a.arn("iam", "oidc-provider/"+host), Issuer: issuer, Audiences: slices.Clone(audiences)}
	if a.providers[issuer] != nil {
		return Provider{}, failure.WithStatus(409, "EntityAlreadyExists", "Provider with url %s already exists.", issuer)
	}
	if a.providers == nil {
		a.providers = map[string]*Provider{}
	}
	a.providers[issuer] = &p
	return p, nil
}

// DeleteIdentityProvider deletes the provider of an issuer.
func (a *IAM) DeleteIdentityProvider(issuer string) { delete(a.providers, issuer) }

// IdentityProviders returns the identity providers of the account, sorted by issuer.
func (a *IAM) IdentityProviders() []Provider {
	var out []Provider
	for _, issuer := range slices.Sorted(maps.Keys(a.providers)) {
		out = append(out, *a.providers[issuer])
	}
	return out
}

// WebIdentity is the identity that a token proves.
type WebIdentity struct {
	Provider string // ARN of the account's identity provider for the token's issuer
	Subject  string // "system:serviceaccount:kube-system:joiner"
	Audience string // the first audience of the token that the provider accepts
}

// AssumeRoleWithWebIdentity opens a session of a role for the holder of a token. The account must have an identity
// provider for the token's issuer, and the role's trust policy must allow the identity. Source of the errors:
// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html.
func (a *IAM) AssumeRoleWithWebIdentity(now time.Time, role, sessionName, token string, life time.Duration) (Session, WebIdentity, error) {
	caller, issuer, err := a.verifyToken(now, token)
	if err != nil {
		return Session{}, WebIdentity{}, err
	}
	r := a.roles[role]
	if r == nil || !trustsWebIdentity(r.TrustPolicy, caller, issuer) {
		return Session{}, WebIdentity{}, failure.WithStatus(403, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
	}
	granted, err := a.AssumeRole(now, role, sessionName, life)
	return granted, caller, err
}

// verifyToken verifies a token. It returns the identity that the token proves, and the token's issuer.
func (a *IAM) verifyToken(now time.Time, token string) (caller WebIdentity, issuer string, err error) {
	t, err := readToken(token)
	if err != nil {
		return WebIdentity{}, "",
			invalidIdentity("The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)")
	}
	provider := a.providers[t.claims.Issuer]
	if provider == nil {
		return WebIdentity{}, "", invalidIdentity("No OpenIDConnect provider found in your account for " + t.claims.Issuer)
	}
	key := a.sts.issuers[t.claims.Issuer][t.keyID]
	if key == nil || !t.isSignedBy(key) {
		return WebIdentity{}, "", invalidIdentity("Couldn't retrieve verification key from your identity provider,  please reference AssumeRoleWithWebIdentity documentation for requirements")
	}
	if expiry := time.Unix(t.claims.Expires, 0); !now.Before(expiry) {
		return WebIdentity{}, "", failure.New("ExpiredTokenException",
			"Token expired: current date/time %d must be before the expiration date/time%d", now.Unix(), expiry.Unix())
	}
	accepted := slices.IndexFunc(t.claims.Audiences, func(audience string) bool { return slices.Contains(provider.Audiences, audience) })
	if accepted < 0 {
		return WebIdentity{}, "", invalidIdentity("Incorrect token audience")
	}
	return WebIdentity{provider.ARN, t.claims.Subject, t.claims.Audiences[accepted]}, t.claims.Issuer, nil
}

func invalidIdentity(message string) error { return failure.New("InvalidIdentityToken", "%s", message) }

// trustsWebIdentity reports whether a trust policy allows the web identity to assume the policy's role. It evaluates
// only the statements that name the identity provider. A policy that package iampolicy cannot parse allows no identity.
func trustsWebIdentity(policy string, caller WebIdentity, issuer string) bool {
	var document struct {
		Version   string
		Statement []map[string]any
	}
	if json.Unmarshal([]byte(policy), &document) != nil {
		return false
	}
	var statements []map[string]any
	for _, s := range document.Statement {
		principal, _ := s["Principal"].(map[string]any)
		if !containsName(principal["Federated"], caller.Provider) {
			continue
		}
		statement := maps.Clone(s)
		delete(statement, "Principal") // iampolicy evaluates identity-based policies, which have no principal
		statement["Resource"] = "*"
		statements = append(statements, statement)
	}
	text, err := json.Marshal(map[string]any{"Version": document.Version, "Statement": statements})
	if err != nil {
		return false
	}
	parsed, err := iampolicy.Read(text)
	if err != nil {
		return false
	}
	host := strings.TrimPrefix(issuer, "https://")
	return iampolicy.Judge([]iampolicy.Policy{parsed}, iampolicy.Request{
		Action: "sts:AssumeRoleWithWebIdentity", Resource: "*",
		Keys: iampolicy.Keys{host + ":sub": {caller.Subject}, host + ":aud": {caller.Audience}},
	}).Allowed
}

// containsName reports whether an element of a policy is the name, or a list with the name.
func containsName(element any, name string) bool {
	switch element := element.(type) {
	case string:
		return element == name
	case []any:
		return slices.Contains(element, any(name))
	}
	return false
}
