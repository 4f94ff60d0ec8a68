package identity

import (
	"encoding/json"
	"slices"
)

// TrustsService reports whether the trust policy lets a service take each of the actions. Conditions are not looked at.
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
	return !slices.ContainsFunc(actions, func(a string) bool { return !allowed[a] && !allowed["sts:*"] && !allowed["*"] })
}

// texts is a text or a list of them, as policies write either.
type texts []string

// UnmarshalJSON takes both.
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
