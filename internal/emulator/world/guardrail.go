package world

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

// Guardrail is a service control policy of the organization that the account belongs to. It lets nobody do anything, and what it
// denies nobody in the account may do.
type Guardrail struct {
	ID  string // "p-…"
	ARN string

	read iampolicy.Policy
}

// AttachGuardrail puts the account under a service control policy. The document is JSON; only its denials count.
func (a *Account) AttachGuardrail(document string) (Guardrail, error) {
	read, err := iampolicy.Read([]byte(document))
	if err != nil {
		return Guardrail{}, refuse("MalformedPolicyDocumentException", "The provided policy document does not meet the requirements of the specified policy type: %v", err)
	}
	g := Guardrail{ID: "p-" + a.world.hex("guardrail", 8), read: read}
	g.ARN = "arn:" + a.Partition() + ":organizations::" + a.ID + ":policy/o-exampleorg/service_control_policy/" + g.ID
	a.guardrails = append(a.guardrails, g)
	return g, nil
}

// Guardrails returns those that the account is under, oldest first.
func (a *Account) Guardrails() []Guardrail { return slices.Clone(a.guardrails) }

// DetachGuardrail frees the account of one, by its id.
func (a *Account) DetachGuardrail(id string) error {
	i := slices.IndexFunc(a.guardrails, func(g Guardrail) bool { return g.ID == id })
	if i < 0 {
		return refuse("PolicyNotAttachedException", "The policy isn't attached to the specified target in the specified root.")
	}
	a.guardrails = slices.Delete(slices.Clone(a.guardrails), i, i+1)
	return nil
}

// Denier tells which policy denies a request that Judge says is denied: "a service control policy" or "an identity-based policy",
// and its ARN. Both are empty where none does.
func (a *Account) Denier(role string, q iampolicy.Request) (kind, arn string) {
	for _, g := range a.guardrails {
		if iampolicy.Judge([]iampolicy.Policy{g.read}, q).Denied {
			return "a service control policy", g.ARN
		}
	}
	known := a.roles[role]
	if known == nil {
		return "", ""
	}
	for _, arn := range known.Policies {
		if p := a.policies[arn]; p != nil && iampolicy.Judge([]iampolicy.Policy{p.read}, q).Denied {
			return "an identity-based policy", arn
		}
	}
	return "", ""
}
