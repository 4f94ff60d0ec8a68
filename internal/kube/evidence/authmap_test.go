package evidence

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// TestReadAuthMap: unknown fields are accepted; any other malformed content gives a problem in one line.
func TestReadAuthMap(t *testing.T) {
	t.Parallel()
	row := []diagnosis.Mapping{{ARN: "arn:aws:iam::1:role/a", Username: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:nodes"}}}
	for name, tt := range map[string]struct {
		text    string
		want    []diagnosis.Mapping
		problem string
	}{
		"a row":             {"- rolearn: arn:aws:iam::1:role/a\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: [system:nodes]\n", row, ""},
		"unknown field":     {"- rolearn: arn:aws:iam::1:role/a\n  username: system:node:{{EC2PrivateDNSName}}\n  groups:\n  - system:nodes\n  own: x\n", row, ""},
		"JSON":              {`[{"rolearn":"arn:aws:iam::1:role/a","username":"system:node:{{EC2PrivateDNSName}}","groups":["system:nodes"]}]`, row, ""},
		"empty":             {"", nil, ""},
		"empty list":        {"[]\n", nil, ""},
		"not a list":        {"rolearn: x\n", nil, "cannot unmarshal"},
		"unquoted braces":   {"- rolearn: x\n  username: {{SessionName}}\n", nil, "yaml"},
		"groups not a list": {"- rolearn: x\n  groups: system:nodes\n", nil, "cannot unmarshal"},
		"tabs":              {"- rolearn: x\n\tusername: y\n", nil, "yaml: line 2"},
		"too large":         {strings.Repeat("#", maxAuthMapBytes+1), nil, "more than a ConfigMap holds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ReadAuthMap(tt.text)
			if diff := cmp.Diff(tt.want, got.Roles); diff != "" {
				t.Errorf("the roles differ (-want +got):\n%s", diff)
			}
			if (tt.problem == "") != (got.Problem == "") || !strings.Contains(got.Problem, tt.problem) || strings.Contains(got.Problem, "\n") {
				t.Errorf("the problem is %q, want one line with %q", got.Problem, tt.problem)
			}
		})
	}
}

// FuzzReadAuthMap: any content of the ConfigMap is parsed or reported.
func FuzzReadAuthMap(f *testing.F) {
	f.Add("- rolearn: a\n  username: b\n  groups: [c]\n")
	f.Add("- &a [*a]\n")
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got := ReadAuthMap(text); got.Problem != "" && len(got.Roles) > 0 {
			t.Errorf("roles are returned although there is a problem: %+v", got)
		}
	})
}
