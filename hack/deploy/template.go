package deploy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Template is a parsed CloudFormation template. A call of an intrinsic function is an object with the function's long
// name: {"Fn::If": […]}.
type Template struct {
	Parameters map[string]parameter        `yaml:"Parameters"` // by name
	Rules      map[string]map[string]any   `yaml:"-"`          // by name; unevaluated
	Conditions map[string]any              `yaml:"-"`          // by name; unevaluated
	Resources  map[string]templateResource `yaml:"-"`          // by logical name; unevaluated
	Outputs    map[string]map[string]any   `yaml:"-"`          // by name; unevaluated

	root map[string]any // the whole template, decoded
}

type parameter struct {
	Type           string   `yaml:"Type"`
	Default        *string  `yaml:"Default"`
	Description    string   `yaml:"Description"`
	AllowedValues  []string `yaml:"AllowedValues"`
	AllowedPattern string   `yaml:"AllowedPattern"`
	Constraint     string   `yaml:"ConstraintDescription"`
}

type templateResource struct {
	Type, Condition string
	Properties      map[string]any
}

// ReadTemplate reads a template.
func ReadTemplate(file string) (*Template, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the caller's own file
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	t := &Template{}
	var document yaml.Node
	if err := errors.Join(yaml.Unmarshal(text, t), yaml.Unmarshal(text, &document)); err != nil {
		return nil, fmt.Errorf("read template %s: %w", file, err)
	}
	root, err := decode(document.Content[0])
	if err != nil {
		return nil, fmt.Errorf("read template %s: %w", file, err)
	}
	t.root = root.(map[string]any)
	t.Conditions, _ = t.root["Conditions"].(map[string]any)
	t.Rules, t.Outputs = objects(t.root["Rules"]), objects(t.root["Outputs"])
	t.Resources = map[string]templateResource{}
	for name, r := range objects(t.root["Resources"]) {
		resource := templateResource{}
		resource.Type, _ = r["Type"].(string)
		resource.Condition, _ = r["Condition"].(string)
		resource.Properties, _ = r["Properties"].(map[string]any)
		t.Resources[name] = resource
	}
	return t, nil
}

// objects returns the values of the object v by key: nil for a value that is not an object. If v is not an object, the
// result is empty.
func objects(v any) map[string]map[string]any {
	out := map[string]map[string]any{}
	all, _ := v.(map[string]any)
	for name, object := range all {
		out[name], _ = object.(map[string]any)
	}
	return out
}

// decode converts a YAML node to maps, lists and scalars. It converts the short form of an intrinsic function to the
// long form: !Ref X to {"Ref": "X"}.
func decode(n *yaml.Node) (any, error) {
	if name, ok := strings.CutPrefix(n.Tag, "!"); ok && !strings.HasPrefix(n.Tag, "!!") { // !!str is a type of YAML
		untagged := *n
		untagged.Tag = ""
		if untagged.Kind == yaml.ScalarNode {
			untagged.Tag = "!!str" // decode must not make it a number
		}
		inner, err := decode(&untagged)
		if err != nil {
			return nil, err
		}
		switch name {
		case "Ref", "Condition":
			return map[string]any{name: inner}, nil
		case "GetAtt":
			resource, attribute, _ := strings.Cut(inner.(string), ".")
			return map[string]any{"Fn::GetAtt": []any{resource, attribute}}, nil
		}
		return map[string]any{"Fn::" + name: inner}, nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			v, err := decode(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			out[n.Content[i].Value] = v
		}
		return out, nil
	case yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			v, err := decode(c)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.ScalarNode:
		var out any
		err := n.Decode(&out)
		return out, err
	}
	return nil, fmt.Errorf("line %d: a YAML alias is not supported", n.Line)
}

// Stack lists what a template creates.
type Stack struct {
	Resources map[string]templateResource // by logical name; evaluated
	Outputs   map[string]any              // by name; evaluated

	template   *Template
	parameters map[string]any  // values of the parameters, by name
	used       map[string]bool // names of the parameters and conditions that the evaluation read
}

// NewStack evaluates a template. Parameter values are strings; the items of a list are separated by commas.
func NewStack(t *Template, parameters map[string]string) (*Stack, error) {
	s := &Stack{
		template: t, parameters: map[string]any{}, used: map[string]bool{},
		Resources: map[string]templateResource{}, Outputs: map[string]any{},
	}
	if err := s.setParameters(parameters); err != nil {
		return nil, err
	}
	if err := s.checkRules(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(t.Resources)) {
		r := t.Resources[name]
		exists, err := s.exists(name)
		if err != nil || !exists {
			if err != nil {
				return nil, err
			}
			continue
		}
		properties, err := s.eval(r.Properties)
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", name, err)
		}
		r.Properties, _ = properties.(map[string]any)
		s.Resources[name] = r
	}
	for name, o := range t.Outputs {
		if condition, ok := o["Condition"].(string); ok {
			if isTrue, err := s.evalCondition(condition); err != nil || !isTrue {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		v, err := s.eval(o["Value"])
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		s.Outputs[name] = v
	}
	return s, nil
}

// setParameters sets the parameters to their given values, else to their defaults. A value that the template does not
// allow is an error.
func (s *Stack) setParameters(given map[string]string) error {
	for name := range given {
		if _, ok := s.template.Parameters[name]; !ok {
			return fmt.Errorf("parameter %s does not exist in the template", name)
		}
	}
	for name, p := range s.template.Parameters {
		text, ok := given[name]
		switch {
		case !ok && p.Default == nil:
			return fmt.Errorf("parameter %s must have a value", name)
		case !ok:
			text = *p.Default
		}
		if p.AllowedPattern != "" {
			pattern, err := regexp.Compile("^(?:" + p.AllowedPattern + ")$")
			if err != nil {
				return fmt.Errorf("parameter %s: %w", name, err)
			}
			if !pattern.MatchString(text) {
				return fmt.Errorf("parameter %s: %s", name, p.Constraint)
			}
		}
		if len(p.AllowedValues) > 0 && !slices.Contains(p.AllowedValues, text) {
			return fmt.Errorf("parameter %s must be one of %v", name, p.AllowedValues)
		}
		s.parameters[name] = text
		if p.Type == "CommaDelimitedList" {
			var list []any
			for _, item := range strings.Split(text, ",") {
				list = append(list, strings.TrimSpace(item))
			}
			s.parameters[name] = list
		}
	}
	return nil
}

// checkRules checks the assertions of each rule that applies. A rule without a RuleCondition is an error.
func (s *Stack) checkRules() error {
	for name, rule := range s.template.Rules {
		applies, err := s.evalBool(rule["RuleCondition"])
		if err != nil || !applies {
			if err != nil {
				return fmt.Errorf("rule %s: %w", name, err)
			}
			continue
		}
		assertions, _ := rule["Assertions"].([]any)
		for _, a := range assertions {
			a := a.(map[string]any)
			isTrue, err := s.evalBool(a["Assert"])
			if err != nil {
				return fmt.Errorf("rule %s: %w", name, err)
			}
			if !isTrue {
				return fmt.Errorf("rule %s: %s", name, a["AssertDescription"])
			}
		}
	}
	return nil
}

// exists reports whether the stack creates a resource. A resource that is not in the template is an error.
func (s *Stack) exists(name string) (bool, error) {
	r, ok := s.template.Resources[name]
	if !ok {
		return false, fmt.Errorf("there is no resource %s", name)
	}
	if r.Condition == "" {
		return true, nil
	}
	return s.evalCondition(r.Condition)
}
