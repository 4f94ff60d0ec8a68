package identity

import (
	"cmp"
	"crypto/rsa"

	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// IAM has the roles, instance profiles, policies and identity providers of one account. Use NewIAM to create one.
type IAM struct {
	ID string // account ID: 12 digits

	// NoSpotRole is true for an account without the service-linked role for spot instances. EC2 creates this role at
	// the first launch of a spot instance if the caller is allowed to create it. The emulator does not create the role:
	// the launch fails, as if the caller were not allowed.
	NoSpotRole bool

	ids       *site.IDs
	sts       *STS
	partition string                 // "aws-cn"; empty until the account's first region is used
	roles     map[string]*Role       // by name
	profiles  map[string]*Profile    // by name
	policies  map[string]*Policy     // customer managed policies, by ARN
	scps      []ServiceControlPolicy // service control policies, oldest first
	providers map[string]*Provider   // by issuer
}

// NewIAM returns the IAM of an account without roles. sts stores the sessions.
func NewIAM(account string, ids *site.IDs, sts *STS) IAM { return IAM{ID: account, ids: ids, sts: sts} }

// STS has the sessions of all accounts, and the public keys of token issuers. The zero value is empty and ready for
// use.
type STS struct {
	sessions map[string]*Session                  // by access key
	issuers  map[string]map[string]*rsa.PublicKey // by issuer and key id
}

// Partition returns the account's partition: the partition of the first region that the account uses; "aws" until then.
func (a *IAM) Partition() string { return cmp.Or(a.partition, "aws") }

// EnterRegion records that the account uses a region. The first region determines the account's partition.
func (a *IAM) EnterRegion(name string) { a.partition = cmp.Or(a.partition, site.Partition(name)) }

// arn returns an ARN without a region: arn("iam", "role/node").
func (a *IAM) arn(service, resource string) string {
	return "arn:" + a.Partition() + ":" + service + "::" + a.ID + ":" + resource
}
