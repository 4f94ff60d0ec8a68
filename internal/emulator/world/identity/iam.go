package identity

import (
	"cmp"
	"crypto/rsa"

	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// IAM has the roles, instance profiles, policies and identity providers of one account. NewIAM makes one.
type IAM struct {
	ID string // of the account: 12 digits

	// NoSpotRole is an account that has never had a spot instance: the service-linked role is missing that EC2 makes for the
	// first one, and that who launches may not make.
	NoSpotRole bool

	ids       *site.IDs
	sts       *STS
	partition string // "aws-cn"; empty until the first of its regions is used
	roles     map[string]*Role
	profiles  map[string]*Profile
	policies  map[string]*Policy     // its own, by ARN
	scps      []ServiceControlPolicy // of its organization
	providers map[string]*Provider   // by issuer
}

// NewIAM returns the IAM of an account without any role. Its sessions are those of the STS.
func NewIAM(account string, ids *site.IDs, sts *STS) IAM { return IAM{ID: account, ids: ids, sts: sts} }

// STS has the sessions of all accounts, and the keys of the issuers whose tokens it verifies. Its zero value has none.
type STS struct {
	sessions map[string]*Session                  // by access key
	issuers  map[string]map[string]*rsa.PublicKey // keys by id, by issuer
}

// Partition returns the part of AWS that the account is of: that of the first region it uses, "aws" until then.
func (a *IAM) Partition() string { return cmp.Or(a.partition, "aws") }

// EnterRegion notes that the account uses a region: the first one decides the account's partition.
func (a *IAM) EnterRegion(name string) { a.partition = cmp.Or(a.partition, site.Partition(name)) }

// arn returns an ARN of what has no region: arn("iam", "role/node").
func (a *IAM) arn(service, resource string) string {
	return "arn:" + a.Partition() + ":" + service + "::" + a.ID + ":" + resource
}
