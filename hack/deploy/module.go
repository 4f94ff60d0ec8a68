package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Module is one folder of Terraform, parsed.
type Module struct {
	Folder    string                      // path of the module
	Variables map[string]*Variable        // by name
	Outputs   map[string]*Output          // by name
	Locals    map[string]hcl.Expression   // by name
	Resources map[string]*hclsyntax.Block // by "aws_iam_role.node", data sources by "data.aws_region.current"
	Calls     map[string]*hclsyntax.Block // module blocks by name
	Others    []*hclsyntax.Block          // the blocks terraform, provider and moved
}

// Variable is an input variable of a module.
type Variable struct {
	Name, Description string // as in the source
	Type              cty.Type
	TypeText          string     // the type as in the source
	Default           *cty.Value // nil: the variable is required
	DefaultText       string     // the default as in the source; empty: the variable is required

	defaults   *typeexpr.Defaults
	validation []*hclsyntax.Block
}

// Output is an output value.
type Output struct {
	Name, Description string         // as in the source
	Value             hcl.Expression // not evaluated
}

// Read reads the .tf files of a folder.
func Read(folder string) (*Module, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read module %s: there is no .tf file", folder)
	}
	m := &Module{
		Folder: folder, Variables: map[string]*Variable{}, Outputs: map[string]*Output{}, Locals: map[string]hcl.Expression{},
		Resources: map[string]*hclsyntax.Block{}, Calls: map[string]*hclsyntax.Block{},
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the caller's folder
		if err != nil {
			return nil, fmt.Errorf("read module %s: %w", folder, err)
		}
		f, diags := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
		if diags.HasErrors() {
			return nil, fmt.Errorf("read module %s: %w", folder, diags)
		}
		for _, block := range f.Body.(*hclsyntax.Body).Blocks {
			if err := m.add(block, text); err != nil {
				return nil, fmt.Errorf("read module %s: %s: %w", folder, block.TypeRange, err)
			}
		}
	}
	return m, nil
}

func (m *Module) add(block *hclsyntax.Block, text []byte) error {
	labels := strings.Join(block.Labels, ".")
	switch block.Type {
	case "variable":
		v, err := readVariable(block, text)
		if err != nil {
			return err
		}
		return addOnce(m.Variables, labels, v)
	case "output":
		o := &Output{Name: labels, Description: constant(block.Body, "description"), Value: block.Body.Attributes["value"].Expr}
		return addOnce(m.Outputs, labels, o)
	case "locals":
		for name, attribute := range block.Body.Attributes {
			if err := addOnce(m.Locals, name, hcl.Expression(attribute.Expr)); err != nil {
				return err
			}
		}
	case "resource":
		return addOnce(m.Resources, labels, block)
	case "data":
		return addOnce(m.Resources, "data."+labels, block)
	case "module":
		return addOnce(m.Calls, labels, block)
	case "terraform", "provider", "moved":
		m.Others = append(m.Others, block)
	default:
		return fmt.Errorf("block type %q is not supported", block.Type)
	}
	return nil
}

func addOnce[V any](into map[string]V, name string, value V) error {
	if _, ok := into[name]; ok {
		return fmt.Errorf("%s is defined twice", name)
	}
	into[name] = value
	return nil
}

// readVariable parses a variable block. text is the file that contains the block.
func readVariable(block *hclsyntax.Block, text []byte) (*Variable, error) {
	v := &Variable{Name: block.Labels[0], Description: constant(block.Body, "description"), Type: cty.DynamicPseudoType}
	if a := block.Body.Attributes["type"]; a != nil {
		typ, defaults, diags := typeexpr.TypeConstraintWithDefaults(a.Expr)
		if diags.HasErrors() {
			return nil, diags
		}
		v.Type, v.defaults, v.TypeText = typ, defaults, string(a.Expr.Range().SliceBytes(text))
	}
	if a := block.Body.Attributes["default"]; a != nil {
		value, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			return nil, diags
		}
		value, err := v.convertValue(value)
		if err != nil {
			return nil, err
		}
		v.Default, v.DefaultText = &value, string(a.Expr.Range().SliceBytes(text))
	}
	for _, b := range block.Body.Blocks {
		if b.Type != "validation" {
			return nil, fmt.Errorf("variable %s has a block %q", v.Name, b.Type)
		}
		v.validation = append(v.validation, b)
	}
	return v, nil
}

// convertValue converts a value to the variable's type, with the defaults of optional attributes.
func (v *Variable) convertValue(value cty.Value) (cty.Value, error) {
	if v.defaults != nil && !value.IsNull() {
		value = v.defaults.Apply(value)
	}
	value, err := convert.Convert(value, v.Type)
	if err != nil {
		return cty.NilVal, fmt.Errorf("variable %s: %w", v.Name, err)
	}
	return value, nil
}

// constant returns the value of a string attribute without references. It returns "" if the attribute is missing, has
// references, or is not a string.
func constant(body *hclsyntax.Body, name string) string {
	a := body.Attributes[name]
	if a == nil {
		return ""
	}
	value, diags := a.Expr.Value(nil)
	if diags.HasErrors() || value.Type() != cty.String {
		return ""
	}
	return value.AsString()
}

// UsedVariables returns the names of the variables that the module uses outside of variable blocks, sorted.
func (m *Module) UsedVariables() []string {
	var out []string
	addFrom := func(e hcl.Expression) {
		for _, t := range e.Variables() {
			if name, ok := secondPart(t); ok && t.RootName() == "var" {
				out = append(out, name)
			}
		}
	}
	for _, e := range m.Locals {
		addFrom(e)
	}
	for _, o := range m.Outputs {
		addFrom(o.Value)
	}
	var walk func(*hclsyntax.Body)
	walk = func(b *hclsyntax.Body) {
		for _, a := range b.Attributes {
			addFrom(a.Expr)
		}
		for _, inner := range b.Blocks {
			walk(inner.Body)
		}
	}
	for _, blocks := range []map[string]*hclsyntax.Block{m.Resources, m.Calls} {
		for _, b := range blocks {
			walk(b.Body)
		}
	}
	for _, b := range m.Others {
		walk(b.Body)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// secondPart returns the second part of a reference: b of a.b.c. It returns false if the reference has no such part.
func secondPart(t hcl.Traversal) (string, bool) {
	if len(t) < 2 {
		return "", false
	}
	a, ok := t[1].(hcl.TraverseAttr)
	return a.Name, ok
}
