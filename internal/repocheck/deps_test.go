package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// policy is the data flow, written as who may import whom. It is a statement
// of policy: change it in a commit of its own, never to make a build pass.
//
// A line reads "package: imports from this module | imports from outside".
// A package may import only what stands above it, so the list has no cycles
// and reads from values, through decisions, to the outside world.
// The standard library goes without saying, but see impure.
const policy = `
# Values: what the cluster is, and what can be bought.
keys:
internal/suggest:
internal/model/resources:
internal/model/requirements: keys
internal/model/bitset: internal/model/requirements
internal/model/catalog: internal/model/resources internal/model/requirements
internal/model/cluster: internal/model/resources internal/model/requirements
internal/emulator/iampolicy:
internal/disruption/cron:

# Decisions: standard library only, all the way down. Only fork knows of cores.
internal/scheduling/parallel:
internal/scheduling/lowerbound: internal/scheduling/parallel internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements
internal/scheduling/topology: keys internal/model/bitset internal/model/cluster internal/model/requirements
internal/scheduling/podgroup: keys internal/scheduling/topology internal/model/resources internal/model/cluster internal/model/requirements
internal/scheduling/offering: internal/model/bitset internal/scheduling/podgroup internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements
internal/scheduling/existing: keys internal/scheduling/topology internal/scheduling/podgroup internal/scheduling/offering internal/model/bitset internal/model/resources internal/model/cluster internal/model/requirements
internal/scheduling/packing: internal/suggest internal/scheduling/parallel keys internal/scheduling/lowerbound internal/scheduling/topology internal/scheduling/podgroup internal/scheduling/offering internal/scheduling/existing internal/model/bitset internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements
internal/scheduling/packing/verify: internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements internal/scheduling/packing
internal/node/lifecycle: internal/model/resources internal/model/cluster internal/model/requirements
internal/node/bootstrap: internal/model/resources internal/model/catalog internal/model/requirements
internal/scheduling/fairness: internal/scheduling/podgroup internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements
estimate: internal/scheduling/podgroup internal/scheduling/offering internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements
internal/disruption/consolidation: internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements internal/scheduling/packing internal/scheduling/packing/verify estimate
internal/disruption: internal/disruption/cron internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements internal/scheduling/packing
internal/disruption/drift: internal/model/requirements
internal/disruption/drain: internal/model/cluster internal/model/requirements
internal/disruption/replacement:
internal/diagnosis/fix:
internal/diagnosis: internal/suggest internal/diagnosis/fix
internal/migration: internal/diagnosis/fix
internal/emulator/world: internal/model/resources internal/model/catalog internal/model/requirements internal/emulator/iampolicy
internal/scenario: internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements internal/scheduling/packing
internal/cli/output: internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements internal/scheduling/packing
# end of pure

# The objects users write.
api/karpenter/v1:  | k8s.io/api k8s.io/apimachinery
api/karpenter/v1alpha1: api/karpenter/v1 | k8s.io/api k8s.io/apimachinery
api/aws/v1: api/karpenter/v1 | k8s.io/api k8s.io/apimachinery
api/crds/gen: api/karpenter/v1 api/aws/v1 | k8s.io/apiextensions-apiserver sigs.k8s.io/yaml
api/crds:  | k8s.io/apiextensions-apiserver k8s.io/apimachinery sigs.k8s.io/yaml

# Doors: one set of packages may speak to each outside system.
internal/aws/awserr:  | github.com/aws
internal/aws/ratelimit: internal/aws/awserr | github.com/aws
internal/kube: internal/suggest internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements internal/scheduling/packing internal/node/bootstrap internal/disruption/drift internal/diagnosis internal/migration api/karpenter/v1 api/karpenter/v1alpha1 api/aws/v1 api/crds | k8s.io sigs.k8s.io
internal/aws/ec2: internal/aws/awserr internal/model/resources internal/model/catalog internal/model/requirements internal/diagnosis | github.com/aws
internal/aws/ami: internal/aws/awserr internal/model/catalog internal/model/requirements internal/diagnosis | github.com/aws
internal/aws/vpc: internal/aws/awserr internal/model/catalog internal/diagnosis | github.com/aws
access: internal/aws/awserr internal/diagnosis | github.com/aws
internal/aws/pricing: internal/aws/awserr internal/model/catalog | github.com/aws
internal/aws/interruption: internal/aws/awserr | github.com/aws
shift: internal/aws/awserr | github.com/aws

# Evidence for a diagnosis, from all doors at once.
internal/diagnosis/collector: internal/diagnosis internal/model/catalog internal/model/requirements internal/aws/awserr internal/aws/ec2 internal/aws/ami internal/aws/vpc access internal/kube | golang.org/x/sync

# A fix, made as a value, when a user says so.
internal/diagnosis/remedy: internal/diagnosis/fix internal/aws/awserr internal/kube | github.com/aws

# What an instance makes of what it is given.
internal/node/userdata: internal/model/catalog internal/model/requirements internal/node/bootstrap | sigs.k8s.io/yaml go.yaml.in/yaml/v3 github.com/pelletier/go-toml mvdan.cc/sh

# Loops: read, decide, act, tell.
internal/config: internal/suggest
grant:
rights:
internal/metrics:  | github.com/prometheus
internal/controller: internal/scheduling/fairness internal/suggest internal/disruption/cron internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements internal/scheduling/packing internal/node/lifecycle internal/node/bootstrap internal/disruption/consolidation internal/disruption/drift internal/disruption internal/disruption/replacement internal/disruption/drain internal/diagnosis internal/diagnosis/fix api/karpenter/v1 api/karpenter/v1alpha1 api/aws/v1 internal/kube internal/node/userdata internal/aws/awserr internal/aws/ec2 internal/aws/ami internal/aws/vpc access internal/diagnosis/collector internal/aws/pricing internal/aws/interruption shift internal/config internal/metrics | k8s.io sigs.k8s.io github.com/go-logr github.com/prometheus golang.org/x/sync

# Tools.
internal/emulator: internal/model/catalog internal/emulator/iampolicy internal/emulator/world
internal/cli: internal/suggest internal/model/resources internal/model/catalog internal/model/cluster internal/model/requirements internal/scheduling/packing internal/scheduling/lowerbound internal/node/bootstrap internal/diagnosis internal/diagnosis/fix internal/migration internal/emulator/iampolicy internal/scenario internal/cli/output api/karpenter/v1 api/aws/v1 internal/kube internal/node/userdata internal/aws/awserr internal/aws/ec2 internal/aws/ami internal/aws/vpc access internal/diagnosis/collector internal/diagnosis/remedy internal/aws/pricing internal/config grant | github.com/spf13 sigs.k8s.io k8s.io github.com/aws

cmd/joiner: internal/suggest internal/model/catalog rights api/karpenter/v1 api/karpenter/v1alpha1 api/aws/v1 api/crds internal/kube internal/aws/awserr internal/aws/ratelimit internal/aws/ec2 internal/aws/ami internal/aws/vpc access internal/aws/pricing internal/aws/interruption shift internal/diagnosis/collector internal/config internal/metrics internal/controller internal/cli | k8s.io sigs.k8s.io github.com/aws github.com/spf13 github.com/prometheus github.com/go-logr
`

// impure names what a decision may not use, though the standard library has it.
var impure = map[string]bool{
	"context": true, "crypto/rand": true, "log": true, "log/slog": true,
	"math/rand": true, "math/rand/v2": true, "net": true, "net/http": true,
	"os": true, "os/exec": true, "sync": true,
	"time.Now": true, "time.Since": true, "time.Until": true, "time.Sleep": true, "time.After": true,
}

// forks is the one pure package that may start goroutines: docs/decisions/0010.
const forks = "fork"

const module = "github.com/joiner-sh/joiner/"

// TestPolicy reads the source itself, and not through the go command, so that
// the test cache knows every file that the answer rests on.
func TestPolicy(t *testing.T) {
	own, outside, pure := parsePolicy(t)
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if d.IsDir() && file != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || ownModule(file)) {
			return filepath.SkipDir
		}
		pkg := filepath.ToSlash(filepath.Dir(file))
		if err != nil || pkg == "." || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if _, ok := own[pkg]; !ok {
			t.Errorf("%s: package %s has no line in the policy", file, pkg)
		}
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			dep, ours := strings.CutPrefix(imp, module)
			first, _, _ := strings.Cut(imp, "/")
			switch {
			case ours && !slices.Contains(own[pkg], dep),
				!ours && strings.Contains(first, ".") && !slices.ContainsFunc(outside[pkg], func(s string) bool { return imp == s || strings.HasPrefix(imp, s+"/") }),
				pure[pkg] && pkg != forks && impure[imp]:
				t.Errorf("%s: package %s may not import %s", fset.Position(spec.Pos()), pkg, imp)
			}
		}
		if pure[pkg] && pkg != forks {
			checkPure(t, fset, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ownModule reports whether a folder is a Go module of its own, with a policy of its own.
func ownModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// checkPure refuses clocks and goroutines, which no import gives away.
func checkPure(t *testing.T, fset *token.FileSet, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s: a decision starts no goroutines", fset.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && impure[x.Name+"."+n.Sel.Name] {
				t.Errorf("%s: a decision takes its time as an argument, not from %s.%s", fset.Position(n.Pos()), x.Name, n.Sel.Name)
			}
		}
		return true
	})
}

func parsePolicy(t *testing.T) (own, outside map[string][]string, pure map[string]bool) {
	own, outside, pure = map[string][]string{}, map[string][]string{}, map[string]bool{}
	values, doors, ok := strings.Cut(policy, "# end of pure")
	if !ok {
		t.Fatal("the policy does not say where the pure packages end")
	}
	for i, part := range []string{values, doors} {
		for line := range strings.Lines(part) {
			name, rest, ok := strings.Cut(line, ":")
			if !ok || strings.HasPrefix(line, "#") {
				continue
			}
			in, out, _ := strings.Cut(rest, "|")
			for _, dep := range strings.Fields(in) {
				if _, above := own[dep]; !above {
					t.Errorf("policy: %s imports %s, which does not stand above it", name, dep)
				}
			}
			own[name], outside[name], pure[name] = strings.Fields(in), strings.Fields(out), i == 0
		}
	}
	return own, outside, pure
}
