package permissions

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Placeholders for lists that Terraform and CloudFormation provide: node roles, and custom SSM parameters.
const (
	roleMark      = "ROLES-OF-NODES"
	parameterMark = "OWN-PARAMETERS"
)

// terraform is the scope of the Terraform module: its variables and locals.
var terraform = Scope{
	Partition: "${local.partition}", Account: "${local.account_id}", Region: "${local.region}",
	Cluster: "${var.cluster_name}", UID: "${local.cluster_uid}",
	NodeRoles: []string{roleMark}, Queue: "${local.queue_name}", Parameters: []string{parameterMark},
}

// lists are the Terraform expressions that replace the placeholders.
var lists = map[string]string{roleMark: "local.node_role_arns", parameterMark: "var.ami_id_ssm_parameter_arns"}

const terraformHead = `# Written from package permissions: go test ./internal/permissions -run TestFiles -rewrite
# Each statement is explained in docs/guides/iam.md.

locals {
  controller_policies = {
`

// TestFilesOfTerraform compares the module's policies with those of this package.
func TestFilesOfTerraform(t *testing.T) {
	conditional := onlyWithUID(t)
	var b strings.Builder
	b.WriteString(terraformHead)
	for i, p := range policiesOf(t, terraform) {
		if i > 0 {
			b.WriteByte('\n')
		}
		_, withUID := split(p.Statements, conditional)
		fmt.Fprintf(&b, "    %s = {\n      Version = \"2012-10-17\"\n      Statement = ", p.Name)
		if len(withUID) == 0 {
			b.WriteString("[\n" + statementsHCL(p.Statements) + "      ]\n    }\n")
			continue
		}
		var sids []string
		for _, s := range withUID {
			sids = append(sids, s.Sid)
		}
		b.WriteString("[for statement in [\n" + statementsHCL(p.Statements) +
			"      ] : statement if var.cluster_uid != null || !contains(" + oneLine(sids) + ", statement.Sid)]\n    }\n")
	}
	b.WriteString("  }\n}\n")
	compare(t, "../../deploy/terraform/joiner/policies.tf", b.String())
}

// onlyWithUID returns the Sids of the statements that exist only with the cluster's UID.
func onlyWithUID(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, p := range policiesOf(t, demo) {
		for _, s := range p.Statements {
			out[s.Sid] = true
		}
	}
	noUID := demo
	noUID.UID = ""
	for _, p := range policiesOf(t, noUID) {
		for _, s := range p.Statements {
			delete(out, s.Sid)
		}
	}
	return out
}

// split separates the statements with the Sids of conditional, which need the UID, from the others.
func split(statements []Statement, conditional map[string]bool) (unconditional, withUID []Statement) {
	for _, s := range statements {
		if conditional[s.Sid] {
			withUID = append(withUID, s)
		} else {
			unconditional = append(unconditional, s)
		}
	}
	return unconditional, withUID
}

func statementsHCL(statements []Statement) string {
	var b strings.Builder
	for _, s := range statements {
		writeHCL(&b, s)
	}
	return b.String()
}

func writeHCL(b *strings.Builder, s Statement) {
	const indent = "        "
	fmt.Fprintf(b, "%s# %s\n%s{\n", indent, s.Why, indent)
	items := []item{
		{"Sid", []string{strconv.Quote(s.Sid)}}, {"Effect", []string{strconv.Quote(s.Effect)}},
		{"Action", textsHCL(s.Action)}, {"Resource", textsHCL(s.Resource)},
	}
	if len(s.Condition) > 0 {
		var operators []item
		for _, operator := range slices.Sorted(maps.Keys(s.Condition)) {
			var keys []item
			for _, key := range slices.Sorted(maps.Keys(s.Condition[operator])) {
				keys = append(keys, item{strconv.Quote(key), []string{oneLine(s.Condition[operator][key])}})
			}
			if strings.Contains(operator, ":") {
				operator = strconv.Quote(operator)
			}
			operators = append(operators, item{operator, inBraces(keys)})
		}
		items = append(items, item{"Condition", inBraces(operators)})
	}
	for _, line := range alignLines(items) {
		b.WriteString(indent + "  " + line + "\n")
	}
	b.WriteString(indent + "},\n")
}

// item is an attribute of a Terraform object, with its value on one or more lines.
type item struct {
	name  string
	lines []string
}

// alignLines returns items on separate lines, with the = of consecutive one-line items in one column.
func alignLines(items []item) []string {
	var out []string
	for i := 0; i < len(items); {
		end, width := i, 0
		for end < len(items) && len(items[end].lines) == 1 {
			width = max(width, len(items[end].name))
			end++
		}
		for ; i < end; i++ {
			out = append(out, fmt.Sprintf("%-*s = %s", width, items[i].name, items[i].lines[0]))
		}
		if i < len(items) {
			out = append(out, items[i].name+" = "+items[i].lines[0])
			out = append(out, items[i].lines[1:]...)
			i++
		}
	}
	return out
}

func inBraces(items []item) []string {
	out := []string{"{"}
	for _, line := range alignLines(items) {
		out = append(out, "  "+line)
	}
	return append(out, "}")
}

// oneLine returns a list of strings on one line. A text that is one Terraform expression, "${…}", is not quoted.
func oneLine(texts []string) string {
	quoted := make([]string, 0, len(texts))
	for _, text := range texts {
		expression, begins := strings.CutPrefix(text, "${")
		if expression, ends := strings.CutSuffix(expression, "}"); begins && ends && !strings.Contains(expression, "}") {
			quoted = append(quoted, expression)
			continue
		}
		quoted = append(quoted, strconv.Quote(text))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// textsHCL returns the lines of an HCL list. A text with a placeholder is replaced as a whole, with the Terraform
// expression of the placeholder's list.
func textsHCL(texts []string) []string {
	var plain, expressions []string
	for _, text := range texts {
		list := ""
		for mark, expression := range lists {
			if strings.Contains(text, mark) {
				list = expression
			}
		}
		if list == "" {
			plain = append(plain, text)
		} else {
			expressions = append(expressions, list)
		}
	}
	switch {
	case len(expressions) > 0 && len(plain) == 0:
		return []string{strings.Join(expressions, ", ")}
	case len(expressions) > 0:
		return []string{"concat(" + oneLine(plain) + ", " + strings.Join(expressions, ", ") + ")"}
	case len(plain) == 1:
		return []string{oneLine(plain)}
	}
	out := []string{"["}
	for _, text := range plain {
		out = append(out, "  "+strconv.Quote(text)+",")
	}
	return append(out, "]")
}
