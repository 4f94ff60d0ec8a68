package deploy

import (
	"encoding/base64"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions returns the Terraform functions that the modules use.
func functions() map[string]function.Function {
	return map[string]function.Function{
		"base64decode": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "text", Type: cty.String}},
			Type:   function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				plain, err := base64.StdEncoding.DecodeString(args[0].AsString())
				return cty.StringVal(string(plain)), err
			},
		}),
		"can":        tryfunc.CanFunc,
		"coalesce":   coalesce(),
		"compact":    stdlib.CompactFunc,
		"concat":     stdlib.ConcatFunc,
		"contains":   stdlib.ContainsFunc,
		"jsonencode": stdlib.JSONEncodeFunc,
		"join":       stdlib.JoinFunc,
		"keys":       stdlib.KeysFunc,
		"length":     stdlib.LengthFunc,
		"merge":      stdlib.MergeFunc,
		"regex":      stdlib.RegexFunc,
		"reverse":    stdlib.ReverseListFunc,
		"split":      stdlib.SplitFunc,
		"strcontains": stringPredicate("strcontains", func(s, part string) cty.Value {
			return cty.BoolVal(strings.Contains(s, part))
		}),
		"toset":      stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"try":        tryfunc.TryFunc,
		"yamlencode": ctyyaml.YAMLEncodeFunc,
	}
}

// stringPredicate converts f, which returns a Boolean for two strings, to a Terraform function.
func stringPredicate(description string, f func(a, b string) cty.Value) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{{Name: "a", Type: cty.String}, {Name: "b", Type: cty.String}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return f(args[0].AsString(), args[1].AsString()), nil
		},
	})
}

// coalesce returns Terraform's function coalesce, which returns its first argument that is neither null nor an empty
// string. The arguments must be convertible to one type.
func coalesce() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "values", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			types := make([]cty.Type, 0, len(args))
			for _, a := range args {
				types = append(types, a.Type())
			}
			typ, _ := convert.UnifyUnsafe(types)
			if typ == cty.NilType {
				return cty.NilType, function.NewArgErrorf(0, "all arguments must have the same type")
			}
			return typ, nil
		},
		Impl: func(args []cty.Value, typ cty.Type) (cty.Value, error) {
			for _, a := range args {
				if a.IsNull() {
					continue
				}
				a, err := convert.Convert(a, typ)
				if err != nil {
					return cty.NilVal, err
				}
				if typ != cty.String || a.AsString() != "" {
					return a, nil
				}
			}
			return cty.NilVal, function.NewArgErrorf(0, "all arguments are null or empty")
		},
	})
}
