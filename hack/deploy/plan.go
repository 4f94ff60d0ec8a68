package deploy

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Inputs are the inputs of a plan, besides the module.
type Inputs struct {
	Variables map[string]cty.Value // by name; nil: all variables have their defaults
	Data      map[string]cty.Value // results of data sources, by type: "aws_region"
	Modules   map[string]cty.Value // outputs of external modules, by the name of the module block
}

// Plan lists what a module creates.
type Plan struct {
	Resources map[string]cty.Value // by address: aws_iam_role.node[0], aws_iam_policy.controller["launch"], module.joiner.…
	Outputs   map[string]cty.Value // by name
	Moved     map[string]string    // old address → new address, without instance keys
	DependsOn map[string][]string  // resource or data source → the resources and modules in its depends_on

	planner *planner
}

// NewPlan plans a module.
func NewPlan(m *Module, in Inputs) (*Plan, error) {
	p := &planner{
		module: m, inputs: in, vars: map[string]cty.Value{}, locals: map[string]cty.Value{}, evaluated: map[string]cty.Value{},
		busy: map[string]bool{},
		plan: &Plan{
			Resources: map[string]cty.Value{}, Outputs: map[string]cty.Value{}, Moved: map[string]string{}, DependsOn: map[string][]string{},
		},
	}
	p.plan.planner = p
	if err := p.setVariables(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Locals)) {
		if err := p.evalLocal(name); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Resources)) {
		if err := p.evalResource(name); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Calls)) {
		if err := p.planModule(name); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		value, err := p.eval(m.Outputs[name].Value, nil)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		p.plan.Outputs[name] = value
	}
	return p.plan, p.evalOthers()
}

// planner evaluates the values of a module on demand, each value once.
type planner struct {
	module    *Module
	inputs    Inputs
	vars      map[string]cty.Value // values of variables, by name
	locals    map[string]cty.Value // evaluated local values, by name
	evaluated map[string]cty.Value // evaluated resources, data sources and modules, by address, with all their instances
	busy      map[string]bool      // values that are being evaluated, to detect cycles
	plan      *Plan
}

// setVariables sets the variables to their inputs or defaults, and checks the validations.
func (p *planner) setVariables() error {
	for name := range p.inputs.Variables {
		if p.module.Variables[name] == nil {
			return fmt.Errorf("unsupported argument: module %s has no variable %q", p.module.Folder, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.module.Variables)) {
		v := p.module.Variables[name]
		value, ok := p.inputs.Variables[name]
		switch {
		case ok:
			var err error
			if value, err = v.convertValue(value); err != nil {
				return err
			}
		case v.Default != nil:
			value = *v.Default
		default:
			return fmt.Errorf("missing required argument: %s", name)
		}
		p.vars[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(p.module.Variables)) {
		for _, b := range p.module.Variables[name].validation {
			if err := p.check(b, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// check evaluates a validation, a precondition or a postcondition. If the condition is false, the error has the block's
// error_message.
func (p *planner) check(b *hclsyntax.Block, extra map[string]cty.Value) error {
	isMet, err := p.eval(b.Body.Attributes["condition"].Expr, extra)
	if err != nil {
		return err
	}
	if isMet.True() {
		return nil
	}
	message, err := p.eval(b.Body.Attributes["error_message"].Expr, extra)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %s", b.TypeRange, message.AsString())
}

// eval evaluates an expression. It first evaluates the values to which the expression refers. extra has the names that
// are valid only in this expression, such as each and count.
func (p *planner) eval(e hcl.Expression, extra map[string]cty.Value) (cty.Value, error) {
	for _, t := range e.Variables() {
		if _, ok := extra[t.RootName()]; ok {
			continue
		}
		if err := p.resolve(t); err != nil {
			return cty.NilVal, err
		}
	}
	variables := map[string]cty.Value{
		"var": cty.ObjectVal(p.vars), "local": cty.ObjectVal(p.locals),
		"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(p.module.Folder)}),
	}
	groups := map[string]map[string]cty.Value{} // resources by type and name, and modules by "module" and name
	data := map[string]map[string]cty.Value{}   // data sources by type and name
	for address, value := range p.evaluated {
		parts := strings.Split(address, ".")
		into := groups
		if parts[0] == "data" {
			into, parts = data, parts[1:]
		}
		if into[parts[0]] == nil {
			into[parts[0]] = map[string]cty.Value{}
		}
		into[parts[0]][parts[1]] = value
	}
	for typ, named := range groups {
		variables[typ] = cty.ObjectVal(named)
	}
	types := map[string]cty.Value{}
	for typ, named := range data {
		types[typ] = cty.ObjectVal(named)
	}
	variables["data"] = cty.ObjectVal(types)
	maps.Copy(variables, extra)
	value, diags := e.Value(&hcl.EvalContext{Variables: variables, Functions: functions()})
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	return value, nil
}

// resolve evaluates the target of a reference.
func (p *planner) resolve(t hcl.Traversal) error {
	name, _ := secondPart(t)
	switch root := t.RootName(); root {
	case "var":
		if _, ok := p.vars[name]; !ok {
			return fmt.Errorf("%s: there is no variable %q", t.SourceRange(), name)
		}
		return nil
	case "path":
		return nil
	case "local":
		return p.evalLocal(name)
	case "module":
		return p.planModule(name)
	case "data":
		third, ok := t[2].(hcl.TraverseAttr)
		if !ok {
			return fmt.Errorf("%s: the reference has no data source name", t.SourceRange())
		}
		return p.evalResource("data." + name + "." + third.Name)
	default:
		if p.module.Resources[root+"."+name] == nil {
			return fmt.Errorf("%s: there is no resource %s.%s", t.SourceRange(), root, name)
		}
		return p.evalResource(root + "." + name)
	}
}

// enter marks a value as being evaluated, and returns a function that removes the mark. A value that is marked already
// depends on itself: enter returns an error.
func (p *planner) enter(what string) (func(), error) {
	if p.busy[what] {
		return nil, fmt.Errorf("cycle: %s refers to itself", what)
	}
	p.busy[what] = true
	return func() { delete(p.busy, what) }, nil
}

func (p *planner) evalLocal(name string) error {
	if _, ok := p.locals[name]; ok {
		return nil
	}
	e, ok := p.module.Locals[name]
	if !ok {
		return fmt.Errorf("there is no local %q", name)
	}
	done, err := p.enter("local." + name)
	if err != nil {
		return err
	}
	defer done()
	value, err := p.eval(e, nil)
	if err != nil {
		return fmt.Errorf("local %s: %w", name, err)
	}
	p.locals[name] = value
	return nil
}

// planModule evaluates a module block. If the source is a folder, it plans the module in this folder. Otherwise it
// takes the outputs from Inputs.Modules.
func (p *planner) planModule(name string) error {
	if _, ok := p.evaluated["module."+name]; ok {
		return nil
	}
	block := p.module.Calls[name]
	if block == nil {
		return fmt.Errorf("there is no module %q", name)
	}
	done, err := p.enter("module." + name)
	if err != nil {
		return err
	}
	defer done()
	arguments := map[string]cty.Value{}
	for _, a := range block.Body.Attributes { // all but the meta-arguments set variables of the module
		if slices.Contains([]string{"source", "version", "providers", "depends_on", "count", "for_each"}, a.Name) {
			continue
		}
		if arguments[a.Name], err = p.eval(a.Expr, nil); err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
	}
	source := constant(block.Body, "source")
	if !strings.HasPrefix(source, ".") {
		outputs, ok := p.inputs.Modules[name]
		if !ok {
			return fmt.Errorf("module %s: the outputs of %s are not declared", name, source)
		}
		p.evaluated["module."+name] = outputs
		return nil
	}
	m, err := Read(filepath.Join(p.module.Folder, source))
	if err != nil {
		return err
	}
	plan, err := NewPlan(m, Inputs{Variables: arguments, Data: p.inputs.Data})
	if err != nil {
		return fmt.Errorf("module %s: %w", name, err)
	}
	for address, value := range plan.Resources {
		p.plan.Resources["module."+name+"."+address] = value
	}
	p.evaluated["module."+name] = cty.ObjectVal(plan.Outputs)
	return nil
}

// evalOthers evaluates provider blocks, to find errors in them, and records moved blocks.
func (p *planner) evalOthers() error {
	for _, b := range p.module.Others {
		switch b.Type {
		case "provider":
			if _, err := p.evalBody(b.Body, nil); err != nil {
				return fmt.Errorf("provider %s: %w", b.Labels[0], err)
			}
		case "moved":
			from, to := addressOf(b.Body.Attributes["from"].Expr), addressOf(b.Body.Attributes["to"].Expr)
			if p.module.Resources[to] == nil || p.module.Resources[from] != nil {
				return fmt.Errorf("moved: resource %s must exist, and resource %s must not exist", to, from)
			}
			p.plan.Moved[from] = to
		}
	}
	return nil
}

// addressOf returns the first two parts of a reference, for example aws_iam_role.node; empty if e is not a reference.
func addressOf(e hcl.Expression) string {
	t, diags := hcl.AbsTraversalForExpr(e)
	if diags.HasErrors() {
		return ""
	}
	name, _ := secondPart(t)
	return t.RootName() + "." + name
}

// asText converts a value to a string, for the key of for_each.
func asText(v cty.Value) (string, error) {
	v, err := convert.Convert(v, cty.String)
	if err != nil {
		return "", err
	}
	return v.AsString(), nil
}
