package deploy

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// resource evaluates all instances of a resource or a data source, by its address in Module.Resources.
func (p *planner) resource(address string) error {
	if _, ok := p.made[address]; ok {
		return nil
	}
	block := p.m.Resources[address]
	if block == nil {
		return fmt.Errorf("there is no %s", address)
	}
	done, err := p.start(address)
	if err != nil {
		return err
	}
	defer done()
	if a := block.Body.Attributes["depends_on"]; a != nil {
		for _, t := range a.Expr.Variables() {
			if err := p.refer(t); err != nil {
				return fmt.Errorf("%s: depends_on: %w", address, err)
			}
			name, _ := second(t)
			p.plan.After[address] = append(p.plan.After[address], t.RootName()+"."+name)
		}
	}
	attributes := block.Body.Attributes
	switch {
	case attributes["count"] != nil:
		p.made[address], err = p.counted(address, block)
	case attributes["for_each"] != nil:
		p.made[address], err = p.each(address, block)
	default:
		p.made[address], err = p.instance(address, block, nil)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// counted evaluates the instances of a resource with count.
func (p *planner) counted(address string, block *hclsyntax.Block) (cty.Value, error) {
	count, err := p.eval(block.Body.Attributes["count"].Expr, nil)
	if err != nil {
		return cty.NilVal, err
	}
	n, _ := count.AsBigFloat().Int64()
	var all []cty.Value
	for i := range n {
		extra := map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(i)})}
		one, err := p.instance(address+"["+strconv.FormatInt(i, 10)+"]", block, extra)
		if err != nil {
			return cty.NilVal, err
		}
		all = append(all, one)
	}
	return cty.TupleVal(all), nil
}

// each evaluates the instances of a resource with for_each.
func (p *planner) each(address string, block *hclsyntax.Block) (cty.Value, error) {
	over, err := p.eval(block.Body.Attributes["for_each"].Expr, nil)
	if err != nil {
		return cty.NilVal, err
	}
	if typ := over.Type(); !typ.IsMapType() && !typ.IsObjectType() &&
		!(typ.IsSetType() && typ.ElementType() == cty.String) && over.LengthInt() > 0 {
		return cty.NilVal, fmt.Errorf("for_each takes a map or a set of strings, not %s", typ.FriendlyName())
	}
	all := map[string]cty.Value{}
	for it := over.ElementIterator(); it.Next(); {
		key, value := it.Element()
		name, err := asText(key)
		if err != nil {
			return cty.NilVal, err
		}
		extra := map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(name), "value": value})}
		if all[name], err = p.instance(address+"["+strconv.Quote(name)+"]", block, extra); err != nil {
			return cty.NilVal, err
		}
	}
	return cty.ObjectVal(all), nil
}

// instance evaluates one instance: its arguments, and the attributes that AWS computes.
func (p *planner) instance(address string, block *hclsyntax.Block, extra map[string]cty.Value) (cty.Value, error) {
	written, err := p.body(block.Body, extra)
	if err != nil {
		return cty.NilVal, err
	}
	typ := block.Labels[0]
	if block.Type == "data" {
		result, ok := p.in.Data[typ]
		if !ok {
			return cty.NilVal, fmt.Errorf("Inputs.Data has no result for %s", typ)
		}
		return result, nil
	}
	whole, err := completed(typ, address, written)
	if err != nil {
		return cty.NilVal, err
	}
	p.plan.Resources[address] = whole
	return whole, nil
}

// body evaluates the body of a block. Nested blocks become lists of objects, by the type of the block. Dynamic blocks
// are expanded, and the conditions of a lifecycle block are checked.
func (p *planner) body(b *hclsyntax.Body, extra map[string]cty.Value) (map[string]cty.Value, error) {
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
		name, values, err := p.block(inner, extra)
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

// block evaluates a nested block. It returns the block's type, and one value; of a dynamic block one value for each
// element of its for_each.
func (p *planner) block(b *hclsyntax.Block, extra map[string]cty.Value) (string, []cty.Value, error) {
	if b.Type != "dynamic" {
		value, err := p.body(b.Body, extra)
		return b.Type, []cty.Value{cty.ObjectVal(value)}, err
	}
	name := b.Labels[0]
	over, err := p.eval(b.Body.Attributes["for_each"].Expr, extra)
	if err != nil {
		return "", nil, err
	}
	var out []cty.Value
	for it := over.ElementIterator(); it.Next(); {
		key, value := it.Element()
		inner := map[string]cty.Value{name: cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		for k, v := range extra {
			inner[k] = v
		}
		content, err := p.body(b.Body.Blocks[0].Body, inner)
		if err != nil {
			return "", nil, err
		}
		out = append(out, cty.ObjectVal(content))
	}
	return name, out, nil
}
