package emulator

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

func ssmActions() map[string]api.Action {
	return map[string]api.Action{
		"GetParameter":        api.Op(getParameter),
		"GetParameters":       api.Op(getParameters),
		"GetParametersByPath": api.Op(getParametersByPath),
		"PutParameter":        api.Op(putParameter),
		"DeleteParameter":     api.Op(deleteParameter),
	}
}

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
		LastModifiedDate: api.Epoch(p.ModifiedAt), ARN: p.ARN, DataType: p.DataType,
	}
}

type parameterIn struct{ Name string }

type parameterOut struct{ Parameter parameter }

func getParameter(c *api.Call, in *parameterIn) (parameterOut, error) {
	p, err := c.Region.SSM.Parameter(in.Name)
	return parameterOut{Parameter: parameterOf(p)}, err
}

type parametersIn struct{ Names []string }

type parametersOut struct {
	Parameters        []parameter
	InvalidParameters []string
}

func getParameters(c *api.Call, in *parametersIn) (parametersOut, error) {
	if len(in.Names) == 0 || len(in.Names) > 10 {
		return parametersOut{},
			&failure.Error{Code: "ValidationException", Message: "1 validation error detected: names must have between 1 and 10 members"}
	}
	out := parametersOut{Parameters: []parameter{}, InvalidParameters: []string{}}
	for _, name := range in.Names {
		p, err := c.Region.SSM.Parameter(name)
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

func getParametersByPath(c *api.Call, in *parametersByPathIn) (parametersByPathOut, error) {
	size := 10 // default and maximum of SSM
	if in.MaxResults > 0 {
		size = min(in.MaxResults, 10)
	}
	found, next, err := api.PageOf(c.Region.SSM.ParametersByPath(in.Path, in.Recursive),
		func(p world.Parameter) string { return p.Name }, api.Page{Token: in.NextToken, Size: size})
	if err != nil {
		return parametersByPathOut{}, &failure.Error{Code: "InvalidNextToken", Message: "The specified token isn't valid."}
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

func putParameter(c *api.Call, in *putParameterIn) (putParameterOut, error) {
	version, err := c.Region.SSM.PutParameter(c.Now,
		world.Parameter{Name: in.Name, Value: in.Value, Kind: in.Type, DataType: in.DataType}, in.Overwrite)
	return putParameterOut{Version: version, Tier: "Standard"}, err
}

func deleteParameter(c *api.Call, in *parameterIn) (api.None, error) {
	return api.None{}, c.Region.SSM.DeleteParameter(in.Name)
}

// ssmPermissions returns the action and the resource that IAM evaluates for a call. The resource is the parameter for
// GetParameter and DeleteParameter, and "*" for other actions. The ARN of a parameter below /aws/ has no account.
func ssmPermissions(c *api.Call, in any) []iampolicy.Request {
	r := iampolicy.Request{Action: c.Name(), Resource: "*"}
	if in, ok := in.(*parameterIn); ok {
		account := c.Caller.Account
		if strings.HasPrefix(in.Name, "/aws/") {
			account = ""
		}
		r.Resource = c.Region.ARN("ssm", account, "parameter/"+strings.TrimPrefix(in.Name, "/"))
	}
	return []iampolicy.Request{r}
}
