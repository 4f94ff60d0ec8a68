package authn_test

import (
	"context"
	"encoding/base64"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/lab/authn"
)

const (
	account = "111122223333"
	region  = "us-east-1"
	cluster = "demo"
	role    = "node"
	roleARN = "arn:aws:iam::" + account + ":role/" + role
)

// testAWS is an emulated AWS with a cluster and a role, and the webhook under test.
type testAWS struct {
	server  *emulator.Server
	url     string
	aws     aws.Config
	awsAuth map[string]string // nil: the ConfigMap does not exist
	log     strings.Builder
	hook    *authn.Webhook
}

func newTestAWS(t *testing.T, mode string) *testAWS {
	t.Helper()
	s := &testAWS{server: &emulator.Server{}}
	http := httptest.NewServer(s.server)
	t.Cleanup(http.Close)
	s.url = http.URL
	s.aws = aws.Config{Region: region, BaseEndpoint: &s.url, Credentials: credentials.NewStaticCredentialsProvider(account, "x", "")}
	s.server.Do(func(w *world.World, now time.Time) {
		if _, err := w.Region(account, region).EKS.CreateCluster(now, ekscluster.Cluster{Name: cluster, AuthMode: mode}); err != nil {
			t.Fatal(err)
		}
	})
	s.addRole(t, role)
	s.hook = authn.New(authn.Options{
		Cluster: cluster, Region: region, Endpoint: s.url, AWS: s.aws, Log: &s.log,
		AWSAuth: func() (map[string]string, bool) { return s.awsAuth, s.awsAuth != nil },
	})
	return s
}

func (s *testAWS) addRole(t *testing.T, name string) {
	t.Helper()
	s.server.Do(func(w *world.World, now time.Time) {
		if _, err := w.Account(account).CreateRole(now, identity.Role{Name: name}); err != nil {
			t.Fatal(err)
		}
	})
}

// token creates a token with the credentials of a session of the role.
func (s *testAWS) token(t *testing.T, session, forCluster string, at time.Time) string {
	t.Helper()
	var keys identity.Session
	s.server.Do(func(w *world.World, now time.Time) {
		var err error
		if keys, err = w.Account(account).AssumeRole(now, role, session, time.Hour); err != nil {
			t.Fatal(err)
		}
	})
	token, err := authn.Token(t.Context(), aws.Credentials{
		AccessKeyID: keys.AccessKey, SecretAccessKey: keys.SecretKey, SessionToken: keys.Token,
	}, region, forCluster, at)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (s *testAWS) addEntry(t *testing.T, kind, username string, groups ...string) {
	t.Helper()
	in := &eks.CreateAccessEntryInput{ClusterName: aws.String(cluster), PrincipalArn: aws.String(roleARN), Type: &kind,
		KubernetesGroups: groups}
	if username != "" {
		in.Username = &username
	}
	if _, err := eks.NewFromConfig(s.aws).CreateAccessEntry(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func mapRole(arn, username, groups string) map[string]string {
	return map[string]string{"mapRoles": "- rolearn: " + arn + "\n  username: " + username + "\n  groups: " + groups + "\n"}
}

func TestMapping(t *testing.T) {
	t.Parallel()
	const nameTemplate = "operator:{{AccountID}}:{{SessionName}}"
	tests := map[string]struct {
		mode       string
		awsAuth    map[string]string
		entry      func(t *testing.T, s *testAWS) // creates an access entry
		session    string                         // "joe@example.com" when empty
		wantUser   string
		wantGroups []string
		wantError  string
	}{
		"no mapping": {mode: ekscluster.AuthBoth, wantError: "ARN is not mapped"},
		"aws-auth": {
			mode: ekscluster.AuthConfigMap, awsAuth: mapRole(roleARN, nameTemplate, "[ops]"),
			wantUser: "operator:" + account + ":joe-example.com", wantGroups: []string{"ops"},
		},
		"aws-auth in mode API": {
			mode: ekscluster.AuthAPI, awsAuth: mapRole(roleARN, nameTemplate, "[ops]"), wantError: "ARN is not mapped",
		},
		"aws-auth with another role": {
			mode: ekscluster.AuthBoth, awsAuth: mapRole("arn:aws:iam::"+account+":role/controller", nameTemplate, "[ops]"),
			wantError: "ARN is not mapped",
		},
		"aws-auth with the role's path": {
			mode: ekscluster.AuthBoth, awsAuth: mapRole("arn:aws:iam::"+account+":role/teams/a/node", nameTemplate, "[ops]"),
			wantError: "ARN is not mapped",
		},
		"aws-auth with invalid YAML": {
			mode: ekscluster.AuthBoth, awsAuth: map[string]string{"mapRoles": "- rolearn: [\n"}, wantError: "read mapRoles of aws-auth",
		},
		"access entry": {
			mode: ekscluster.AuthAPI, entry: func(t *testing.T, s *testAWS) { s.addEntry(t, "STANDARD", "joe", "ops") },
			wantUser: "joe", wantGroups: []string{"ops"},
		},
		"access entry takes precedence over aws-auth": {
			mode: ekscluster.AuthBoth, awsAuth: mapRole(roleARN, nameTemplate, "[ops]"),
			entry:    func(t *testing.T, s *testAWS) { s.addEntry(t, "STANDARD", "joe", "entry") },
			wantUser: "joe", wantGroups: []string{"entry"},
		},
		"EC2_LINUX entry, caller is not an instance": {
			mode: ekscluster.AuthAPI, entry: func(t *testing.T, s *testAWS) { s.addEntry(t, "EC2_LINUX", "") },
			wantError: "failed querying private DNS from EC2 API for node joe@example.com",
		},
		"EC2_LINUX entry, instance does not exist": {
			mode: ekscluster.AuthAPI, entry: func(t *testing.T, s *testAWS) { s.addEntry(t, "EC2_LINUX", "") }, session: "i-0123456789abcdef0",
			wantError: "InvalidInstanceID.NotFound",
		},
		"access entry older than the role": {
			mode: ekscluster.AuthAPI,
			entry: func(t *testing.T, s *testAWS) {
				s.addEntry(t, "STANDARD", "joe", "ops")
				s.server.Do(func(w *world.World, now time.Time) {
					a := w.Account(account)
					if err := a.DeleteRole(role); err != nil {
						t.Fatal(err)
					}
					if _, err := a.CreateRole(now.Add(2*time.Second), identity.Role{Name: role}); err != nil {
						t.Fatal(err)
					}
				})
			},
			wantError: "ARN is not mapped",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestAWS(t, tt.mode)
			s.awsAuth = tt.awsAuth
			if tt.entry != nil {
				tt.entry(t, s)
			}
			session := tt.session
			if session == "" {
				session = "joe@example.com"
			}
			got := s.hook.Review(t.Context(), s.token(t, session, cluster, time.Now()), time.Now())
			if got.Authenticated != (tt.wantError == "") || !strings.Contains(got.Error, tt.wantError) {
				t.Errorf("authenticated: %t, error %q, want error %q (empty: none)", got.Authenticated, got.Error, tt.wantError)
			}
			if got.User.Username != tt.wantUser || !slices.Equal(got.User.Groups, tt.wantGroups) {
				t.Errorf("user %q in %q, want %q in %q", got.User.Username, got.User.Groups, tt.wantUser, tt.wantGroups)
			}
			wantLog := "access denied"
			if got.Authenticated {
				wantLog = "access granted"
			}
			if !strings.Contains(s.log.String(), wantLog) {
				t.Errorf("the log is %q, want %q in it", s.log.String(), wantLog)
			}
		})
	}
}

// TestTokens checks that the webhook rejects invalid tokens.
func TestTokens(t *testing.T) {
	t.Parallel()
	rewrite := func(token string, alter func(string) string) string {
		decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "k8s-aws-v1."))
		if err != nil {
			t.Fatal(err)
		}
		return "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(alter(string(decoded))))
	}
	now := time.Now()
	tests := map[string]struct {
		forCluster string                  // empty: the cluster of the webhook
		signedAt   time.Time               // zero: now
		alter      func(url string) string // changes the presigned URL; nil: no change
		raw        string                  // the token; empty: testAWS.token creates it
		want       string                  // part of the error; empty: the token is valid
	}{
		"valid token":          {},
		"fourteen minutes old": {signedAt: now.Add(-14 * time.Minute)},
		"sixteen minutes old":  {signedAt: now.Add(-16 * time.Minute), want: "is expired"},
		"from the future":      {signedAt: now.Add(10 * time.Minute), want: "in the future"},
		"for another cluster":  {forCluster: "other", want: "SignatureDoesNotMatch"},
		"other kind of token":  {raw: "eyJhbGciOi", want: "missing expected"},
		"not base64":           {raw: "k8s-aws-v1.%%%", want: "not formatted correctly"},
		"another host": {
			alter: func(u string) string { return strings.Replace(u, "sts.us-east-1.amazonaws.com", "evil.example.com", 1) },
			want:  "unexpected hostname",
		},
		"another action": {
			alter: func(u string) string { return strings.Replace(u, "GetCallerIdentity", "AssumeRole", 1) },
			want:  "unexpected action",
		},
		"another parameter": {alter: func(u string) string { return u + "&RoleArn=x" }, want: "non-whitelisted query parameter"},
		"a parameter twice": {alter: func(u string) string { return u + "&Action=GetCallerIdentity" }, want: "multiple values"},
		"another signature": {alter: func(u string) string { return u[:len(u)-4] + "0000" }, want: "SignatureDoesNotMatch"},
		"another path": {
			alter: func(u string) string { return strings.Replace(u, ".com/?", ".com/x?", 1) }, want: "unexpected path",
		},
		"cluster header not signed": {
			alter: func(u string) string { return strings.Replace(u, "%3Bx-k8s-aws-id", "", 1) }, want: "did not sign the x-k8s-aws-id header",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestAWS(t, ekscluster.AuthConfigMap)
			s.awsAuth = mapRole(roleARN, "joe", "[ops]")
			token := tt.raw
			if token == "" {
				signedAt, forCluster := tt.signedAt, tt.forCluster
				if signedAt.IsZero() {
					signedAt = now
				}
				if forCluster == "" {
					forCluster = cluster
				}
				token = s.token(t, "joe", forCluster, signedAt)
			}
			if tt.alter != nil {
				token = rewrite(token, tt.alter)
			}
			got := s.hook.Review(context.Background(), token, time.Now())
			if got.Authenticated != (tt.want == "") || !strings.Contains(got.Error, tt.want) {
				t.Errorf("authenticated: %t, error %q, want error %q (empty: none)", got.Authenticated, got.Error, tt.want)
			}
		})
	}
}
