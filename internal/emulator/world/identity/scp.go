package identity

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// ServiceControlPolicy is a service control policy that the account's organization attaches to the account. Only its
// denials are evaluated, for all restricted roles of the account: see IsRestricted.
type ServiceControlPolicy struct {
	ID  string // "p-…"
	ARN string // "arn:aws:organizations::…:policy/o-exampleorg/service_control_policy/p-…"

	parsed iampolicy.Policy
}

// AttachServiceControlPolicy attaches a service control policy to the account. The document is JSON.
func (a *IAM) AttachServiceControlPolicy(document string) (ServiceControlPolicy, error) {
	parsed, err := iampolicy.Read([]byte(document))
	if err != nil {
		return ServiceControlPolicy{},
			failure.New("MalformedPolicyDocumentException",
				"The provided policy document does not meet the requirements of the specified policy type: %v", err)
	}
	scp := ServiceControlPolicy{ID: "p-" + a.ids.Hex("scp", 8), parsed: parsed}
	scp.ARN = "arn:" + a.Partition() + ":organizations::" + a.ID + ":policy/o-exampleorg/service_control_policy/" + scp.ID
	a.scps = append(a.scps, scp)
	return scp, nil
}

// ServiceControlPolicies returns the service control policies of the account, oldest first.
func (a *IAM) ServiceControlPolicies() []ServiceControlPolicy { return slices.Clone(a.scps) }

// DetachServiceControlPolicy detaches a service control policy by its ID.
func (a *IAM) DetachServiceControlPolicy(id string) error {
	i := slices.IndexFunc(a.scps, func(scp ServiceControlPolicy) bool { return scp.ID == id })
	if i < 0 {
		return failure.New("PolicyNotAttachedException", "The policy isn't attached to the specified target in the specified root.")
	}
	a.scps = slices.Delete(slices.Clone(a.scps), i, i+1)
	return nil
}

// DenyingPolicy returns the kind and the ARN of a policy that explicitly denies a request: a service control policy, or
// else a managed policy of the role. The kind is "a service control policy" or "an identity-based policy". Both results
// are empty if no such policy denies the request; inline policies, which have no ARN, are not evaluated.
func (a *IAM) DenyingPolicy(role string, q iampolicy.Request) (kind, arn string) {
	for _, scp := range a.scps {
		if iampolicy.Judge([]iampolicy.Policy{scp.parsed}, q).Denied {
			return "a service control policy", scp.ARN
		}
	}
	known := a.roles[role]
	if known == nil {
		return "", ""
	}
	for _, arn := range known.Policies {
		if p := a.policies[arn]; p != nil && iampolicy.Judge([]iampolicy.Policy{p.parsed}, q).Denied {
			return "an identity-based policy", arn
		}
	}
	return "", ""
}
