package permissions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Lines before and after the statements in the guide.
const (
	guideBegin = "<!-- statements: written from package permissions: go test ./internal/permissions -run TestFiles -rewrite -->\n"
	guideEnd   = "<!-- end of statements -->\n"
)

// guide is the scope of the guide, with placeholders.
var guide = Scope{
	Partition: "PARTITION", Account: "ACCOUNT", Region: "REGION", Cluster: "CLUSTER", UID: "UID",
	NodeRoles: []string{"NODE-ROLE"}, Queue: "QUEUE",
	Parameters: []string{"YOUR/PARAMETER"},
}

// TestFilesOfGuide compares the guide's sections with the statements. Each statement has a section, with its reason and
// its worst case.
func TestFilesOfGuide(t *testing.T) {
	const file = "../../docs/guides/iam.md"
	conditional := onlyWithUID(t)
	var b strings.Builder
	for _, p := range policiesOf(t, guide) {
		fmt.Fprintf(&b, "\n### Policy `%s`\n", p.Name)
		for _, s := range p.Statements {
			if s.Worst == "" {
				t.Errorf("statement %s has no worst case", s.Sid)
			}
			writeSection(&b, s, conditional[s.Sid])
		}
	}
	compare(t, file, withPart(t, file, guideBegin, b.String()+"\n", guideEnd))
}

func writeSection(b *strings.Builder, s Statement, needsUID bool) {
	fmt.Fprintf(b, "\n#### `%s`\n\n%s\n\n", s.Sid, s.Why)
	verb := "Allows"
	if s.Effect == deny {
		verb = "Denies"
	}
	fmt.Fprintf(b, "* %s: %s\n", verb, code(s.Action))
	if !slices.Equal(s.Resource, []string{"*"}) {
		on := make([]string, 0, len(s.Resource))
		for _, r := range s.Resource {
			on = append(on, strings.TrimPrefix(r, "arn:PARTITION:"))
		}
		fmt.Fprintf(b, "* On: %s\n", code(on))
	}
	for _, operator := range slices.Sorted(maps.Keys(s.Condition)) {
		for _, key := range slices.Sorted(maps.Keys(s.Condition[operator])) {
			fmt.Fprintf(b, "* Where: %s\n", condition(operator, key, s.Condition[operator][key]))
		}
	}
	if needsUID {
		b.WriteString("* Exists only if the cluster's UID was given.\n")
	}
	fmt.Fprintf(b, "* At worst: %s\n", s.Worst)
}

func code(texts []string) string { return "`" + strings.Join(texts, "`, `") + "`" }

func condition(operator, key string, values []string) string {
	key = "`" + key + "`"
	switch {
	case operator == "StringLike" && slices.Equal(values, []string{"*"}):
		return key + " exists"
	case operator == "Null" && slices.Equal(values, []string{"false"}):
		return key + " exists"
	case operator == "StringEquals", operator == "StringLike":
		return key + " is " + strings.ReplaceAll(code(values), ", ", " or ")
	case operator == "StringNotEquals":
		return key + " is not " + code(values)
	case operator == "StringEqualsIfExists":
		return key + " is " + code(values) + ", or does not exist"
	case operator == "ForAllValues:StringEquals":
		return key + " are only " + code(values)
	}
	return "`" + operator + "` of " + key + " and " + code(values)
}
