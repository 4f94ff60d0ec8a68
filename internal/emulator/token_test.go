package emulator_test

import (
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// token returns the presigned URL of GetCallerIdentity that an EKS token contains: X-Amz-Expires is 60 seconds, and a
// signed header has the name of the cluster. If cluster is empty, the header is missing.
func (b *fixture) token(t *testing.T, s identity.Session, cluster string) *url.URL {
	t.Helper()
	client := sts.NewFromConfig(b.config(s.AccessKey, s.SecretKey, s.Token))
	signed, err := sts.NewPresignClient(client).PresignGetCallerIdentity(context.Background(),
		&sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
			o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(smithyhttp.SetHeaderValue("X-Amz-Expires", "60")))
			if cluster != "" {
				o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(smithyhttp.SetHeaderValue("x-k8s-aws-id", cluster)))
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(signed.URL)
	if err != nil {
		t.Fatal(err)
	}
	if !u.Query().Has("X-Amz-Expires") {
		t.Fatalf("presigned URL has no expiry: %s", u)
	}
	return u
}

// callerOf calls the URL of a token with the header for the cluster (empty: none), as the authenticator of a cluster
// does. It returns the caller's ARN, or the code of the error.
func (b *fixture) callerOf(t *testing.T, u *url.URL, cluster, host string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if cluster != "" {
		r.Header.Set("x-k8s-aws-id", cluster)
	}
	r.Host = host
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Arn  string `xml:"GetCallerIdentityResult>Arn"`
		Code string `xml:"Error>Code"`
	}
	if err := xml.Unmarshal(body, &out); err != nil {
		t.Fatalf("answer %s: %v", body, err)
	}
	if (answer.StatusCode == http.StatusOK) != (out.Code == "") {
		t.Errorf("status %d with code %q, want a code only on errors", answer.StatusCode, out.Code)
	}
	return out.Arn + out.Code
}

// TestTokens checks valid and invalid presigned calls of GetCallerIdentity.
func TestTokens(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createProfile(t, "p", "node")
	var s identity.Session
	b.server.Do(func(w *world.World, now time.Time) {
		var err error
		if s, err = w.Account(account).AssumeRole(now, "node", "i-0123", 6*time.Hour); err != nil {
			t.Error(err)
		}
	})
	forged := s
	forged.SecretKey = "guess"
	// An account number is a valid access key, but not for a presigned request.
	unknown := identity.Session{AccessKey: account, SecretKey: "secret"}
	valid := b.token(t, s, "demo")
	host := valid.Host
	const arn = "arn:aws:sts::111122223333:assumed-role/node/i-0123"
	for name, test := range map[string]struct {
		url     *url.URL
		cluster string
		host    string
		want    string
	}{
		"valid":                   {valid, "demo", host, arn},
		"another cluster":         {valid, "prod", host, "SignatureDoesNotMatch"},
		"header signed, not sent": {valid, "", host, "SignatureDoesNotMatch"},
		"another host":            {valid, "demo", "sts.amazonaws.com", "SignatureDoesNotMatch"},
		"forged":                  {b.token(t, forged, "demo"), "demo", host, "SignatureDoesNotMatch"},
		"unknown key":             {b.token(t, unknown, "demo"), "demo", host, "InvalidClientTokenId"},
		"altered action":          {withParameter(valid, "Action", "ListRoles"), "demo", host, "InvalidAction"},
		"altered version":         {withParameter(valid, "Version", "2011-06-16"), "demo", host, "SignatureDoesNotMatch"},
		"altered date": {withParameter(valid, "X-Amz-Date", time.Now().UTC().Add(time.Minute).Format("20060102T150405Z")),
			"demo", host, "SignatureDoesNotMatch"},
		"no expiry":               {withoutParameter(valid, "X-Amz-Expires"), "demo", host, "IncompleteSignature"},
		"header sent, not signed": {b.token(t, s, ""), "demo", host, "SignatureDoesNotMatch"},
		"no header":               {b.token(t, s, ""), "", host, arn},
		"another session token":   {withParameter(valid, "X-Amz-Security-Token", "IQoJother"), "demo", host, "InvalidClientTokenId"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := b.callerOf(t, test.url, test.cluster, test.host); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestTokenAge: a token is valid for fifteen minutes, regardless of X-Amz-Expires.
func TestTokenAge(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createProfile(t, "p", "node")
	var s identity.Session
	b.server.Do(func(w *world.World, now time.Time) { s = w.Account(account).CreateUser("ann") })
	u := b.token(t, s, "demo")
	b.advance(14 * time.Minute)
	if got := b.callerOf(t, u, "demo", u.Host); got != "arn:aws:iam::111122223333:user/ann" {
		t.Errorf("after 14 minutes: %s, want the user", got)
	}
	b.advance(2 * time.Minute)
	if got := b.callerOf(t, u, "demo", u.Host); got != "SignatureDoesNotMatch" {
		t.Errorf("after 16 minutes: %s, want SignatureDoesNotMatch", got)
	}
}

// TestInstanceCredentials checks the credentials of an instance: the error without an instance profile, the identity,
// and the errors after the role was removed from the profile and deleted.
func TestInstanceCredentials(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	launch := func(data types.RequestLaunchTemplateData, name string) string {
		out, err := b.ec2.CreateFleet(t.Context(), fleet(b.createTemplate(t, name, data), 1, b.override("m5.large", 0)))
		if err != nil || len(out.Instances) != 1 {
			t.Fatalf("launch: %v, %s", err, fleetErrors(out))
		}
		return out.Instances[0].InstanceIds[0]
	}
	bareID := launch(types.RequestLaunchTemplateData{}, "bare")
	if _, _, _, err := b.server.Credentials(bareID); err == nil || !strings.HasSuffix(err.Error(), "instance has no instance profile") {
		t.Errorf("without a profile: %v, want the error that the instance has no instance profile", err)
	}
	b.createProfile(t, "node-profile", "node")
	id := launch(types.RequestLaunchTemplateData{IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("node-profile")}}, "full")
	key, secret, token, err := b.server.Credentials(id)
	if err != nil {
		t.Fatal(err)
	}
	secondKey, _, _, err := b.server.Credentials(id)
	if err != nil || secondKey != key {
		t.Errorf("the second call returns %s, %v, want the same key", secondKey, err)
	}
	admin := b.iam // the client before b.use replaces it
	b.use(b.config(key, secret, token))
	caller, err := b.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || *caller.Arn != "arn:aws:sts::111122223333:assumed-role/node/"+id {
		t.Errorf("caller identity: %v, %v, want the role's session", caller, err)
	}
	wrongSecret := ec2.NewFromConfig(b.config(key, "wrong", token))
	if _, err := wrongSecret.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}); code(t, err) != "SignatureDoesNotMatch" {
		t.Errorf("signed with another secret: %v, want SignatureDoesNotMatch", err)
	}
	_, err = admin.RemoveRoleFromInstanceProfile(t.Context(),
		&iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String("node-profile"), RoleName: aws.String("node")})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := b.server.Credentials(id); err == nil || !strings.Contains(err.Error(), "has no role") {
		t.Errorf("without a role: %v, want the error that the profile has no role", err)
	}
	if _, err := admin.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("node")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}); code(t, err) != "InvalidClientTokenId" {
		t.Errorf("after the role was deleted: %v, want InvalidClientTokenId", err)
	}
}

// TestStrict: a strict server rejects keys that the world did not issue.
func TestStrict(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.server.Strict = true
	if _, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}); code(t, err) != "AuthFailure" {
		t.Errorf("unknown key: %v, want AuthFailure", err)
	}
	var s identity.Session
	b.server.Do(func(w *world.World, _ time.Time) { s = w.Account(account).CreateUser("ann") })
	b.use(b.config(s.AccessKey, s.SecretKey, ""))
	if _, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}); err != nil {
		t.Errorf("known user: %v, want no error", err)
	}
}

// TestAccounts: an access key of twelve digits identifies the account with this number.
func TestAccounts(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.use(b.config("444455556666", "x", ""))
	caller, err := b.sts.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || *caller.Account != "444455556666" {
		t.Errorf("caller identity: %v, %v, want account 444455556666", caller, err)
	}
	vpcs, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
	if err != nil || len(vpcs.Vpcs) != 0 {
		t.Errorf("another account's VPCs: %v, %v, want none", vpcs, err)
	}
}

func withParameter(u *url.URL, name, value string) *url.URL {
	q := u.Query()
	q.Set(name, value)
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawQuery: q.Encode()}
}

func withoutParameter(u *url.URL, name string) *url.URL {
	q := u.Query()
	q.Del(name)
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawQuery: q.Encode()}
}
