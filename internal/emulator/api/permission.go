package api

import (
	"encoding/base64"
	"encoding/json"

	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
)

// IsRestricted reports whether the policies of the caller's role are evaluated; see identity.IAM.IsRestricted.
func (c *Call) IsRestricted() bool { return c.Account().IsRestricted(c.Caller.Role) }

// Authorize evaluates the policies of the caller's role for the requests in order. It returns the service's error for
// the first request that the policies do not allow. The role must be restricted: see IsRestricted.
func (c *Call) Authorize(requests ...iampolicy.Request) error {
	for _, r := range requests {
		if r.Keys == nil {
			r.Keys = iampolicy.Keys{}
		}
		r.Keys["aws:RequestedRegion"] = []string{c.RegionID}
		r.Keys["aws:PrincipalAccount"] = []string{c.Caller.Account}
		if c.Service == "ec2" {
			r.Keys["ec2:Region"] = []string{c.RegionID}
		}
		verdict := c.Account().Judge(c.Caller.Role, r)
		c.OnVerdict(r, verdict.Allowed)
		if !verdict.Allowed {
			return policyDenial(c, r, verdict)
		}
	}
	return nil
}

func policyDenial(c *Call, r iampolicy.Request, v iampolicy.Verdict) error {
	why := "because no identity-based policy allows the " + r.Action + " action"
	if v.Denied {
		kind, arn := c.Account().DenyingPolicy(c.Caller.Role, r)
		why = "with an explicit deny in " + kind + ": " + arn
	}
	message := "User: " + c.Caller.ARN + " is not authorized to perform: " + r.Action + " on resource: " + r.Resource + " " + why
	if c.Service == "ec2" {
		message += ". Encoded authorization failure message: " + c.encodedMessage(r, v)
	}
	return Denial(c, message)
}

// encodedMessage returns the encoded message that explains a denial. In AWS sts:DecodeAuthorizationMessage decodes it.
// AWS's messages have more fields, and are encrypted.
func (c *Call) encodedMessage(r iampolicy.Request, v iampolicy.Verdict) string {
	text, err := json.Marshal(map[string]any{
		"allowed": false, "explicitDeny": v.Denied,
		"context": map[string]any{
			"principal": map[string]string{"id": c.Caller.UserID, "arn": c.Caller.ARN},
			"action":    r.Action,
			"resource":  r.Resource,
		},
	})
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// RoleARN returns the ARN of the caller's role; empty for a user.
func (c *Call) RoleARN() string {
	if r, err := c.Account().Role(c.Caller.Role); err == nil {
		return r.ARN
	}
	return ""
}
