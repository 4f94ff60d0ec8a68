package identity

import (
	"encoding/json"
	"slices"
)

// TrustsService reports whether the trust policy allows a service all of the actions. It ignores conditions, and
// statements with the effect Deny. It returns false for a policy with the principal "*", which it cannot parse.
func (r Role) TrustsService(service string, actions ...string) bool {
	var policy struct {
		Statement []struct {
			Effect    string
			Principal struct{ Service texts }
			Action    texts
		}
	}
	if err := json.Unmarshal([]byte(r.TrustPolicy), &policy); err != nil {
		return false
	}
	allowed := map[string]bool{}
	for _, s := range policy.Statement {
		if s.Effect == "Allow" && slices.Contains(s.Principal.Service, service) {
			for _, a := range s.Action {
				allowed[a] = true
			}
		}
	}
	isMissing := func(a string) bool { return !allowed[a] && !allowed["sts:*"] && !allowed["*"] }
	return !slices.ContainsFunc(actions, isMissing)
}

// texts is a list whose JSON may be a single string instead.
type texts []string

// UnmarshalJSON decodes a string or a list of strings.
func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(data, &many); err != nil {
		return err
	}
	*t = many
	return nil
}
