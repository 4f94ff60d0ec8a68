package diagnosis

import (
	"fmt"
	"slices"
	"strings"
)

// without is the command that takes a requirement away.
func (p Pool) without(requirement string) string {
	i := slices.IndexFunc(p.Requirements, func(r Requirement) bool { return r.String() == requirement })
	if i < 0 {
		return fmt.Sprintf("kubectl edit nodepool %s   # loosen %s in spec.template.spec.requirements", p.Name, requirement)
	}
	return p.patch("remove", i, "") + "   # or loosen it: " + requirement
}

// only is the command that takes an architecture out of the requirement on it, of which instance types are left for others.
func (p Pool) only(without string, left Step) string {
	i := slices.IndexFunc(p.Requirements, func(r Requirement) bool { return r.Key == labelArch && r.Operator == "In" })
	if i < 0 {
		return fmt.Sprintf("kubectl edit nodepool %s   # add types or families of %s", p.Name, without)
	}
	var rest []string
	for _, arch := range p.architectures() {
		if arch != without && left.Left[arch] > 0 {
			rest = append(rest, `"`+arch+`"`)
		}
	}
	return p.patch("replace", i, "["+strings.Join(rest, ",")+"]") + "   # or add types or families of " + without
}

// patch is the command that removes a requirement, or replaces its values. It does so only where that requirement is still about the same label.
func (p Pool) patch(op string, i int, values string) string {
	path := fmt.Sprintf("/spec/template/spec/requirements/%d", i)
	change := fmt.Sprintf(`{"op":"%s","path":"%s"}`, op, path)
	if values != "" {
		change = fmt.Sprintf(`{"op":"%s","path":"%s/values","value":%s}`, op, path, values)
	}
	return fmt.Sprintf(`kubectl patch nodepool %s --type json -p '[{"op":"test","path":"%s/key","value":"%s"},%s]'`, p.Name, path, p.Requirements[i].Key, change)
}

// admit is the command that lets a requirement on the user's own label take a value that it does not.
func (p Pool) admit(i int, value string) string {
	r := p.Requirements[i]
	if r.Operator != "In" {
		return p.patch("remove", i, "") + "   # or let it take " + value + ": " + r.String()
	}
	var values []string
	for _, v := range append(slices.Clone(r.Values), value) {
		values = append(values, `"`+v+`"`)
	}
	return p.patch("replace", i, "["+strings.Join(values, ",")+"]")
}
