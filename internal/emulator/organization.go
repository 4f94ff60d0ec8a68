package emulator

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// organizationActions returns the emulated actions of AWS Organizations. An administrator uses DetachPolicy to
// detach a service control policy from the account.
func organizationActions() map[string]api.Action {
	return map[string]api.Action{"DetachPolicy": api.Op(detachPolicy)}
}

type detachPolicyIn struct {
	PolicyId string
	TargetId string // account ID
}

func detachPolicy(c *api.Call, in *detachPolicyIn) (api.None, error) {
	if in.TargetId != c.Caller.Account {
		return api.None{}, &failure.Error{Code: "TargetNotFoundException", Message: "You specified a target that doesn't exist."}
	}
	return api.None{}, c.Account().DetachServiceControlPolicy(in.PolicyId)
}
