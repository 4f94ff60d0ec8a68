package architecture

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// removeNamed is the step that removes the requirement with this text. If p.Requirements does not contain it, the user
// edits the NodePool.
func removeNamed(p diagnosis.Pool, requirement string) fix.Step {
	i := slices.IndexFunc(p.Requirements, func(r diagnosis.Requirement) bool { return r.String() == requirement })
	if i < 0 {
		return fix.Edit(fix.NodePool(p.Name)).With("loosen %s in spec.template.spec.requirements", requirement)
	}
	return removeAt(p, i).With("or loosen it: %s", requirement)
}

// withoutArchitecture is the step that removes an architecture from the NodePool's requirement on the architecture, and
// all others without instance types in last: the count after the pool's last requirement.
func withoutArchitecture(p diagnosis.Pool, removed string, last diagnosis.Step) fix.Step {
	i := slices.IndexFunc(p.Requirements, func(r diagnosis.Requirement) bool { return r.Key == diagnosis.LabelArch && r.Operator == "In" })
	if i < 0 {
		return fix.Edit(fix.NodePool(p.Name)).With("add types or families of %s", removed)
	}
	var kept fix.List
	for _, arch := range p.Architectures() {
		if arch != removed && last.Left[arch] > 0 {
			kept = append(kept, fix.Architecture(arch))
		}
	}
	return setValues(p, i, kept).With("or add types or families of %s", removed)
}

// keyTest is the JSON patch operation that makes the patch fail unless requirement i is still about the label key.
func keyTest(i int, key string) fix.Fields {
	return fix.Fields{"op": fix.Text("test"), "path": fix.Path("/spec/template/spec/requirements/%d/key", i), "value": fix.LabelKey(key)}
}

func removeAt(p diagnosis.Pool, i int) fix.Step {
	return fix.JSONPatch(fix.NodePool(p.Name), keyTest(i, p.Requirements[i].Key),
		fix.Fields{"op": fix.Text("remove"), "path": fix.Path("/spec/template/spec/requirements/%d", i)})
}

func setValues(p diagnosis.Pool, i int, values fix.List) fix.Step {
	return fix.JSONPatch(fix.NodePool(p.Name), keyTest(i, p.Requirements[i].Key),
		fix.Fields{"op": fix.Text("replace"), "path": fix.Path("/spec/template/spec/requirements/%d/values", i), "value": values})
}

// admit is the step that makes requirement i, which is on a user-defined label, allow a value. It adds the value if the
// operator is In, and otherwise removes the requirement.
func admit(p diagnosis.Pool, i int, value string) fix.Step {
	r := p.Requirements[i]
	if r.Operator != "In" {
		return removeAt(p, i).With("or change it so that it allows %s: %s", value, r.String())
	}
	var values fix.List
	for _, v := range append(slices.Clone(r.Values), value) {
		values = append(values, fix.LabelValue(v))
	}
	return setValues(p, i, values)
}
