package emulator

import (
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// ssmActions returns the actions of Systems Manager.
func ssmActions() map[string]action {
	return map[string]action{
		"GetParameter":        op(getParameter),
		"GetParameters":       op(getParameters),
		"GetParametersByPath": op(getParametersByPath),
		"PutParameter":        op(putParameter),
		"DeleteParameter":     op(deleteParameter),
	}
}

// parameter is a parameter as Systems Manager writes it.
type parameter struct {
	Name             string
	Type             string
	Value            string
	Version          int64
	LastModifiedDate float64 // seconds since 1970
	ARN              string
	DataType         string
}

func parameterOf(p world.Parameter) parameter {
	return parameter{
		Name: p.Name, Type: p.Kind, Value: p.Value, Version: p.Version,
		LastModifiedDate: epoch(p.ModifiedAt), ARN: p.ARN, DataType: p.DataType,
	}
}

// epoch writes a time as the JSON protocols do: in seconds, with milliseconds.
func epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

type parameterIn struct{ Name string }

type parameterOut struct{ Parameter parameter }

func getParameter(c *call, in *parameterIn) (parameterOut, error) {
	p, err := c.region.SSM.Parameter(in.Name)
	return parameterOut{Parameter: parameterOf(p)}, err
}

type parametersIn struct{ Names []string }

type parametersOut struct {
	Parameters        []parameter
	InvalidParameters []string
}

func getParameters(c *call, in *parametersIn) (parametersOut, error) {
	if len(in.Names) == 0 || len(in.Names) > 10 {
		return parametersOut{}, &world.Error{Code: "ValidationException", Message: "1 validation error detected: names must have between 1 and 10 members"}
	}
	out := parametersOut{Parameters: []parameter{}, InvalidParameters: []string{}}
	for _, name := range in.Names {
		p, err := c.region.SSM.Parameter(name)
		if err != nil {
			out.InvalidParameters = append(out.InvalidParameters, name)
			continue
		}
		out.Parameters = append(out.Parameters, parameterOf(p))
	}
	return out, nil
}

type parametersByPathIn struct {
	Path       string
	Recursive  bool
	MaxResults int
	NextToken  string
}

type parametersByPathOut struct {
	Parameters []parameter
	NextToken  string `json:",omitempty"`
}

func getParametersByPath(c *call, in *parametersByPathIn) (parametersByPathOut, error) {
	size := 10
	if in.MaxResults > 0 {
		size = min(in.MaxResults, 10)
	}
	found, next, err := cut(c.region.SSM.ParametersByPath(in.Path, in.Recursive),
		func(p world.Parameter) string { return p.Name }, page{token: in.NextToken, size: size})
	if err != nil {
		return parametersByPathOut{}, &world.Error{Code: "InvalidNextToken", Message: "The specified token isn't valid."}
	}
	out := parametersByPathOut{Parameters: []parameter{}, NextToken: next}
	for _, p := range found {
		out.Parameters = append(out.Parameters, parameterOf(p))
	}
	return out, nil
}

type putParameterIn struct {
	Name      string
	Value     string
	Type      string
	DataType  string
	Overwrite bool
}

type putParameterOut struct {
	Version int64
	Tier    string
}

func putParameter(c *call, in *putParameterIn) (putParameterOut, error) {
	version, err := c.region.SSM.PutParameter(c.now, world.Parameter{Name: in.Name, Value: in.Value, Kind: in.Type, DataType: in.DataType}, in.Overwrite)
	return putParameterOut{Version: version, Tier: "Standard"}, err
}

func deleteParameter(c *call, in *parameterIn) (none, error) {
	return none{}, c.region.SSM.DeleteParameter(in.Name)
}
