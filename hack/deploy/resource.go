package deploy

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// evalResource evaluates all instances of a resource or a data source. address is its key in Module.Resources.
func (p *planner) evalResource(address string) error {
	if _, ok := p.evaluated[address]; ok {
		return nil
	}
	block := p.module.Resources[address]
	if block == nil {
		return fmt.Errorf("there is no %s", address)
	}
	done, err := p.enter(address)
	if err != nil {
		return err
	}
	defer done()
	if a := block.Body.Attributes["depends_on"]; a != nil {
		for _, t := range a.Expr.Variables() {
			if err := p.resolve(t); err != nil {
				return fmt.Errorf("%s: depends_on: %w", address, err)
			}
			name, _ := secondPart(t)
			p.plan.DependsOn[address] = append(p.plan.DependsOn[address], t.RootName()+"."+name)
		}
	}
	attributes := block.Body.Attributes
	switch {
	case attributes["count"] != nil:
		p.evaluated[address], err = p.evalCounted(address, block)
	case attributes["for_each"] != nil:
		p.evaluated[address], err = p.evalForEach(address, block)
	default:
		p.evaluated[address], err = p.evalInstance(address, block, nil)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

func (p *planner) evalCounted(address string, block *hclsyntax.Block) (cty.Value, error) {
	count, err := p.eval(block.Body.Attributes["count"].Expr, nil)
	if err != nil {
		return cty.NilVal, err
	}
	n, _ := count.AsBigFloat().Int64()
	var all []cty.Value
	for i := range n {
		extra := map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(i)})}
		instance, err := p.evalInstance(address+"["+strconv.FormatInt(i, 10)+"]", block, extra)
		if err != nil {
			return cty.NilVal, err
		}
		all = append(all, instance)
	}
	return cty.TupleVal(all), nil
}

func (p *planner) evalForEach(address string, block *hclsyntax.Block) (cty.Value, error) {
	collection, err := p.eval(block.Body.Attributes["for_each"].Expr, nil)
	if err != nil {
		return cty.NilVal, err
	}
	typ := collection.Type()
	isValid := typ.IsMapType() || typ.IsObjectType() || typ.IsSetType() && typ.ElementType() == cty.String
	if !isValid && collection.LengthInt() > 0 { // the elements of an empty set have no type
		return cty.NilVal, fmt.Errorf("for_each takes a map or a set of strings, not %s", typ.FriendlyName())
	}
	all := map[string]cty.Value{}
	for it := collection.ElementIterator(); it.Next(); {
		key, value := it.Element()
		name, err := asText(key)
		if err != nil {
			return cty.NilVal, err
		}
		extra := map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(name), "value": value})}
		if all[name], err = p.evalInstance(address+"["+strconv.Quote(name)+"]", block, extra); err != nil {
			return cty.NilVal, err
		}
	}
	return cty.ObjectVal(all), nil
}

// evalInstance evaluates one instance of a resource or a data source, and adds the resource to the plan.
func (p *planner) evalInstance(address string, block *hclsyntax.Block, extra map[string]cty.Value) (cty.Value, error) {
	arguments, err := p.evalBody(block.Body, extra)
	if err != nil {
		return cty.NilVal, err
	}
	typ := block.Labels[0]
	if block.Type == "data" {
		result, ok := p.inputs.Data[typ]
		if !ok {
			return cty.NilVal, fmt.Errorf("Inputs.Data has no result for %s", typ)
		}
		return result, nil
	}
	resource, err := newResource(typ, address, arguments)
	if err != nil {
		return cty.NilVal, err
	}
	p.plan.Resources[address] = resource
	return resource, nil
}

// evalBody evaluates the body of a block. Nested blocks become lists of objects, by the type of the nested block. It
// expands dynamic blocks, and checks the conditions of lifecycle blocks.
func (p *planner) evalBody(b *hclsyntax.Body, extra map[string]cty.Value) (map[string]cty.Value, error) {
	out := map[string]cty.Value{}
	for name, a := range b.Attributes {
		if slices.Contains([]string{"count", "for_each", "depends_on", "provider"}, name) {
			continue
		}
		value, err := p.eval(a.Expr, extra)
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	blocks := map[string][]cty.Value{}
	for _, inner := range b.Blocks {
		if inner.Type == "lifecycle" {
			for _, condition := range inner.Body.Blocks {
				if err := p.check(condition, extra); err != nil {
					return nil, err
				}
			}
			continue
		}
		name, values, err := p.evalBlock(inner, extra)
		if err != nil {
			return nil, err
		}
		blocks[name] = append(blocks[name], values...)
	}
	for name, values := range blocks {
		out[name] = cty.TupleVal(values)
	}
	return out, nil
}

// evalBlock evaluates a nested block. It returns the block's type and one value. For a dynamic block, it returns one
// value for each element of the block's for_each.
func (p *planner) evalBlock(b *hclsyntax.Block, extra map[string]cty.Value) (string, []cty.Value, error) {
	if b.Type != "dynamic" {
		value, err := p.evalBody(b.Body, extra)
		return b.Type, []cty.Value{cty.ObjectVal(value)}, err
	}
	name := b.Labels[0]
	collection, err := p.eval(b.Body.Attributes["for_each"].Expr, extra)
	if err != nil {
		return "", nil, err
	}
	var out []cty.Value
	for it := collection.ElementIterator(); it.Next(); {
		key, value := it.Element()
		inner := map[string]cty.Value{name: cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		for k, v := range extra {
			inner[k] = v
		}
		content, err := p.evalBody(b.Body.Blocks[0].Body, inner)
		if err != nil {
			return "", nil, err
		}
		out = append(out, cty.ObjectVal(content))
	}
	return name, out, nil
}
