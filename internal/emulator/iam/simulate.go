package iam

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

type simulateIn struct {
	PolicySourceArn string
	ActionNames     []string
	ResourceArns    []string
	ContextEntries  []contextEntry
}

type contextEntry struct {
	ContextKeyName   string
	ContextKeyType   string
	ContextKeyValues []string
}

type simulateOut struct {
	EvaluationResults []evaluation
	IsTruncated       bool
}

type evaluation struct {
	EvalActionName   string
	EvalResourceName string
	EvalDecision     string
}

// simulatePrincipalPolicy returns the decision of a role's policies for each action on each resource. An unrestricted
// role is allowed everything: see identity.IAM.IsRestricted.
func simulatePrincipalPolicy(c *api.Call, in *simulateIn) (simulateOut, error) {
	source, err := c.Account().Role(in.PolicySourceArn[strings.LastIndexByte(in.PolicySourceArn, '/')+1:])
	if err != nil {
		return simulateOut{}, err
	}
	if len(in.ActionNames) == 0 {
		return simulateOut{}, api.MissingParameter("actionNames")
	}
	resources := in.ResourceArns
	if len(resources) == 0 {
		resources = []string{"*"}
	}
	out := simulateOut{EvaluationResults: []evaluation{}}
	for _, action := range in.ActionNames {
		for _, resource := range resources {
			keys := iampolicy.Keys{}
			for _, e := range in.ContextEntries {
				keys[e.ContextKeyName] = e.ContextKeyValues
			}
			decision := "implicitDeny"
			switch verdict := c.Account().Judge(source.Name, iampolicy.Request{Action: action, Resource: resource, Keys: keys}); {
			case !c.Account().IsRestricted(source.Name), verdict.Allowed:
				decision = "allowed"
			case verdict.Denied:
				decision = "explicitDeny"
			}
			out.EvaluationResults = append(out.EvaluationResults, evaluation{action, resource, decision})
		}
	}
	return out, nil
}
