package world

import (
	"slices"
	"strings"
)

// Key is a KMS key that encrypts volumes. Keys of AWS, such as alias/aws/ebs, are not in the world: every principal of the account
// may use them.
type Key struct {
	ID  string // a UUID
	ARN string

	// Disabled is true if the key cannot be used.
	Disabled bool
	// Closed is true if the key's policy names its administrators only: other principals need a grant.
	Closed bool

	grantees []string // ARNs
}

// CreateKey makes a key. What ID and ARN say is not looked at.
func (r *Region) CreateKey(k Key) *Key {
	k.ID = uuid(r.world().hex("key", 32))
	k.ARN = r.arn("kms", "key/"+k.ID)
	k.grantees = nil
	r.keys = append(r.keys, &k)
	return &k
}

// Keys returns the keys, oldest first.
func (r *Region) Keys() []*Key { return r.keys }

// Key returns a key by its id or ARN; its exported fields may be altered.
func (r *Region) Key(id string) (*Key, error) {
	if k := r.key(id); k != nil {
		return k, nil
	}
	return nil, refuse("NotFoundException", "Key '%s' does not exist", r.arn("kms", "key/"+roleName(id)))
}

func (r *Region) key(id string) *Key {
	i := slices.IndexFunc(r.keys, func(k *Key) bool { return k.ID == id || k.ARN == id })
	if i < 0 {
		return nil
	}
	return r.keys[i]
}

// Grant lets a principal use a key, whatever the key's policy says.
func (r *Region) Grant(id, principal string) error {
	k, err := r.Key(id)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(principal, "arn:") {
		return refuse("InvalidArnException", "ARN does not refer to a valid principal: %s", principal)
	}
	if !slices.Contains(k.grantees, principal) {
		k.grantees = append(k.grantees, principal)
	}
	return nil
}

// keyTrouble is why an instance ends before it runs: EBS cannot use the key of one of its volumes in the caller's name. EC2 finds
// that out after the launch, and says little.
func (r *Region) keyTrouble(b birth) Reason {
	for _, d := range b.data.Devices {
		if d.EBS == nil || d.EBS.KMSKeyID == "" || strings.HasPrefix(d.EBS.KMSKeyID, "alias/aws/") {
			continue
		}
		k := r.key(d.EBS.KMSKeyID)
		switch {
		case k != nil && k.Disabled:
			return reason(keyState)
		case k == nil, k.Closed && !slices.Contains(k.grantees, b.caller):
			return reason(keyDenied)
		}
	}
	return Reason{}
}
