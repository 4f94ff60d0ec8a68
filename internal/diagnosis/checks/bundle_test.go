package checks_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestBundle: evidence is unchanged after writing and reading a bundle, and so are the bytes of the bundle.
func TestBundle(t *testing.T) {
	t.Parallel()
	e := healthy()
	e.Entries = AbsentItem[[]Entry]("eks:ListAccessEntries", noon, Denied, "eks:ListAccessEntries")
	text, err := Write(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	// nil and empty lists count as equal
	if diff := cmp.Diff(e, back, cmp.Comparer(func(a, b []string) bool { return strings.Join(a, ",") == strings.Join(b, ",") })); diff != "" {
		t.Errorf("bundle after writing and reading (-want +got):\n%s", diff)
	}
	again, err := Write(back)
	if err != nil || string(again) != string(text) {
		t.Errorf("the bundle differs when it is written again: %v", err)
	}
	if diff := cmp.Diff(failures(Diagnose(e)), failures(Diagnose(back))); diff != "" {
		t.Errorf("findings after writing and reading (-want +got):\n%s", diff)
	}
	for name, bad := range map[string]string{"empty": " ", "not JSON": "apiVersion: v1",
		"another object": `{"kind":"Pod"}`, "newer": `{"format":99}`, "a list": "[]"} {
		if _, err := Parse([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "read bundle: ") {
			t.Errorf("%s: the error is %v, want one that begins with read bundle:", name, err)
		}
	}
}

// TestBadBundles: the error of Parse names the mistake and its place in the JSON, and no Go type.
func TestBadBundles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"format": -1}`:                              "its format is -1, and the only format is 1",
		`{"format": 0, "name": "prod"}`:               "its format is 0, and the only format is 1",
		`{"format": "1"}`:                             "its format is not a number",
		`{"format": 2, "cluster": []}`:                "use a newer joiner", // whatever the fields of format 2 are
		`{"format": 1} {"format": 1}`:                 "text follows the JSON object",
		`{"format": 1}}`:                              "text follows the JSON object",
		`{"format": 1}]`:                              "text follows the JSON object",
		`{"format": 1} x`:                             "text follows the JSON object",
		`{"format": 1, "name": 7}`:                    "name is the number 7, and should be a text",
		`{"format": 1, "at": "noon"}`:                 "at is a text, and should be a time",
		`{"format": 1, "nodes": []}`:                  "nodes is a list, and should be an object",
		`{"format": 1, "classes": {"value": {}}}`:     "classes.value is an object, and should be a list",
		`{"format": 1, "classes": {"value": [null]}}`: "classes.value[0] is null",
		`{"format": 1, "classes": {"value": [{}, {"hopLimit": "two"}]}}`: "classes.value[1].hopLimit is a text, and should be a whole number",
		`{"format": 1, "nodes": {"value": [{"ready": "yes"}]}}`:          "nodes.value[0].ready is a text, and should be true or false",
		`{"format": 1, "roles": {"NodeRole": {"value": {"arn": []}}}}`:   "roles.NodeRole.value.arn is a list, and should be a text",
		`{"format": 1, "home": {"value": {"dnsReady": 1.5}}}`:            "home.value.dnsReady is the number 1.5",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "read bundle: ") || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
}

// TestNullItems: an item whose value is null counts as absent, so it leads to no broken or suspicious finding.
func TestNullItems(t *testing.T) {
	t.Parallel()
	var tree map[string]any
	text, err := Write(healthy())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	for name, field := range tree {
		item, ok := field.(map[string]any)
		if _, isItem := item["source"]; !ok || !isItem {
			continue
		}
		before := item["value"]
		item["value"] = nil
		changed, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Parse(changed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if findings := Actionable(Diagnose(e)); len(findings) > 0 {
			t.Errorf("null in %s: want no finding:\n%s", name, failures(findings))
		}
		item["value"] = before
	}
}

// secretLines returns lines of logs and scripts by the secret that each contains.
func secretLines() map[string]string {
	return map[string]string{
		"k8s-aws-v1.aHR0cHM6Ly9zdHMuYW1hem9uYXdz": "kubelet: token k8s-aws-v1.aHR0cHM6Ly9zdHMuYW1hem9uYXdz was refused: Unauthorized",
		"AKIAIOSFODNN7EXAMPLE":                    "export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
		"wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY":  "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
		"hunter2":                                 `DB_PASSWORD="hunter2" ./start`,
		"s3cr3tt0ken":                             "curl -H 'Authorization: Bearer s3cr3tt0ken' https://example.com: i/o timeout",
		"p4ssw0rd":                                "fetching https://user:p4ssw0rd@example.com/x: no such host",
		"pr0xyPass":                               "export HTTPS_PROXY=http://squid:pr0xyPass@proxy.corp:3128",
		"pr0xy@Pass":                              "Environment=\"https_proxy=http://squid:pr0xy@Pass@proxy.corp:3128\" \"NO_PROXY=localhost\"",
		"pr0xy/Pass":                              "Failed to connect to proxy URL: \"http://squid:pr0xy/Pass@proxy.corp:3128\"",
		"pr0xy%40Pass":                            "HTTP_PROXY: http://corp%5Csquid:pr0xy%40Pass@proxy.corp:3128",
		"proxyPassWithout":                        "http_proxy=squid:proxyPassWithout@proxy.corp:3128",
		"t0kenOfAUser":                            "pip install https://t0kenOfAUser@pypi.corp/simple",
		"abcdef.0123456789abcdef":                 "kubeadm join --token abcdef.0123456789abcdef",
		"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln": "jwt eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
		"FQoGZXIvYXdz":             "GET /?X-Amz-Security-Token=FQoGZXIvYXdz&Action=GetCallerIdentity: i/o timeout",
		"MIIEpAIBAAKCAQEA":         "-----BEGIN RSA PRIVATE KEY-----MIIEpAIBAAKCAQEA-----END RSA PRIVATE KEY-----",
		"ghp_0123456789abcdefghij": "git clone with ghp_0123456789abcdefghij",
		"c2Vjb25kIGxpbmU":          "[ 1.0] cloud-init[2]: -----BEGIN PRIVATE KEY-----\n[ 1.1] cloud-init[2]: c2Vjb25kIGxpbmU\n[ 1.2] cloud-init[2]: -----END PRIVATE KEY-----",
		"imdsSecret":               `{"AccessKeyId": "x", "SecretAccessKey": "imdsSecret", "Expiration": "2026"}`,
		"opensesame":               `datadog api_key: 'opensesame'`,
	}
}

// TestNoSecrets: the bundle and its findings do not contain the secrets in untrusted texts.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	for _, line := range secretLines() {
		s.addConsoleLine(line)
		s.addEvent("NodeClaim", "claim-2", "Failed", line)
		s.e.Pods.Value[0].Messages = append(s.e.Pods.Value[0].Messages, line+" exec format error") // ARCH-5 repeats it
		s.e.Claims.Value[1].Conditions[1].Message += " " + line
		s.e.UserData.Value = append(s.e.UserData.Value,
			UserDataProblem{Class: "default", ID: "TAINT-1", Sentence: "it is wrong", Fix: line, Certainty: Certain})
	}
	text, err := Write(s.e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var findings strings.Builder
	for _, f := range Diagnose(back) {
		findings.WriteString(f.Cause + "\n" + strings.Join(f.Evidence, "\n") + "\n" + f.Fix.String() + "\n")
	}
	for secret, line := range secretLines() {
		if strings.Contains(string(text), secret) {
			t.Errorf("the bundle contains the secret %s", secret)
		}
		if strings.Contains(findings.String(), secret) {
			t.Errorf("a finding contains the secret %s", secret)
		}
		if masked := Mask(line); strings.Contains(masked, secret) || !strings.Contains(masked, Hidden) {
			t.Errorf("Mask(%s) is %s, want it without the secret", line, masked)
		}
	}
	// Lines without secrets are not changed.
	for _, line := range []string{unauthorized, timeout,
		"Unable to locate credentials. You can configure credentials by running \"aws configure\"."} {
		if got := Mask(line); got != line {
			t.Errorf("Mask(%s) is %s, want the line unchanged", line, got)
		}
	}
}

// TestMaskURLs: a library's error about an invalid address contains no password.
func TestMaskURLs(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`invalid 'proxy-url' "http://squid:hun ter2@proxy:3128" for cluster "c"`: `invalid 'proxy-url' "http://[hidden]@proxy:3128" for cluster "c"`,
		`could not parse: http://squid:hun%zz@proxy:3128; set KUBECONFIG`:        `could not parse: http://[hidden]@proxy:3128; set KUBECONFIG`,
		`unsupported scheme: ftp://squid:hun@ter/2@proxy`:                        `unsupported scheme: ftp://[hidden]@proxy`,
		`Get "https://abc.eks.amazonaws.com:443/api?timeout=30s": i/o timeout`:   `Get "https://abc.eks.amazonaws.com:443/api?timeout=30s": i/o timeout`,
		`secrets "x" is forbidden: User "system:node" cannot get`:                `secrets "x" is forbidden: User "system:node" cannot get`,
	} {
		if got := MaskURLs(line); got != want {
			t.Errorf("MaskURLs(%s) is %s, want %s", line, got, want)
		}
	}
}

// TestMaskAccounts: account IDs are replaced everywhere, other numbers are kept, and the findings are the same.
func TestMaskAccounts(t *testing.T) {
	t.Parallel()
	e := healthy()
	e.Instances.Value[0].ID = "i-0123456789012abcd"
	masked, err := MaskAccounts(e)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Write(masked)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "111122223333") ||
		!strings.Contains(string(text), "arn:aws:iam::000000000001:role/NodeRole") || !strings.Contains(string(text), "i-0123456789012abcd") {
		t.Errorf("want account ID 000000000001, and the instance ID unchanged:\n%s", text)
	}
	if diff := cmp.Diff(failures(Diagnose(e)), failures(Diagnose(masked))); diff != "" {
		t.Errorf("masking changes the findings (-want +got):\n%s", diff)
	}
}

// FuzzRead: masking and reading console output takes at most five seconds and does not panic.
func FuzzRead(f *testing.F) {
	for _, line := range secretLines() {
		f.Add(line)
	}
	f.Add(unauthorized + "\n" + timeout)
	f.Add(strings.Repeat("x509: ", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		for _, r := range ReadConsole(MaskTail(text, 1<<16)) {
			if r.Symptom == "" || r.Count < 1 || len(r.Line) > LongestLine {
				t.Errorf("got %+v, want a symptom, a count and a line of at most %d bytes", r, LongestLine)
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("reading took %s, want at most 5s", took)
		}
	})
}

// TestManyValues: a bundle with more than 4 Mi values is rejected before its decoding, which would take much memory.
func TestManyValues(t *testing.T) {
	t.Parallel()
	text := `{"format":1,"pods":{"source":"x","value":[` + strings.Repeat("{},", 5<<20) + `{}]}}`
	if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "more than 4194304 values") {
		t.Errorf("the error is %v, want: more than 4194304 values", err)
	}
}

// FuzzParse: Parse rejects a text, or Diagnose accepts the result. Neither panics.
func FuzzParse(f *testing.F) {
	text, err := Write(healthy())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":1,"classes":{"source":"x","value":[{"name":"a","role":"arn:"}]},"routes":{"source":"x","value":[{}]}}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if e, err := Parse(text); err == nil {
			Diagnose(e)
		}
	})
}
