package deploy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// noValue is the value of AWS::NoValue. A property with this value is left out.
type noValue struct{}

// attributes returns the values of Fn::GetAtt, by resource type and attribute; the entry "Ref" is the value of the
// function Ref. {name} stands for the resource's logical name.
func attributes() map[string]map[string]string {
	arn := func(service, kind string) string {
		region := "us-east-1"
		if service == "iam" {
			region = ""
		}
		return "arn:aws:" + service + ":" + region + ":" + account + ":" + kind + "/{name}"
	}
	return map[string]map[string]string{
		"AWS::EKS::AccessEntry":            {"Ref": "{name}", "AccessEntryArn": arn("eks", "access-entry")},
		"AWS::EKS::FargateProfile":         {"Ref": "{name}", "Arn": arn("eks", "fargateprofile")},
		"AWS::EKS::PodIdentityAssociation": {"Ref": "{name}"},
		"AWS::Events::Rule":                {"Ref": "{name}", "Arn": arn("events", "rule")},
		"AWS::IAM::ManagedPolicy":          {"Ref": arn("iam", "policy")},
		"AWS::IAM::Role":                   {"Ref": "{name}", "Arn": arn("iam", "role")},
		"AWS::SQS::Queue": {
			"Ref":       "https://{name}",
			"Arn":       "arn:aws:sqs:us-east-1:" + account + ":{name}",
			"QueueName": "{name}",
		},
		"AWS::SQS::QueuePolicy": {"Ref": "{name}"},
	}
}

func pseudoParameters() map[string]any {
	return map[string]any{
		"AWS::Partition": "aws", "AWS::AccountId": account, "AWS::Region": "us-east-1", "AWS::URLSuffix": "amazonaws.com",
		"AWS::StackName": "joiner",
		"AWS::NoValue":   noValue{},
	}
}

func (s *Stack) evalCondition(name string) (bool, error) {
	c, ok := s.template.Conditions[name]
	if !ok {
		return false, fmt.Errorf("there is no condition %s", name)
	}
	s.used[name] = true
	return s.evalBool(c)
}

func (s *Stack) evalBool(v any) (bool, error) {
	name, argument, ok := intrinsic(v)
	if !ok {
		return false, fmt.Errorf("%v is not a condition", v)
	}
	switch list, _ := argument.([]any); name {
	case "Condition":
		return s.evalCondition(argument.(string))
	case "Fn::Equals":
		a, errA := s.eval(list[0])
		b, errB := s.eval(list[1])
		return a == b, errors.Join(errA, errB)
	case "Fn::Not":
		b, err := s.evalBool(list[0])
		return !b, err
	case "Fn::And", "Fn::Or": // the first false decides And, the first true decides Or
		for _, inner := range list {
			if b, err := s.evalBool(inner); err != nil || b == (name == "Fn::Or") {
				return b, err
			}
		}
		return name == "Fn::And", nil
	}
	return false, fmt.Errorf("%s is not supported in conditions", name)
}

// intrinsic splits the call of an intrinsic function, such as {"Fn::Sub": …}, into name and argument. ok is false if v
// is no such call.
func intrinsic(v any) (name string, argument any, ok bool) {
	object, _ := v.(map[string]any)
	if len(object) != 1 {
		return "", nil, false
	}
	for name, argument := range object {
		if name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::") {
			if _, isObject := argument.(map[string]any); name == "Condition" && isObject {
				return "", nil, false // the Condition of an IAM policy statement
			}
			return name, argument, true
		}
	}
	return "", nil, false
}

// eval evaluates the intrinsic functions in a value. It leaves out properties with the value noValue.
func (s *Stack) eval(v any) (any, error) {
	if name, argument, ok := intrinsic(v); ok {
		return s.call(name, argument)
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			result, err := s.eval(inner)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if result != (any)(noValue{}) {
				out[name] = result
			}
		}
		return out, nil
	case []any:
		var out []any
		for _, inner := range v {
			result, err := s.eval(inner)
			if err != nil {
				return nil, err
			}
			out = append(out, result)
		}
		return out, nil
	}
	return v, nil
}

func (s *Stack) call(name string, argument any) (any, error) {
	list, _ := argument.([]any)
	switch name {
	case "Ref":
		return s.ref(argument.(string))
	case "Fn::GetAtt":
		return s.attribute(list[0].(string), list[1].(string))
	case "Fn::If":
		isTrue, err := s.evalCondition(list[0].(string))
		if err != nil {
			return nil, err
		}
		if isTrue {
			return s.eval(list[1])
		}
		return s.eval(list[2])
	case "Fn::Join":
		items, err := s.eval(list[1])
		if err != nil {
			return nil, err
		}
		var texts []string
		for _, item := range items.([]any) {
			texts = append(texts, fmt.Sprint(item))
		}
		return strings.Join(texts, list[0].(string)), nil
	case "Fn::Sub":
		if len(list) == 2 {
			return s.sub(list[0].(string), list[1].(map[string]any))
		}
		return s.sub(argument.(string), nil)
	}
	return nil, fmt.Errorf("function %s is not supported", name)
}

func (s *Stack) ref(name string) (any, error) {
	if v, ok := pseudoParameters()[name]; ok {
		return v, nil
	}
	if v, ok := s.parameters[name]; ok {
		s.used[name] = true
		return v, nil
	}
	return s.attribute(name, "Ref")
}

// attribute returns an attribute of a resource. It returns an error if the stack does not create the resource.
func (s *Stack) attribute(resource, attribute string) (any, error) {
	exists, err := s.exists(resource)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, fmt.Errorf("resource %s is referenced but not created", resource)
	}
	pattern, ok := attributes()[s.template.Resources[resource].Type][attribute]
	if !ok {
		return nil, fmt.Errorf("%s, a %s, has no %s", resource, s.template.Resources[resource].Type, attribute)
	}
	return strings.ReplaceAll(pattern, "{name}", resource), nil
}

// placeholder matches a placeholder of Fn::Sub. Its group is the name.
var placeholder = regexp.MustCompile(`\$\{([^}]+)\}`)

// sub replaces the placeholders of Fn::Sub. The value of ${NAME} is the entry NAME of values; without this entry, it is
// the value of Ref. The value of ${RESOURCE.ATTRIBUTE} is an attribute of a resource. An unused entry of values is an
// error.
func (s *Stack) sub(text string, values map[string]any) (string, error) {
	var errs []error
	unused := map[string]bool{}
	for name := range values {
		unused[name] = true
	}
	out := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		v, err := any(nil), error(nil)
		switch resource, attribute, hasDot := strings.Cut(name, "."); {
		case values[name] != nil:
			delete(unused, name)
			v, err = s.eval(values[name])
		case hasDot:
			v, err = s.attribute(resource, attribute)
		default:
			v, err = s.ref(name)
		}
		errs = append(errs, err)
		return fmt.Sprint(v)
	})
	for name := range unused {
		errs = append(errs, fmt.Errorf("Fn::Sub does not use the value %s", name))
	}
	return out, errors.Join(errs...)
}
