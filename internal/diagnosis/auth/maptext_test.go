package auth

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// TestEdited: a row is added to aws-auth, and no other line changes.
func TestEdited(t *testing.T) {
	t.Parallel()
	row := diagnosis.Mapping{ARN: "arn:aws:iam::1:role/new", Username: nodeUser, Groups: nodeGroups()}
	const written = "- rolearn: arn:aws:iam::1:role/new\n  username: \"system:node:{{EC2PrivateDNSName}}\"\n  groups:\n  - system:bootstrappers\n  - system:nodes\n"
	const indented = "  - rolearn: arn:aws:iam::1:role/new\n    username: \"system:node:{{EC2PrivateDNSName}}\"\n    groups:\n    - system:bootstrappers\n    - system:nodes\n"
	const other = "# made by hand\n- groups: [system:masters] # do not touch\n  rolearn: 'arn:aws:iam::1:role/admin'\n  username: admin\n  extra: kept\n"
	for name, c := range map[string]struct{ raw, want string }{
		"after the others, which stay as they are": {other, other + written},
		"with no end of the last line":             {other[:len(other)-1], other + written},
		"in place of its own": {"- rolearn: arn:aws:iam::1:role/path/new   # wrong\n  username: x\n\n# next\n" + other,
			"\n# next\n" + other + written},
		"as far in as the others": {"  - rolearn: a\n    groups:\n    - b\n",
			"  - rolearn: a\n    groups:\n    - b\n" + indented},
		"of a list on one line: not here":   {"[]", ""},
		"of nothing: not here":              {"", ""},
		"of a row without a role: not here": {"- username: x\n", ""},
	} {
		got, ok := edited(c.raw, row)
		if ok != (c.want != "") || got != c.want {
			t.Errorf("%s: %t\n%s\nwant\n%s", name, ok, got, c.want)
		}
	}
}
