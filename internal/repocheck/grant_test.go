package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/permissions"
)

// beyond are calls of the AWS clients that need a permission with another name, or no permission.
var beyond = map[string]string{
	"sqs:DeleteMessageBatch": "takes sqs:DeleteMessage",
	"sts:GetCallerIdentity":  "needs no permission",
}

// implied are permissions that are needed without a call of the same name.
var implied = map[string]string{
	"iam:PassRole":           "a role is added to an instance profile, and instances get the profile",
	"iam:TagInstanceProfile": "a profile is tagged at its creation",
	"sqs:DeleteMessage":      "messages are deleted in batches",
}

// TestGrants compares the IAM policies with the calls in the code of the AWS clients: each call is allowed, and each allowed action is
// called. The lab compares them with the real calls, including resources and conditions.
func TestGrants(t *testing.T) {
	scope := permissions.Scope{Account: "111122223333", Region: "us-east-1", Cluster: "demo"}
	policies, err := permissions.Policies(scope)
	if err != nil {
		t.Fatal(err)
	}
	reading, err := permissions.Doctor(scope) // calls of joiner doctor that the controller does not make
	if err != nil {
		t.Fatal(err)
	}
	allowed, called := permissions.Actions(append(policies, reading...)), callsOfClients(t)
	if len(called) < 20 {
		t.Fatalf("only %d calls were found: %v", len(called), called)
	}
	for _, call := range slices.Sorted(maps.Keys(called)) {
		if slices.Contains(allowed, call) == (beyond[call] != "") {
			t.Errorf("%s: %s is called: add it to package permissions, or with the reason to beyond in this test (then: go test ./internal/permissions -run TestFiles -rewrite)", called[call], call)
		}
	}
	for _, action := range allowed {
		if (called[action] == "") != (implied[action] != "") {
			t.Errorf("package permissions allows %s, but no AWS client calls it: remove it, or add it with the reason to implied in this test", action)
		}
	}
	for call := range beyond {
		if called[call] == "" {
			t.Errorf("beyond lists %s, which is no longer called", call)
		}
	}
}

// callsOfClients returns the calls in the code of the AWS clients with their positions. It finds them by the types of
// their requests.
func callsOfClients(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	fset := token.NewFileSet()
	for _, door := range []string{"internal/aws/iam", "internal/aws/ami", "internal/aws/ec2", "internal/aws/interruption",
		"internal/aws/vpc", "internal/aws/pricing", "internal/aws/eks", "cmd/joiner", "internal/controller"} {
		for _, file := range sourcesBelow(t, door) {
			f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range callsIn(f) {
				out[call] = file
			}
		}
	}
	return out
}

// prefixOf returns IAM's prefix for the SDK's name of a service.
func prefixOf(service string) string {
	if service == "arczonalshift" {
		return "arc-zonal-shift"
	}
	return service
}

// request matches the type of a request: DescribeImagesInput.
var request = regexp.MustCompile(`^([A-Z]\w+)Input$`)

// callsIn returns the requests to AWS in a file: "ec2:DescribeImages".
func callsIn(f *ast.File) []string {
	services := map[string]string{} // by package name in the file
	for _, spec := range f.Imports {
		service, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "github.com/aws/aws-sdk-go-v2/service/")
		if !ok || strings.Contains(service, "/") {
			continue
		}
		name := service
		if spec.Name != nil {
			name = spec.Name.Name
		}
		services[name] = prefixOf(service)
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if s, ok := literal.Type.(*ast.SelectorExpr); ok {
			x, _ := s.X.(*ast.Ident)
			if m := request.FindStringSubmatch(s.Sel.Name); m != nil && x != nil && services[x.Name] != "" {
				out = append(out, services[x.Name]+":"+m[1])
			}
		}
		return true
	})
	return out
}
