package emulator

import "github.com/joiner-sh/joiner/internal/emulator/world"

// organizationActions returns the actions of Organizations: an administrator frees the account of a service control policy.
func organizationActions() map[string]action {
	return map[string]action{"DetachPolicy": op(detachPolicy)}
}

type detachPolicyIn struct {
	PolicyId string
	TargetId string // of an account
}

func detachPolicy(c *call, in *detachPolicyIn) (none, error) {
	if in.TargetId != c.caller.Account {
		return none{}, &world.Error{Code: "TargetNotFoundException", Message: "You specified a target that doesn't exist."}
	}
	return none{}, c.account().DetachServiceControlPolicy(in.PolicyId)
}
