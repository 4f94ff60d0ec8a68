package auth

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// TestEditMapRoles: a row is added at the end of mapRoles, in the indentation of the other rows, and the rows of its
// role are removed. No other line changes.
func TestEditMapRoles(t *testing.T) {
	t.Parallel()
	row := diagnosis.Mapping{ARN: "arn:aws:iam::1:role/new", Username: nodeUser, Groups: nodeGroups()}
	const added = "- rolearn: arn:aws:iam::1:role/new\n  username: \"system:node:{{EC2PrivateDNSName}}\"\n  groups:\n  - system:bootstrappers\n  - system:nodes\n"
	const addedIndented = "  - rolearn: arn:aws:iam::1:role/new\n    username: \"system:node:{{EC2PrivateDNSName}}\"\n    groups:\n    - system:bootstrappers\n    - system:nodes\n"
	const other = "# made by hand\n- groups: [system:masters] # do not touch\n  rolearn: 'arn:aws:iam::1:role/admin'\n  username: admin\n  extra: kept\n"
	for name, c := range map[string]struct{ raw, want string }{ // want is empty if the text cannot be edited
		"after other rows":           {other, other + added},
		"last line without line end": {other[:len(other)-1], other + added},
		"replaces the row of its role": {"- rolearn: arn:aws:iam::1:role/path/new   # wrong\n  username: x\n\n# next\n" + other,
			"\n# next\n" + other + added},
		"indented rows": {"  - rolearn: a\n    groups:\n    - b\n",
			"  - rolearn: a\n    groups:\n    - b\n" + addedIndented},
		"list in flow style": {"[]", ""},
		"empty text":         {"", ""},
		"row without a role": {"- username: x\n", ""},
	} {
		got, ok := editMapRoles(c.raw, row)
		if ok != (c.want != "") || got != c.want {
			t.Errorf("%s: ok is %t, the text is\n%s\nwant\n%s", name, ok, got, c.want)
		}
	}
}
