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
		"after other rows":           {other, other + written},
		"last line without line end": {other[:len(other)-1], other + written},
		"replaces its own row": {"- rolearn: arn:aws:iam::1:role/path/new   # wrong\n  username: x\n\n# next\n" + other,
			"\n# next\n" + other + written},
		"indented rows": {"  - rolearn: a\n    groups:\n    - b\n",
			"  - rolearn: a\n    groups:\n    - b\n" + indented},
		"list in flow style": {"[]", ""},
		"empty text":         {"", ""},
		"row without a role": {"- username: x\n", ""},
	} {
		got, ok := edited(c.raw, row)
		if ok != (c.want != "") || got != c.want {
			t.Errorf("%s: %t\n%s\nwant\n%s", name, ok, got, c.want)
		}
	}
}
