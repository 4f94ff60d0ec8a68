package permissions

import (
	"slices"
	"strings"
)

// ExampleRequests are requests that a statement of Policies allows: every action on every resource. joiner migrate
// evaluates other policies with them.
type ExampleRequests struct {
	Policy    string              // name of the policy: "launch"
	Sid       string              // Sid of the statement
	Actions   []string            // actions: "ec2:CreateFleet"
	Resources []string            // ARNs of example resources; "*" for actions without resources
	Keys      map[string][]string // values of condition keys, by key
}

// Examples returns the example requests of each Allow statement of policies. The policies must be those that Policies
// returns for the scope.
func Examples(s Scope, policies []Policy) ([]ExampleRequests, error) {
	s, err := s.complete()
	if err != nil {
		return nil, err
	}
	var out []ExampleRequests
	for _, p := range policies {
		for _, statement := range p.Statements {
			if statement.Effect != allow {
				continue
			}
			requests := ExampleRequests{Policy: p.Name, Sid: statement.Sid, Actions: statement.Action, Keys: s.keys(statement.Condition)}
			for _, pattern := range statement.Resource {
				requests.Resources = append(requests.Resources, s.example(pattern))
			}
			out = append(out, requests)
		}
	}
	return out, nil
}

// example replaces the wildcards of an ARN pattern with example values. ARNs of images and snapshots have no account.
func (s Scope) example(pattern string) string {
	const account, resource = 4, 5 // indexes of the parts of an ARN
	parts := strings.SplitN(pattern, ":", resource+1)
	if len(parts) <= resource {
		return pattern
	}
	if parts[account] == "*" {
		parts[account] = s.Account
		if strings.HasPrefix(parts[resource], "image/") || strings.HasPrefix(parts[resource], "snapshot/") {
			parts[account] = ""
		}
	}
	parts[resource] = strings.ReplaceAll(parts[resource], "*", "example")
	return strings.Join(parts, ":")
}

// keys returns the condition keys of a request that meets the conditions: existing resources have all tags that the
// controller sets, and new resources get these tags.
func (s Scope) keys(c Conditions) map[string][]string {
	tags := map[string]string{tagCluster + s.Cluster: "owned", tagName: s.Cluster, tagNodePool: "example",
		tagNodeClass: "example", tagRegion: s.Region, tagUID: s.UID}
	if s.UID == anyUID {
		tags[tagUID] = "example"
	}
	out := map[string][]string{}
	for key, value := range tags {
		out[resourceTag+key] = []string{value}
	}
	needsRequestTags := false
	for operator, keys := range c {
		for key, values := range keys {
			switch {
			case strings.HasPrefix(key, requestTag):
				// An IfExists condition also accepts requests without tags.
				needsRequestTags = needsRequestTags || !strings.HasSuffix(operator, "IfExists")
			case strings.HasPrefix(key, resourceTag):
			case strings.HasPrefix(operator, "ForAllValues:"):
				out[key] = slices.Clone(values)
			default:
				out[key] = []string{strings.ReplaceAll(values[0], "*", "example")}
			}
		}
	}
	if needsRequestTags {
		for key, value := range tags {
			out[requestTag+key] = []string{value}
		}
	}
	return out
}
