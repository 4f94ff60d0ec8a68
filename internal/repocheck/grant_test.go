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

// callsWithOtherPermission lists calls to AWS that need a permission with another name, or no permission.
var callsWithOtherPermission = map[string]string{
	"sqs:DeleteMessageBatch": "needs sqs:DeleteMessage",
	"sts:GetCallerIdentity":  "needs no permission",
}

// permissionsWithoutCall lists permissions that are needed without a call of the same name, with the reason.
var permissionsWithoutCall = map[string]string{
	"iam:PassRole":           "a role is added to an instance profile, and instances get the profile",
	"iam:TagInstanceProfile": "a profile is tagged at its creation",
	"sqs:DeleteMessage":      "messages are deleted in batches",
}

// TestGrants compares the IAM policies with the calls to AWS in the code: each call is allowed, and each allowed action
// is called. The lab compares the policies with the calls at run time, including resources and conditions.
func TestGrants(t *testing.T) {
	scope := permissions.Scope{Account: "111122223333", Region: "us-east-1", Cluster: "demo"}
	policies, err := permissions.Policies(scope)
	if err != nil {
		t.Fatal(err)
	}
	doctor, err := permissions.Doctor(scope) // for calls of joiner doctor that the controller does not make
	if err != nil {
		t.Fatal(err)
	}
	actions, called := permissions.Actions(append(policies, doctor...)), callsInCode(t)
	if len(called) < 20 {
		t.Fatalf("the test found only %d calls, want at least 20: %v", len(called), called)
	}
	for _, call := range slices.Sorted(maps.Keys(called)) {
		isAllowed, isException := slices.Contains(actions, call), callsWithOtherPermission[call] != ""
		if isAllowed == isException {
			t.Errorf("%s calls %s: the call must be either in package permissions (then run go test ./internal/permissions -run TestFiles -rewrite), or with a reason in callsWithOtherPermission", called[call], call)
		}
	}
	for _, action := range actions {
		isCalled, isException := called[action] != "", permissionsWithoutCall[action] != ""
		if isCalled == isException {
			t.Errorf("package permissions allows %s, and the code calls it: %t; permissionsWithoutCall must list exactly the allowed actions that are not called", action, isCalled)
		}
	}
	for call := range callsWithOtherPermission {
		if called[call] == "" {
			t.Errorf("callsWithOtherPermission lists %s, which is no longer called", call)
		}
	}
}

// callsInCode returns the calls to AWS in the code, each with its file. It finds them by the types of their requests.
func callsInCode(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	fset := token.NewFileSet()
	for _, folder := range []string{"internal/aws/iam", "internal/aws/ami", "internal/aws/ec2", "internal/aws/interruption",
		"internal/aws/vpc", "internal/aws/pricing", "internal/aws/eks", "cmd/joiner", "internal/controller"} {
		for _, file := range sourcesBelow(t, folder) {
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

// requestType matches the type of a request: DescribeImagesInput.
var requestType = regexp.MustCompile(`^([A-Z]\w+)Input$`)

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
			if m := requestType.FindStringSubmatch(s.Sel.Name); m != nil && x != nil && services[x.Name] != "" {
				out = append(out, services[x.Name]+":"+m[1])
			}
		}
		return true
	})
	return out
}
