package iampolicy

import (
	"fmt"
	"strings"
	"testing"
)

func policy(t *testing.T, statements ...string) Policy {
	t.Helper()
	p, err := Read([]byte(`{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestConditions checks the operators against IAM's rules: absent keys, several values in the policy or the request,
// and ForAllValues:, ForAnyValue: and IfExists around operators.
func TestConditions(t *testing.T) {
	t.Parallel()
	const tag = "aws:ResourceTag/team"
	absent, data, web, empty := Keys{}, Keys{tag: {"data"}}, Keys{tag: {"web"}}, Keys{tag: {""}}
	tagKeys := func(keys ...string) Keys { return Keys{"aws:TagKeys": keys} }
	for _, c := range []struct {
		condition string
		keys      Keys
		want      bool
	}{
		{`{"StringEquals":{"aws:ResourceTag/team":"data"}}`, data, true},
		{`{"StringEquals":{"aws:ResourceTag/team":"data"}}`, web, false},
		{`{"StringEquals":{"aws:ResourceTag/team":"data"}}`, absent, false},
		{`{"StringEquals":{"aws:ResourceTag/team":"Data"}}`, data, false},
		{`{"StringEqualsIgnoreCase":{"aws:ResourceTag/team":"Data"}}`, data, true},
		{`{"StringEquals":{"AWS:resourcetag/Team":"data"}}`, data, true},
		{`{"StringEquals":{"aws:ResourceTag/team":["web","data"]}}`, data, true},
		{`{"StringEquals":{"aws:ResourceTag/team":"*"}}`, data, false},
		{`{"StringEqualsIfExists":{"aws:ResourceTag/team":"data"}}`, absent, true},
		{`{"StringEqualsIfExists":{"aws:ResourceTag/team":"data"}}`, web, false},
		{`{"StringNotEquals":{"aws:ResourceTag/team":"data"}}`, absent, true},
		{`{"StringNotEquals":{"aws:ResourceTag/team":"data"}}`, web, true},
		{`{"StringNotEquals":{"aws:ResourceTag/team":["web","data"]}}`, web, false},
		{`{"StringLike":{"aws:ResourceTag/team":"d?t*"}}`, data, true},
		{`{"StringLike":{"aws:ResourceTag/team":"*"}}`, empty, true},
		{`{"StringLike":{"aws:ResourceTag/team":"*"}}`, absent, false},
		{`{"StringNotLike":{"aws:ResourceTag/team":"*"}}`, absent, true},
		{`{"StringNotLike":{"aws:ResourceTag/team":"*"}}`, web, false},
		{`{"Null":{"aws:ResourceTag/team":"true"}}`, absent, true},
		{`{"Null":{"aws:ResourceTag/team":"true"}}`, data, false},
		{`{"Null":{"aws:ResourceTag/team":false}}`, data, true},
		{`{"Bool":{"aws:SecureTransport":true}}`, Keys{"aws:SecureTransport": {"true"}}, true},
		{`{"Bool":{"aws:SecureTransport":"true"}}`, absent, false},
		{`{"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::*:role/a*"}}`, Keys{"aws:PrincipalArn": {"arn:aws:iam::1:role/admin"}}, true},
		// A pattern needs all six parts of an ARN.
		{`{"ArnEquals":{"aws:PrincipalArn":"arn:aws:*"}}`, Keys{"aws:PrincipalArn": {"arn:aws:iam::1:role/admin"}}, false},
		{`{"ArnNotLike":{"aws:PrincipalArn":"arn:aws:iam::*:role/a*"}}`, Keys{"aws:PrincipalArn": {"arn:aws:iam::1:role/b"}}, true},

		// All keys and all operators of a condition must match.
		{`{"StringEquals":{"aws:ResourceTag/team":"data","aws:ResourceTag/stage":"prod"}}`, data, false},
		{`{"StringEquals":{"aws:ResourceTag/team":"data"},"Null":{"aws:ResourceTag/stage":"true"}}`, data, true},

		// Keys with several values.
		{`{"ForAllValues:StringEquals":{"aws:TagKeys":["Name","team"]}}`, tagKeys("Name"), true},
		{`{"ForAllValues:StringEquals":{"aws:TagKeys":["Name","team"]}}`, tagKeys("Name", "team"), true},
		{`{"ForAllValues:StringEquals":{"aws:TagKeys":["Name","team"]}}`, tagKeys("Name", "owner"), false},
		{`{"ForAllValues:StringEquals":{"aws:TagKeys":["Name","team"]}}`, absent, true},
		{`{"ForAnyValue:StringEquals":{"aws:TagKeys":["Name","team"]}}`, tagKeys("owner", "Name"), true},
		{`{"ForAnyValue:StringEquals":{"aws:TagKeys":["Name","team"]}}`, tagKeys("owner"), false},
		{`{"ForAnyValue:StringEquals":{"aws:TagKeys":["Name","team"]}}`, absent, false},
		{`{"ForAllValues:StringNotLike":{"aws:TagKeys":"kubernetes.io/*"}}`, tagKeys("Name", "kubernetes.io/cluster/a"), false},
		{`{"ForAnyValue:StringNotLike":{"aws:TagKeys":"kubernetes.io/*"}}`, tagKeys("Name", "kubernetes.io/cluster/a"), true},
		{`{"ForAllValues:StringLikeIfExists":{"aws:TagKeys":"a*"}}`, tagKeys("ab", "ac"), true},
	} {
		p := policy(t, `{"Effect":"Allow","Action":"ec2:*","Resource":"*","Condition":`+c.condition+`}`)
		got := Judge([]Policy{p}, Request{Action: "ec2:TerminateInstances", Resource: "*", Keys: c.keys})
		if got.Allowed != c.want {
			t.Errorf("%s with the keys %v: allowed %t, want %t", c.condition, c.keys, got.Allowed, c.want)
		}
	}
}

// TestJudge checks which statements apply to a request, and which of these decides.
func TestJudge(t *testing.T) {
	t.Parallel()
	const instance = "arn:aws:ec2:us-east-1:111122223333:instance/i-1"
	for _, c := range []struct {
		statements string
		action     string
		resource   string
		want       Verdict
	}{
		{`{"Sid":"A","Effect":"Allow","Action":"ec2:TerminateInstances","Resource":"*"}`, "ec2:TerminateInstances", instance,
			Verdict{Allowed: true, Sid: "A"}},
		{`{"Sid":"A","Effect":"Allow","Action":["ec2:Run*","EC2:terminateinstances"],"Resource":["*"]}`,
			"ec2:TerminateInstances", instance, Verdict{Allowed: true, Sid: "A"}},
		{`{"Sid":"A","Effect":"Allow","Action":"ec2:Terminate","Resource":"*"}`, "ec2:TerminateInstances", instance, Verdict{}},
		{`{"Effect":"Allow","Action":"ec2:*","Resource":"arn:aws:ec2:us-east-1:*:instance/*"}`, "ec2:TerminateInstances",
			instance, Verdict{Allowed: true}},
		{`{"Effect":"Allow","Action":"ec2:*","Resource":"arn:aws:ec2:us-east-2:*:instance/*"}`, "ec2:TerminateInstances", instance, Verdict{}},
		{`{"Effect":"Allow","Action":"ec2:*","Resource":"arn:aws:ec2:*::instance/i-1"}`, "ec2:TerminateInstances", instance, Verdict{}},
		// An ARN does not match the resource "*" of an action without resources.
		{`{"Effect":"Allow","Action":"ec2:*","Resource":"arn:aws:ec2:*:*:instance/i-1"}`, "ec2:DescribeInstances", "*", Verdict{}},
		// A * matches the empty account in the ARN of an image.
		{`{"Effect":"Allow","Action":"ec2:*","Resource":"arn:aws:ec2:us-east-1:*:image/*"}`, "ec2:RunInstances",
			"arn:aws:ec2:us-east-1::image/ami-1", Verdict{Allowed: true}},
		{`{"Sid":"A","Effect":"Allow","NotAction":"iam:*","Resource":"*"}`, "ec2:TerminateInstances", instance, Verdict{Allowed: true, Sid: "A"}},
		{`{"Sid":"A","Effect":"Allow","NotAction":"ec2:*","Resource":"*"}`, "ec2:TerminateInstances", instance, Verdict{}},
		{`{"Sid":"A","Effect":"Allow","Action":"*","NotResource":"arn:aws:ec2:*:*:instance/i-1"}`, "ec2:TerminateInstances", instance, Verdict{}},
		{`{"Sid":"D","Effect":"Deny","Action":"*","Resource":"*"}`, "ec2:TerminateInstances", instance, Verdict{Denied: true, Sid: "D"}},
		{
			`{"Sid":"A","Effect":"Allow","Action":"*","Resource":"*"},{"Sid":"D","Effect":"Deny","Action":"ec2:Terminate*","Resource":"*"}`,
			"ec2:TerminateInstances", instance, Verdict{Denied: true, Sid: "D"},
		},
		{
			`{"Sid":"D","Effect":"Deny","Action":"ec2:Terminate*","Resource":"*"},{"Sid":"A","Effect":"Allow","Action":"*","Resource":"*"}`,
			"ec2:RunInstances", instance, Verdict{Allowed: true, Sid: "A"},
		},
	} {
		got := Judge([]Policy{policy(t, c.statements)}, Request{Action: c.action, Resource: c.resource})
		if got != c.want {
			t.Errorf("statements %s, action %s on %s: %+v, want %+v", c.statements, c.action, c.resource, got, c.want)
		}
	}
	// A Deny of one policy overrides an Allow of another.
	policies := []Policy{
		policy(t, `{"Effect":"Allow","Action":"*","Resource":"*"}`),
		policy(t, `{"Sid":"D","Effect":"Deny","Action":"ec2:*","Resource":"*"}`),
	}
	if got := Judge(policies, Request{Action: "ec2:RunInstances", Resource: "*"}); !got.Denied || got.Allowed || got.Sid != "D" {
		t.Errorf("one policy allows, another denies: %+v, want denied by D", got)
	}
	if got := Judge(nil, Request{Action: "ec2:RunInstances", Resource: "*"}); got.Allowed || got.Denied {
		t.Errorf("without policies: %+v, want neither allowed nor denied", got)
	}
}

func TestLike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"**", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abbd", false},
		{"?", "", false}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"*a*b", "xaxaxb", true}, {"*ab", "aab", true}, {"a*", "ba", false},
	} {
		if got := like(c.pattern, c.text); got != c.want {
			t.Errorf("like(%q, %q) = %t, want %t", c.pattern, c.text, got, c.want)
		}
	}
}

// TestReadRefuses: documents are rejected if IAM rejects them, or if this package would evaluate them differently from
// IAM.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	body := `"Effect":"Allow","Action":"ec2:*","Resource":"*"`
	for text, want := range map[string]string{
		`{"Statement":[{` + body + `}]}`:                                                                            "Version",
		`{"Version":"2012-10-17","Statement":[]}`:                                                                   "no Statement",
		`{"Version":"2012-10-17","Statement":{"Effect":"allow","Action":"ec2:*","Resource":"*"}}`:                   "Effect",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Resource":"*"}}`:                                    "either Action or NotAction",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"a:b","NotAction":"a:c","Resource":"*"}}`:   "either Action or NotAction",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"a:b"}}`:                                    "either Resource or NotResource",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"Terminate","Resource":"*"}}`:               "has no service",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"a:b","Resource":"instance/*"}}`:            "is not an ARN",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"a:b","Resource":"arn:aws:iam::1"}}`:        "is not an ARN",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"a:b","Resource":"arn:aws:iam::1:${x}"}}`:   "policy variable",
		`{"Version":"2012-10-17","Statement":{` + body + `,"Principal":"*"}}`:                                       "Principal",
		`{"Version":"2012-10-17","Statement":{` + body + `,"Condition":{"DateLessThan":{"aws:CurrentTime":"x"}}}}`:  "is not supported",
		`{"Version":"2012-10-17","Statement":{` + body + `,"Condition":{"NullIfExists":{"aws:TagKeys":"true"}}}}`:   "neither prefix nor suffix",
		`{"Version":"2012-10-17","Statement":{` + body + `,"Condition":{"StringEquals":{"aws:TagKeys":[]}}}}`:       "no value",
		`{"Version":"2012-10-17","Statement":{` + body + `,"Condition":{"StringEquals":{"aws:TagKeys":"${a}"}}}}`:   "policy variable",
		`{"Version":"2012-10-17","Statement":{` + body + `,"Condition":{"StringEquals":{"aws:TagKeys":{"a":"b"}}}}`: "read policy",
	} {
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %q", text, err, want)
		}
	}
	if _, err := Read(fmt.Appendf(nil, `{"Version":"2012-10-17","Id":"x","Statement":{%s}}`, body)); err != nil {
		t.Errorf("a valid document: %v, want no error", err)
	}
}
