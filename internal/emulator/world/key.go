package world

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// Key is a customer managed KMS key that encrypts volumes. AWS managed keys, such as alias/aws/ebs, are not emulated:
// every principal of the account may use them.
type Key struct {
	ID  string // a UUID
	ARN string // "arn:aws:kms:…:key/…"

	// Disabled is true if the key cannot be used.
	Disabled bool
	// NeedsGrant is true if the key's policy allows its administrators only: other principals need a grant.
	NeedsGrant bool

	grantees []string // ARNs of principals with a grant
}

// KMS has the KMS keys of a region.
type KMS struct {
	region *Region
	keys   []*Key // oldest first
}

// CreateKey creates a key. It ignores ID and ARN of k.
func (s *KMS) CreateKey(k Key) *Key {
	k.ID = s.region.site.IDs.UUID("key")
	k.ARN = s.region.arn("kms", "key/"+k.ID)
	k.grantees = nil
	s.keys = append(s.keys, &k)
	return &k
}

// Keys returns the keys, oldest first.
func (s *KMS) Keys() []*Key { return s.keys }

// Key returns a key by its id or ARN. Callers may change its exported fields.
func (s *KMS) Key(id string) (*Key, error) {
	if k := s.find(id); k != nil {
		return k, nil
	}
	return nil, failure.New("NotFoundException", "Key '%s' does not exist", s.region.arn("kms", "key/"+identity.RoleName(id)))
}

// find returns a key by its id or ARN; nil if it does not exist.
func (s *KMS) find(id string) *Key {
	i := slices.IndexFunc(s.keys, func(k *Key) bool { return k.ID == id || k.ARN == id })
	if i < 0 {
		return nil
	}
	return s.keys[i]
}

// Grant allows a principal to use a key, even if the key's policy does not allow it.
func (s *KMS) Grant(id, principal string) error {
	k, err := s.Key(id)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(principal, "arn:") {
		return failure.New("InvalidArnException", "ARN does not refer to a valid principal: %s", principal)
	}
	if !slices.Contains(k.grantees, principal) {
		k.grantees = append(k.grantees, principal)
	}
	return nil
}

// launchFailure returns the reason why a new instance ends while it is pending: EBS cannot use the key of a volume on
// behalf of the caller. EC2 detects this only after the launch. The zero value means that EBS can use all keys.
func (s *KMS) launchFailure(launch resolvedLaunch) Reason {
	for _, d := range launch.data.Devices {
		if d.EBS == nil || d.EBS.KMSKeyID == "" || strings.HasPrefix(d.EBS.KMSKeyID, "alias/aws/") {
			continue
		}
		k := s.find(d.EBS.KMSKeyID)
		switch {
		case k != nil && k.Disabled:
			return reason(keyDisabled)
		case k == nil, k.NeedsGrant && !slices.Contains(k.grantees, launch.caller):
			return reason(keyDenied)
		}
	}
	return Reason{}
}
