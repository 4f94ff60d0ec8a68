package permissions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// cloudformation is the scope of the template: CloudFormation's pseudo parameters, parameters of the template, and
// variables of substitutes.
var cloudformation = Scope{
	Partition: "${AWS::Partition}", Account: "${AWS::AccountId}", Region: "${AWS::Region}", Cluster: "${ClusterName}", UID: "${UID}",
	NodeRoles: []string{roleMark}, Queue: "${NoticeQueue}", Parameters: []string{parameterMark},
}

// Lines before and after the policies in the template.
const (
	templateBegin = "  # Policies, written from package permissions: go test ./internal/permissions -run TestFiles -rewrite\n"
	templateEnd   = "  # End of policies.\n"
)

// substitutes are the variables for conditional parts of a policy, by name, with their values in YAML.
var substitutes = map[string]string{
	"NoticeQueue":   `!If [NamesQueue, !Ref QueueName, !Ref ClusterName]`,
	"UID":           `!If [KnowsUID, !Ref ClusterUID, "*"]`,
	"NodeRoles":     `!If [MakesNodeRole, !GetAtt NodeRole.Arn, !Join ['","', !Ref NodeRoleArns]]`,
	"OwnParameters": `!If [HasParameters, !Sub [',"${All}"', {All: !Join ['","', !Ref ImageParameterArns]}], ""]`,
}

// TestFilesOfCloudFormation compares the template's policies with those of this package. The template has the policies
// as JSON texts, because some conditions have the cluster's name in a property name, where CloudFormation substitutes
// nothing.
func TestFilesOfCloudFormation(t *testing.T) {
	const file = "../../deploy/cloudformation/joiner.yaml"
	conditional := onlyWithUID(t)
	var b strings.Builder
	for _, p := range policiesOf(t, cloudformation) {
		writePolicyYAML(t, &b, p, conditional)
	}
	compare(t, file, withPart(t, file, templateBegin, b.String(), templateEnd))
}

// writePolicyYAML writes a policy as a resource of the template. conditional has the Sids of onlyWithUID.
func writePolicyYAML(t *testing.T, b *strings.Builder, p Policy, conditional map[string]bool) {
	t.Helper()
	unconditional, withUID := split(p.Statements, conditional)
	fmt.Fprintf(b, "  %sPolicy:\n    Type: AWS::IAM::ManagedPolicy\n", strings.ToUpper(p.Name[:1])+p.Name[1:])
	if p.Name == "interruption" {
		b.WriteString("    Condition: UsesQueue\n")
	}
	fmt.Fprintf(b, "    Properties:\n      Description: !Sub \"Joiner in cluster ${ClusterName}: %s\"\n      Roles: [!Ref ControllerRole]\n", p.Name)
	for _, s := range p.Statements {
		fmt.Fprintf(b, "      # %s: %s\n", s.Sid, s.Why)
	}
	body := documentText(t, Policy{Name: p.Name, Statements: unconditional})
	body = strings.ReplaceAll(body, "\n", "\n            ")
	if len(withUID) > 0 { // inserts ${WithUID} after the last statement
		cut := strings.LastIndex(body, "]") // the end of the list of statements
		cut = strings.LastIndex(body[:cut], "\n")
		body = body[:cut] + "\n              ${WithUID}" + body[cut:]
	}
	var variables strings.Builder
	for _, name := range slices.Sorted(maps.Keys(substitutes)) {
		if strings.Contains(body, "${"+name+"}") {
			fmt.Fprintf(&variables, "            %s: %s\n", name, substitutes[name])
		}
	}
	if len(withUID) > 0 {
		variables.WriteString("            WithUID: !If\n              - KnowsUID\n              - !Sub\n                - |\n")
		for _, s := range withUID {
			statement := documentText(t, Policy{Name: p.Name, Statements: []Statement{s}})
			statement = statement[strings.Index(statement, "[")+1 : strings.LastIndex(statement, "]")] // without the document around it
			statement = strings.ReplaceAll(strings.TrimSpace(statement), "\n    ", "\n                  ")
			variables.WriteString("                  ," + statement + "\n")
		}
		variables.WriteString("                - UID: !Ref ClusterUID\n              - \"\"\n")
	}
	if variables.Len() == 0 {
		fmt.Fprintf(b, "      PolicyDocument:\n        Fn::Sub: |\n            %s\n", body)
	} else {
		fmt.Fprintf(b, "      PolicyDocument:\n        Fn::Sub:\n          - |\n            %s\n          -\n%s", body, variables.String())
	}
	b.WriteByte('\n')
}

// documentText returns a policy's JSON with variables of substitutes instead of roleMark and parameterMark.
func documentText(t *testing.T, p Policy) string {
	t.Helper()
	text, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.Contains(line, roleMark):
			line = line[:strings.Index(line, `"`)] + `"${NodeRoles}"`
		case strings.Contains(line, parameterMark):
			line = line[:strings.Index(line, `"`)] + "${OwnParameters}"
			out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], ",") // OwnParameters has the comma
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
