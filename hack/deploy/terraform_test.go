package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// terraform runs the command terraform in a folder, without the user's own configuration.
func terraform(ctx context.Context, folder string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "terraform", args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return cmd.CombinedOutput()
}

// TestTerraformAgrees compares this package's plans with the values that Terraform computes, if Terraform is installed.
// The test needs no providers: it replaces references to resources by locals with the planned values, and makes each
// argument of a resource an output.
func TestTerraformAgrees(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Skip("terraform is not installed")
	}
	for name, s := range map[string]settings{
		"defaults": {},
		"Fargate": {
			"cluster_uid": uid, "create_fargate_profile": true, "fargate_subnet_ids": []string{"subnet-1"}, "enable_irsa": true,
			"create_pod_identity_association": false, "irsa_oidc_provider_arn": "arn:aws:iam::1:oidc-provider/issuer/id",
			"create_helm_release":             true,
			"irsa_namespace_service_accounts": []string{"a:b", "c:d"}, "tags": map[string]string{"team": "x"},
			"fargate_selectors": []map[string]any{{"namespace": "a"}, {"namespace": "b", "labels": map[string]string{"c": "d"}}},
		},
		"an existing node role": {
			"create_node_iam_role": false, "node_iam_role_arn": "arn:aws:iam::1:role/a/b",
			"create_instance_profile": true, "enable_spot_termination": false,
			"queue_name": "q", "access_entry_type": "EC2_WINDOWS", "cluster_ip_family": "ipv6", "ami_id_ssm_parameter_arns": []string{"arn:aws:ssm:::parameter/x"},
			"iam_role_policies": map[string]string{"mine": "arn:aws:iam::1:policy/mine"},
		},
		"nothing": {"create": false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithTerraform(t, s)
		})
	}
}

func compareWithTerraform(t *testing.T, s settings) {
	t.Helper()
	p := planJoiner(t, s)
	folder := t.TempDir()
	text, want := withoutProviders(t, p)
	variables, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{"main.tf": text, "terraform.tfvars.json": variables} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-no-color"}, {"apply", "-no-color", "-auto-approve", "-input=false", "-var=cluster_name=demo"}} {
		if out, err := terraform(t.Context(), folder, args...); err != nil {
			t.Fatalf("terraform %s: %v\n%s", args[0], err, out)
		}
	}
	text, err = terraform(t.Context(), folder, "output", "-json")
	var got map[string]struct{ Value any }
	if err != nil || json.Unmarshal(text, &got) != nil {
		t.Fatalf("terraform output: %v\n%s", err, text)
	}
	if len(want) < 40 {
		t.Errorf("the test compares only %d values, want at least 40", len(want))
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		wanted, err := json.Marshal(jsonValue(t, want[name]))
		if err != nil {
			t.Fatal(err)
		}
		checkJSON(t, name, parseStrings(got[name].Value), string(wanted))
	}
}

var (
	reference = regexp.MustCompile(`\b(?:data\.)?(?:aws|helm)_[a-z_]+\.[a-z_]+\b`)
	blockOnly = regexp.MustCompile(`\b(each|count|path|selector)\.`) // references that are only valid in a resource block
)

// withoutProviders writes the planned module as variables, locals and outputs, and returns the expected outputs.
func withoutProviders(t *testing.T, p *Plan) ([]byte, map[string]cty.Value) {
	t.Helper()
	var b bytes.Buffer
	want := maps.Clone(p.Outputs)
	files, err := filepath.Glob(filepath.Join(joiner, "*.tf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, diags := hclwrite.ParseConfig(text, file, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, block := range f.Body().Blocks() {
			switch block.Type() {
			case "variable", "locals", "output":
				b.Write(block.BuildTokens(nil).Bytes())
			case "resource":
				address := strings.Join(block.Labels(), ".")
				for name, a := range block.Body().Attributes() {
					expression := string(a.Expr().BuildTokens(nil).Bytes())
					isEvaluated := hasInstances(p, address) || name == "count" || name == "for_each"
					if name == "depends_on" || blockOnly.MatchString(expression) || !isEvaluated {
						continue
					}
					output := strings.ReplaceAll(address, ".", "-") + "-" + name
					value, err := p.planner.eval(p.planner.module.Resources[address].Body.Attributes[name].Expr, nil)
					if err != nil {
						t.Fatalf("%s: %v", output, err)
					}
					want[output] = value
					b.WriteString("output \"" + output + "\" {\n  value = " + expression + "\n}\n")
				}
			}
		}
	}
	text := reference.ReplaceAllStringFunc(b.String(), func(address string) string {
		if p.planner.module.Resources[address] == nil {
			return address
		}
		return `local.planned["` + address + `"]`
	})
	text += "locals {\n  planned = " + string(hclwrite.TokensForValue(cty.ObjectVal(p.planner.evaluated)).Bytes()) + "\n}\n"
	return []byte(text), want
}

// hasInstances reports whether the plan has an instance of the resource. Without count and for_each, it always has one.
func hasInstances(p *Plan, address string) bool {
	value := p.planner.evaluated[address]
	return !value.CanIterateElements() || value.LengthInt() > 0
}

// TestValidate validates the module and the examples with the providers' own schemas. It needs TERRAFORM_PROVIDERS=1,
// because it downloads hundreds of megabytes.
func TestValidate(t *testing.T) {
	if os.Getenv("TERRAFORM_PROVIDERS") == "" {
		t.Skip("TERRAFORM_PROVIDERS=1 downloads the providers from their registry")
	}
	for _, folder := range folders(t) {
		t.Setenv("TF_DATA_DIR", t.TempDir())
		for _, args := range [][]string{{"init", "-no-color", "-backend=false"}, {"validate", "-no-color"}} {
			if out, err := terraform(t.Context(), folder, args...); err != nil {
				t.Fatalf("%s: terraform %s: %v\n%s", folder, args[0], err, out)
			}
		}
	}
}
