package emulator

import (
	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// kmsActions returns the emulated actions of KMS: those with which a user finds and fixes a key that blocks launches,
// and DisableKey.
func kmsActions() map[string]api.Action {
	return map[string]api.Action{
		"CreateGrant": api.Op(createGrant),
		"DescribeKey": api.Op(describeKey),
		"DisableKey":  api.Op(disableKey),
		"EnableKey":   api.Op(enableKey),
	}
}

type keyIn struct{ KeyId string }

type keyOut struct{ KeyMetadata keyMetadata }

type keyMetadata struct {
	AWSAccountId string
	KeyId        string
	Arn          string
	Enabled      bool
	KeyState     string
}

func describeKey(c *api.Call, in *keyIn) (keyOut, error) {
	k, err := c.Region.KMS.Key(in.KeyId)
	if err != nil {
		return keyOut{}, err
	}
	state := "Enabled"
	if k.Disabled {
		state = "Disabled"
	}
	return keyOut{keyMetadata{AWSAccountId: c.Caller.Account, KeyId: k.ID, Arn: k.ARN, Enabled: !k.Disabled, KeyState: state}}, nil
}

func enableKey(c *api.Call, in *keyIn) (api.None, error)  { return switchKey(c, in.KeyId, true) }
func disableKey(c *api.Call, in *keyIn) (api.None, error) { return switchKey(c, in.KeyId, false) }

func switchKey(c *api.Call, id string, enabled bool) (api.None, error) {
	k, err := c.Region.KMS.Key(id)
	if err == nil {
		k.Disabled = !enabled
	}
	return api.None{}, err
}

type createGrantIn struct {
	KeyId            string
	GranteePrincipal string
	Operations       []string
}

type createGrantOut struct {
	GrantToken string
	GrantId    string
}

// createGrant allows a principal to use a key. A grant without all three operations that EBS needs succeeds, but has no
// effect: it is not stored.
func createGrant(c *api.Call, in *createGrantIn) (createGrantOut, error) {
	if len(in.Operations) == 0 {
		return createGrantOut{}, &failure.Error{Code: "ValidationException", Message: "1 validation error detected: Value null at 'operations' failed to satisfy constraint: Member must not be null"}
	}
	needed := map[string]bool{"CreateGrant": true, "Decrypt": true, "GenerateDataKeyWithoutPlaintext": true}
	for _, o := range in.Operations {
		delete(needed, o)
	}
	if len(needed) == 0 {
		if err := c.Region.KMS.Grant(in.KeyId, in.GranteePrincipal); err != nil {
			return createGrantOut{}, err
		}
	} else if _, err := c.Region.KMS.Key(in.KeyId); err != nil {
		return createGrantOut{}, err
	}
	return createGrantOut{GrantToken: "AQpA" + c.ID, GrantId: c.ID}, nil
}
