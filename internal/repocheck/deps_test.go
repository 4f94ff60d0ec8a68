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

// importPolicy lists the allowed imports of each package. Change it in a separate commit, never to make a build pass.
//
// A line reads "package: imports from this module | imports from other modules". A package may import only packages
// above it, so that there are no cycles. All packages of a group are listed below its heading, so that no group imports
// a later one. The standard library is allowed; pure packages must not use what forbiddenInPure lists.
const importPolicy = `
# api: the objects that users write.
api/karpenter/v1: | k8s.io/api k8s.io/apimachinery
api/karpenter/v1alpha1: api/karpenter/v1 | k8s.io/api k8s.io/apimachinery
api/aws/v1: api/karpenter/v1 | k8s.io/api k8s.io/apimachinery
api/crds/gen: api/aws/v1 api/karpenter/v1 | k8s.io/apiextensions-apiserver sigs.k8s.io/yaml
api/crds: | k8s.io/apiextensions-apiserver k8s.io/apimachinery sigs.k8s.io/yaml

# suggest: the known name that a misspelled one probably means.
internal/suggest:

# model: what the cluster is, and what EC2 offers. Pure.
internal/model/hashkey:
internal/model/resources:
internal/model/requirements: internal/model/hashkey
internal/model/bitset: internal/model/requirements
internal/model/catalog: internal/model/requirements internal/model/resources
internal/model/cluster: internal/model/requirements internal/model/resources

# scheduling: which nodes to launch for which pods. Pure.
internal/scheduling/parallel:
internal/scheduling/lowerbound: internal/model/catalog internal/scheduling/parallel
internal/scheduling/topology: internal/model/bitset internal/model/cluster internal/model/hashkey internal/model/requirements
internal/scheduling/podgroup: internal/model/cluster internal/model/hashkey internal/model/requirements internal/model/resources internal/scheduling/topology
internal/scheduling/offering: internal/model/bitset internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources internal/scheduling/podgroup
internal/scheduling/existing: internal/model/bitset internal/model/cluster internal/model/hashkey internal/model/requirements internal/model/resources internal/scheduling/offering internal/scheduling/podgroup internal/scheduling/topology
internal/scheduling/packing/binding: internal/scheduling/existing internal/scheduling/topology
internal/scheduling/packing/dualprice: internal/model/bitset internal/model/catalog internal/model/resources internal/scheduling/existing internal/scheduling/lowerbound internal/scheduling/offering internal/scheduling/parallel internal/scheduling/podgroup internal/scheduling/topology
internal/scheduling/packing/refusal: internal/model/catalog internal/model/cluster internal/model/hashkey internal/model/requirements internal/model/resources internal/scheduling/existing internal/scheduling/offering internal/scheduling/podgroup internal/scheduling/topology internal/suggest
internal/scheduling/packing/pending: internal/model/bitset internal/model/hashkey internal/model/resources internal/scheduling/existing internal/scheduling/offering internal/scheduling/packing/dualprice internal/scheduling/podgroup internal/scheduling/topology
internal/scheduling/packing/bundle: internal/model/bitset internal/model/resources internal/scheduling/existing internal/scheduling/packing/pending internal/scheduling/podgroup internal/scheduling/topology
internal/scheduling/packing: internal/model/bitset internal/model/catalog internal/model/cluster internal/model/hashkey internal/model/requirements internal/model/resources internal/scheduling/existing internal/scheduling/offering internal/scheduling/packing/binding internal/scheduling/packing/bundle internal/scheduling/packing/dualprice internal/scheduling/packing/pending internal/scheduling/packing/refusal internal/scheduling/parallel internal/scheduling/podgroup internal/scheduling/topology
internal/scheduling/packing/verify: internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources internal/scheduling/packing
internal/scheduling/fairness: internal/model/cluster internal/scheduling/podgroup

# disruption: which nodes to remove or replace. Pure.
internal/disruption/cron:
internal/disruption/consolidation: internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources internal/scheduling/offering internal/scheduling/packing internal/scheduling/packing/verify internal/scheduling/podgroup
internal/disruption/drift: internal/model/requirements
internal/disruption/drain: internal/model/requirements
internal/disruption/replacement:
internal/disruption: internal/disruption/cron internal/model/catalog internal/model/cluster internal/scheduling/packing

# node: the life of one node, and how an instance boots. Pure, but for userdata, which parses with libraries.
internal/node/lifecycle: internal/model/resources
internal/node/podbinding: internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources
internal/node/bootstrap: internal/model/catalog internal/model/requirements
internal/node/userdata: internal/model/catalog internal/model/requirements | github.com/pelletier/go-toml go.yaml.in/yaml/v3 mvdan.cc/sh
internal/node/userdata/kubelet: internal/model/catalog internal/model/requirements internal/node/bootstrap internal/node/userdata
internal/node/userdata/bottlerocket: internal/node/userdata internal/node/userdata/kubelet | github.com/pelletier/go-toml
internal/node/userdata/nodeadm: internal/node/userdata internal/node/userdata/kubelet | sigs.k8s.io/yaml
internal/node/userdata/shell: internal/model/catalog internal/node/userdata internal/node/userdata/kubelet internal/node/userdata/nodeadm | mvdan.cc/sh
internal/node/userdata/cloudinit: internal/model/catalog internal/node/userdata internal/node/userdata/kubelet internal/node/userdata/nodeadm internal/node/userdata/shell | sigs.k8s.io/yaml
internal/node/userdata/windows: internal/node/userdata internal/node/userdata/kubelet
internal/node/userdata/reading: internal/model/catalog internal/node/userdata internal/node/userdata/bottlerocket internal/node/userdata/cloudinit internal/node/userdata/kubelet internal/node/userdata/shell internal/node/userdata/windows | mvdan.cc/sh

# diagnosis: why a node does not join, and the fix. Pure.
internal/diagnosis/fix:
internal/diagnosis: internal/diagnosis/fix
internal/diagnosis/index: internal/diagnosis internal/diagnosis/fix
internal/diagnosis/nodeclass: internal/diagnosis internal/diagnosis/fix internal/diagnosis/index
internal/diagnosis/network: internal/diagnosis internal/diagnosis/fix internal/diagnosis/index internal/diagnosis/nodeclass
internal/diagnosis/auth: internal/diagnosis internal/diagnosis/fix internal/diagnosis/index internal/diagnosis/nodeclass
internal/diagnosis/boot: internal/diagnosis internal/diagnosis/fix internal/diagnosis/index internal/diagnosis/nodeclass
internal/diagnosis/ready: internal/diagnosis internal/diagnosis/fix internal/diagnosis/index internal/diagnosis/nodeclass
internal/diagnosis/architecture: internal/diagnosis internal/diagnosis/fix internal/diagnosis/index internal/diagnosis/nodeclass
internal/diagnosis/launch: internal/diagnosis internal/diagnosis/auth internal/diagnosis/fix internal/diagnosis/index internal/diagnosis/network internal/diagnosis/nodeclass internal/suggest
internal/diagnosis/fargate: internal/diagnosis internal/diagnosis/auth internal/diagnosis/fix internal/diagnosis/index internal/diagnosis/network
internal/diagnosis/leader: internal/diagnosis internal/diagnosis/fix internal/diagnosis/index
internal/diagnosis/identity: internal/diagnosis internal/diagnosis/fix internal/diagnosis/index internal/diagnosis/launch internal/diagnosis/network
internal/diagnosis/checks: internal/diagnosis internal/diagnosis/architecture internal/diagnosis/auth internal/diagnosis/boot internal/diagnosis/fargate internal/diagnosis/fix internal/diagnosis/identity internal/diagnosis/index internal/diagnosis/launch internal/diagnosis/leader internal/diagnosis/network internal/diagnosis/ready

# migration: what a switch from Karpenter needs. Pure.
internal/migration: internal/diagnosis/fix

# aws: the only packages that call AWS.
internal/aws/awserr: | github.com/aws
internal/aws/ratelimit: internal/aws/awserr | github.com/aws
internal/aws/ec2: internal/aws/awserr internal/diagnosis internal/model/catalog | github.com/aws
internal/aws/ami: internal/aws/awserr internal/diagnosis internal/model/catalog internal/model/requirements | github.com/aws
internal/aws/vpc: internal/aws/awserr internal/diagnosis | github.com/aws
internal/aws/iam: internal/aws/awserr internal/diagnosis | github.com/aws
internal/aws/eks: internal/aws/awserr internal/diagnosis | github.com/aws
internal/aws/pricing: internal/aws/awserr internal/model/catalog | github.com/aws
internal/aws/interruption: internal/aws/awserr | github.com/aws

# kube: the only packages that call the Kubernetes API.
internal/kube/kubeclient: api/aws/v1 api/crds api/karpenter/v1 api/karpenter/v1alpha1 internal/model/catalog | k8s.io sigs.k8s.io
internal/kube/fakeapi: api/aws/v1 api/karpenter/v1 api/karpenter/v1alpha1 | k8s.io sigs.k8s.io
internal/kube/kubetest: api/aws/v1 api/karpenter/v1 internal/kube/fakeapi internal/kube/kubeclient internal/model/cluster internal/model/requirements internal/model/resources internal/scheduling/packing | github.com/google k8s.io sigs.k8s.io
internal/kube/conversion: api/aws/v1 api/karpenter/v1 internal/disruption/drift internal/kube/kubeclient internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources internal/node/bootstrap internal/scheduling/packing internal/suggest | k8s.io sigs.k8s.io
internal/kube/snapshot: api/aws/v1 api/karpenter/v1 internal/kube/conversion internal/kube/kubeclient internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources | k8s.io sigs.k8s.io
internal/kube/writer: api/aws/v1 api/karpenter/v1 api/karpenter/v1alpha1 internal/kube/conversion internal/kube/kubeclient internal/kube/snapshot internal/scheduling/packing | k8s.io sigs.k8s.io
internal/kube/manifest: api/aws/v1 api/crds api/karpenter/v1 internal/kube/conversion internal/kube/kubeclient internal/kube/snapshot internal/model/catalog internal/node/bootstrap internal/suggest | k8s.io sigs.k8s.io
internal/kube/evidence: api/aws/v1 api/crds api/karpenter/v1 internal/diagnosis internal/kube/conversion internal/kube/kubeclient internal/kube/manifest internal/migration | k8s.io sigs.k8s.io

# doctor: evidence for a diagnosis is collected, and a fix is applied.
internal/doctor/collector: internal/aws/ami internal/aws/awserr internal/aws/ec2 internal/aws/eks internal/aws/iam internal/aws/vpc internal/diagnosis internal/kube/evidence internal/kube/kubeclient internal/model/catalog internal/model/requirements | golang.org/x/sync
internal/doctor/remedy: internal/aws/awserr internal/diagnosis/fix internal/kube/evidence internal/kube/kubeclient | github.com/aws

# shared: settings, permissions and metrics, which more than one program uses.
internal/config: internal/suggest
internal/permissions:
internal/metrics: | github.com/prometheus

# emulator: the AWS of the lab. The world and the policies are pure.
internal/emulator/iampolicy:
internal/emulator/world/failure:
internal/emulator/world/site: internal/model/catalog
internal/emulator/world/identity: internal/emulator/iampolicy internal/emulator/world/failure internal/emulator/world/site
internal/emulator/world/network: internal/emulator/world/failure internal/emulator/world/site
internal/emulator/world/ekscluster: internal/emulator/world/failure internal/emulator/world/identity internal/emulator/world/site
internal/emulator/world: internal/emulator/iampolicy internal/emulator/world/ekscluster internal/emulator/world/failure internal/emulator/world/identity internal/emulator/world/network internal/emulator/world/site internal/model/catalog
internal/emulator/api: internal/emulator/iampolicy internal/emulator/world internal/emulator/world/failure internal/emulator/world/identity
internal/emulator/ec2: internal/emulator/api internal/emulator/iampolicy internal/emulator/world internal/emulator/world/failure internal/emulator/world/network internal/emulator/world/site internal/model/catalog
internal/emulator/iam: internal/emulator/api internal/emulator/iampolicy internal/emulator/world internal/emulator/world/failure internal/emulator/world/identity internal/emulator/world/site
internal/emulator/eks: internal/emulator/api internal/emulator/iampolicy internal/emulator/world internal/emulator/world/ekscluster internal/emulator/world/failure
internal/emulator/sqs: internal/emulator/api internal/emulator/iampolicy internal/emulator/world internal/emulator/world/failure
internal/emulator: internal/emulator/api internal/emulator/ec2 internal/emulator/eks internal/emulator/iam internal/emulator/iampolicy internal/emulator/sqs internal/emulator/world internal/emulator/world/failure internal/emulator/world/identity internal/emulator/world/site

# scenario: clusters and plans as text. Pure.
internal/scenario: internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources internal/scheduling/packing

# controller: the loops. They read, decide with the packages above, and act.
internal/controller/loop: api/karpenter/v1 internal/aws/awserr internal/aws/ec2 internal/diagnosis internal/diagnosis/fix internal/disruption internal/disruption/replacement internal/kube/kubeclient internal/metrics | k8s.io sigs.k8s.io
internal/controller/nodestate: api/aws/v1 api/karpenter/v1 internal/controller/loop internal/disruption internal/disruption/consolidation internal/disruption/cron internal/disruption/drain internal/disruption/drift internal/kube/conversion internal/kube/kubeclient internal/kube/snapshot internal/metrics internal/model/catalog internal/model/cluster internal/model/requirements internal/node/lifecycle internal/scheduling/packing internal/suggest | k8s.io sigs.k8s.io
internal/controller/poolhealth: api/aws/v1 api/karpenter/v1 internal/controller/loop internal/kube/conversion internal/model/cluster internal/model/resources internal/node/lifecycle internal/scheduling/packing | k8s.io sigs.k8s.io
internal/controller/offerings: api/aws/v1 api/karpenter/v1 api/karpenter/v1alpha1 internal/aws/ami internal/aws/awserr internal/aws/ec2 internal/aws/eks internal/aws/pricing internal/aws/vpc internal/controller/loop internal/controller/nodestate internal/controller/poolhealth internal/diagnosis internal/diagnosis/fix internal/kube/conversion internal/kube/kubeclient internal/kube/snapshot internal/metrics internal/model/catalog internal/model/requirements internal/model/resources internal/node/bootstrap internal/node/userdata internal/node/userdata/reading | k8s.io sigs.k8s.io
internal/controller/provisioner: internal/controller/loop internal/controller/nodestate internal/controller/poolhealth internal/kube/kubeclient internal/kube/writer internal/metrics internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources internal/node/bootstrap internal/scheduling/fairness internal/scheduling/packing | k8s.io
internal/controller/diagnoser: api/aws/v1 api/karpenter/v1 internal/controller/loop internal/controller/nodestate internal/controller/poolhealth internal/diagnosis internal/diagnosis/checks internal/diagnosis/fix internal/doctor/collector internal/kube/conversion internal/kube/kubeclient internal/metrics internal/node/lifecycle | k8s.io sigs.k8s.io
internal/controller/driftcheck: api/aws/v1 api/karpenter/v1 internal/aws/ami internal/aws/awserr internal/aws/ec2 internal/controller/loop internal/controller/nodestate internal/controller/offerings internal/disruption internal/disruption/drift internal/kube/conversion internal/kube/kubeclient internal/metrics internal/model/catalog internal/model/requirements internal/node/lifecycle | golang.org/x/sync k8s.io sigs.k8s.io
internal/controller/nodeclaim: api/aws/v1 api/karpenter/v1 internal/aws/awserr internal/aws/ec2 internal/controller/diagnoser internal/controller/driftcheck internal/controller/loop internal/controller/nodestate internal/controller/offerings internal/controller/poolhealth internal/diagnosis internal/disruption internal/disruption/drain internal/kube/conversion internal/kube/evidence internal/kube/kubeclient internal/kube/snapshot internal/kube/writer internal/metrics internal/model/cluster internal/model/resources internal/node/lifecycle internal/node/podbinding | k8s.io sigs.k8s.io
internal/controller/nodeclass: api/aws/v1 api/karpenter/v1 api/karpenter/v1alpha1 internal/aws/ami internal/aws/awserr internal/aws/ec2 internal/aws/iam internal/aws/vpc internal/controller/diagnoser internal/controller/driftcheck internal/controller/loop internal/controller/nodestate internal/controller/offerings internal/controller/poolhealth internal/disruption/drift internal/kube/conversion internal/kube/kubeclient internal/metrics internal/model/requirements internal/node/bootstrap | k8s.io sigs.k8s.io
internal/controller/nodepool: api/aws/v1 api/karpenter/v1 internal/controller/loop internal/controller/nodestate internal/controller/poolhealth internal/disruption internal/kube/kubeclient internal/kube/snapshot internal/metrics internal/model/catalog internal/node/lifecycle | golang.org/x/sync k8s.io sigs.k8s.io
internal/controller/interruptions: api/aws/v1 api/karpenter/v1 internal/aws/awserr internal/aws/ec2 internal/aws/interruption internal/controller/loop internal/controller/nodeclaim internal/controller/nodestate internal/kube/kubeclient internal/kube/snapshot internal/metrics internal/node/lifecycle | golang.org/x/sync k8s.io sigs.k8s.io
internal/controller/fleetprice: api/karpenter/v1 internal/controller/loop internal/controller/nodestate internal/kube/snapshot internal/metrics internal/model/catalog internal/model/cluster internal/scheduling/packing
internal/controller/disruptor: api/karpenter/v1 internal/controller/diagnoser internal/controller/driftcheck internal/controller/loop internal/controller/nodestate internal/controller/poolhealth internal/controller/provisioner internal/disruption internal/disruption/consolidation internal/disruption/replacement internal/kube/conversion internal/kube/kubeclient internal/kube/snapshot internal/kube/writer internal/metrics internal/model/catalog internal/model/cluster internal/scheduling/packing | golang.org/x/sync k8s.io
internal/controller/gc: api/aws/v1 api/karpenter/v1 internal/aws/awserr internal/aws/ec2 internal/aws/iam internal/aws/interruption internal/config internal/controller/driftcheck internal/controller/interruptions internal/controller/loop internal/controller/nodeclaim internal/controller/nodestate internal/controller/offerings internal/controller/poolhealth internal/kube/kubeclient internal/metrics internal/model/catalog internal/node/lifecycle | golang.org/x/sync k8s.io sigs.k8s.io
internal/controller: api/aws/v1 api/karpenter/v1 api/karpenter/v1alpha1 internal/controller/diagnoser internal/controller/disruptor internal/controller/driftcheck internal/controller/fleetprice internal/controller/gc internal/controller/interruptions internal/controller/loop internal/controller/nodeclaim internal/controller/nodeclass internal/controller/nodepool internal/controller/nodestate internal/controller/offerings internal/controller/provisioner internal/kube/kubeclient | k8s.io sigs.k8s.io

# cli: the commands.
internal/cli/output: internal/model/catalog internal/model/resources internal/scheduling/packing
internal/cli/message: internal/diagnosis
internal/cli/inputfile:
internal/cli/connection: internal/aws/awserr internal/cli/message internal/diagnosis internal/suggest | github.com/aws k8s.io sigs.k8s.io
internal/cli/helmvalues: internal/cli/inputfile internal/cli/message internal/config internal/kube/evidence internal/migration internal/suggest | sigs.k8s.io
internal/cli/screen: internal/cli/message internal/cli/output internal/diagnosis internal/diagnosis/fix internal/migration
internal/cli: api/aws/v1 api/karpenter/v1 internal/aws/ami internal/aws/awserr internal/aws/ec2 internal/aws/eks internal/aws/iam internal/aws/pricing internal/aws/vpc internal/cli/connection internal/cli/helmvalues internal/cli/inputfile internal/cli/message internal/cli/output internal/cli/screen internal/config internal/diagnosis internal/diagnosis/checks internal/diagnosis/leader internal/doctor/collector internal/doctor/remedy internal/emulator/iampolicy internal/kube/conversion internal/kube/evidence internal/kube/kubeclient internal/kube/manifest internal/kube/snapshot internal/migration internal/model/catalog internal/model/cluster internal/model/requirements internal/model/resources internal/node/bootstrap internal/node/userdata internal/node/userdata/reading internal/permissions internal/scheduling/packing internal/suggest | github.com/aws github.com/spf13 k8s.io sigs.k8s.io

# cmd: flags, clients and signals.
cmd/joiner: api/aws/v1 api/karpenter/v1 api/karpenter/v1alpha1 internal/aws/ami internal/aws/awserr internal/aws/ec2 internal/aws/eks internal/aws/iam internal/aws/interruption internal/aws/pricing internal/aws/ratelimit internal/aws/vpc internal/cli internal/cli/connection internal/config internal/controller internal/controller/diagnoser internal/controller/disruptor internal/controller/driftcheck internal/controller/fleetprice internal/controller/gc internal/controller/interruptions internal/controller/loop internal/controller/nodeclaim internal/controller/nodeclass internal/controller/nodepool internal/controller/nodestate internal/controller/offerings internal/controller/poolhealth internal/controller/provisioner internal/doctor/collector internal/kube/conversion internal/kube/evidence internal/kube/kubeclient internal/kube/snapshot internal/kube/writer internal/metrics internal/model/catalog internal/permissions internal/suggest | github.com/aws github.com/go-logr github.com/spf13 k8s.io sigs.k8s.io
`

// forbiddenInPure lists the packages of the standard library that pure packages must not import, and the functions of
// package time that they must not call.
var forbiddenInPure = map[string]bool{
	"context": true, "crypto/rand": true, "log": true, "log/slog": true,
	"math/rand": true, "math/rand/v2": true, "net": true, "net/http": true,
	"os": true, "os/exec": true, "sync": true,
	"time.Now": true, "time.Since": true, "time.Until": true, "time.Sleep": true, "time.After": true,
}

// purePackages lists the packages of decisions and values. The packages below them are pure, too.
var purePackages = []string{
	"internal/suggest", "internal/model", "internal/scheduling", "internal/disruption",
	"internal/node/lifecycle", "internal/node/bootstrap", "internal/diagnosis",
	"internal/migration", "internal/emulator/iampolicy", "internal/emulator/world", "internal/scenario", "internal/cli/output",
}

// parallelPackage is the only pure package that may start goroutines: docs/decisions/0010.
const parallelPackage = "internal/scheduling/parallel"

// isPure reports whether the package must be pure: without clock, client and goroutines.
func isPure(pkg string) bool {
	return pkg != parallelPackage && slices.ContainsFunc(purePackages, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

const module = "github.com/joiner-sh/joiner/"

// TestPolicy checks the imports of all packages against the policy. It reads the source files itself, not through the
// go command, so that the test cache knows its inputs.
func TestPolicy(t *testing.T) {
	internal, external := parsePolicy(t)
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if d.IsDir() && file != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || isSeparateModule(file)) {
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
		if _, ok := internal[pkg]; !ok {
			t.Errorf("%s: package %s has no line in the policy", file, pkg)
		}
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			dep, isOurs := strings.CutPrefix(imp, module)
			host, _, _ := strings.Cut(imp, "/")
			isExternal := !isOurs && strings.Contains(host, ".") // paths of the standard library have no host
			isListed := slices.ContainsFunc(external[pkg], func(s string) bool { return imp == s || strings.HasPrefix(imp, s+"/") })
			switch {
			case isOurs && !slices.Contains(internal[pkg], dep), isExternal && !isListed, isPure(pkg) && forbiddenInPure[imp]:
				t.Errorf("%s: package %s is not allowed to import %s", fset.Position(spec.Pos()), pkg, imp)
			}
		}
		if isPure(pkg) {
			checkPure(t, fset, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isSeparateModule reports whether a folder is a separate Go module, to which the policy does not apply.
func isSeparateModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// checkPure reports uses of clocks and goroutines, which the imports do not show.
func checkPure(t *testing.T, fset *token.FileSet, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s: a pure package must not start goroutines", fset.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && forbiddenInPure[x.Name+"."+n.Sel.Name] {
				t.Errorf("%s: a pure package must take the time as an argument, not from %s.%s", fset.Position(n.Pos()), x.Name, n.Sel.Name)
			}
		}
		return true
	})
}

// parsePolicy returns the allowed imports of each package: packages of this module, and packages of other modules. It
// checks the order of the policy: imported packages are above their importers, and the packages of a top folder are in
// one group.
func parsePolicy(t *testing.T) (internal, external map[string][]string) {
	internal, external = map[string][]string{}, map[string][]string{}
	group, groupOf := 0, map[string]int{} // number of the heading, and by top folder
	for line := range strings.Lines(importPolicy) {
		if strings.HasPrefix(line, "#") {
			group++
			continue
		}
		name, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		in, out, _ := strings.Cut(rest, "|")
		for _, dep := range strings.Fields(in) {
			if _, isAbove := internal[dep]; !isAbove {
				t.Errorf("policy: %s imports %s, which is not listed above it", name, dep)
			}
		}
		internal[name], external[name] = strings.Fields(in), strings.Fields(out)
		if known, ok := groupOf[topFolder(name)]; ok && known != group {
			t.Errorf("policy: %s is not listed with the other packages of %s", name, topFolder(name))
		}
		groupOf[topFolder(name)] = group
	}
	return internal, external
}

// topFolder returns the folder whose packages are in one group: internal/aws for internal/aws/ec2, api for api/aws/v1.
func topFolder(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
