package architecture

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// without is the step that removes a requirement.
func without(p diagnosis.Pool, requirement string) fix.Step {
	i := slices.IndexFunc(p.Requirements, func(r diagnosis.Requirement) bool { return r.String() == requirement })
	if i < 0 {
		return fix.Edit(fix.NodePool(p.Name)).With("loosen %s in spec.template.spec.requirements", requirement)
	}
	return remove(p, i).With("or loosen it: %s", requirement)
}

// withoutArchitecture is the step that removes one architecture from the pool's requirement on the architecture. It
// keeps the architectures for which instance types are left.
func withoutArchitecture(p diagnosis.Pool, without string, left diagnosis.Step) fix.Step {
	i := slices.IndexFunc(p.Requirements, func(r diagnosis.Requirement) bool { return r.Key == diagnosis.LabelArch && r.Operator == "In" })
	if i < 0 {
		return fix.Edit(fix.NodePool(p.Name)).With("add types or families of %s", without)
	}
	var rest fix.List
	for _, arch := range p.Architectures() {
		if arch != without && left.Left[arch] > 0 {
			rest = append(rest, fix.Architecture(arch))
		}
	}
	return setValues(p, i, rest).With("or add types or families of %s", without)
}

// keyTest is the JSON patch operation that makes the patch fail if requirement i is about another label when the patch
// is applied.
func keyTest(i int, key string) fix.Fields {
	return fix.Fields{"op": fix.Text("test"), "path": fix.Path("/spec/template/spec/requirements/%d/key", i), "value": fix.LabelKey(key)}
}

// remove is the step that removes a requirement.
func remove(p diagnosis.Pool, i int) fix.Step {
	return fix.JSONPatch(fix.NodePool(p.Name), keyTest(i, p.Requirements[i].Key),
		fix.Fields{"op": fix.Text("remove"), "path": fix.Path("/spec/template/spec/requirements/%d", i)})
}

// setValues is the step that replaces the values of a requirement.
func setValues(p diagnosis.Pool, i int, values fix.List) fix.Step {
	return fix.JSONPatch(fix.NodePool(p.Name), keyTest(i, p.Requirements[i].Key),
		fix.Fields{"op": fix.Text("replace"), "path": fix.Path("/spec/template/spec/requirements/%d/values", i), "value": values})
}

// admit is the step that adds a value to a requirement on a user-defined label.
func admit(p diagnosis.Pool, i int, value string) fix.Step {
	r := p.Requirements[i]
	if r.Operator != "In" {
		return remove(p, i).With("or change it so that it allows %s: %s", value, r.String())
	}
	var values fix.List
	for _, v := range append(slices.Clone(r.Values), value) {
		values = append(values, fix.LabelValue(v))
	}
	return setValues(p, i, values)
}
