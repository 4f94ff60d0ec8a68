package cli_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/cli"
	"github.com/joiner-sh/joiner/internal/migration"
)

const migrationGuide = "../../docs/guides/from-karpenter.md"

// shellBlocks returns the shell code blocks of a document.
func shellBlocks(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, part := range strings.Split(string(text), "\n```sh\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```\n")
		if !ok {
			t.Fatalf("%s has a block without an end", file)
		}
		out = append(out, strings.Split(block, "\n"))
	}
	return out
}

// TestMigrationGuide: the guide has the steps that the program prints for an installation by Karpenter's own guide. The
// offline commands of the guide have the documented results.
func TestMigrationGuide(t *testing.T) {
	blocks := shellBlocks(t, migrationGuide)
	steps := migration.StepsFor(migration.Installation{})
	for _, want := range [][]string{steps.Over, steps.Check, steps.Back} {
		if !slices.ContainsFunc(blocks, func(b []string) bool { return slices.Equal(b, want) }) {
			t.Errorf("the guide has no block %q", want)
		}
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"objects.yaml": `{apiVersion: v1, kind: List, items: [{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: apps}, spec: {template: {spec: ` +
			`{requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}, disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmpty}}}]}`,
		"nodes.yaml":            `{apiVersion: v1, kind: List, items: []}`,
		"karpenter-values.yaml": `{settings: {clusterName: prod, interruptionQueue: prod}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for _, command := range slices.Concat(blocks...) {
		args, isJoiner := strings.CutPrefix(command, "joiner ")
		if !isJoiner || !strings.Contains(args, " -f ") && !strings.HasPrefix(args, "render ") {
			continue // needs a cluster
		}
		var out, errs bytes.Buffer
		root := cli.Root("test", cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code := cli.Run(t.Context(), root, strings.Fields(args)); code != cli.ExitOK || out.Len() == 0 {
			t.Errorf("%s: exit status %d, want 0 and some output: %s%s", command, code, &out, &errs)
		}
		ran++
	}
	if ran != 2 {
		t.Errorf("%d offline commands of the guide were run, want 2", ran)
	}
}
