package iam

import (
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// STSActions returns the actions of STS.
func STSActions() map[string]api.Action {
	return map[string]api.Action{
		"GetCallerIdentity":         api.Op(getCallerIdentity),
		"AssumeRole":                api.Op(assumeRole),
		"AssumeRoleWithWebIdentity": api.Op(assumeRoleWithWebIdentity),
	}
}

type callerIdentityOut struct {
	Arn     string
	UserId  string
	Account string
}

// getCallerIdentity returns the caller. An EKS token is a presigned request for this action.
func getCallerIdentity(c *api.Call, _ *api.None) (callerIdentityOut, error) {
	return callerIdentityOut{Arn: c.Caller.ARN, UserId: c.Caller.UserID, Account: c.Caller.Account}, nil
}

type assumeRoleIn struct {
	RoleArn         string
	RoleSessionName string
	DurationSeconds int64
}

type assumeRoleOut struct {
	Credentials     credentials
	AssumedRoleUser assumedRoleUser
}

type credentials struct {
	AccessKeyId     string
	SecretAccessKey string
	SessionToken    string
	Expiration      iamTime
}

type assumedRoleUser struct {
	AssumedRoleId string
	Arn           string
}

// assumeRole opens a session of a role. The trust policy is not evaluated; Faults.Denials can deny the call.
func assumeRole(c *api.Call, in *assumeRoleIn) (assumeRoleOut, error) {
	account, roleName, duration, err := in.parse()
	if err != nil {
		return assumeRoleOut{}, err
	}
	s, err := c.World.Account(account).AssumeRole(c.Now, roleName, in.RoleSessionName, duration)
	return outputOf(s), err
}

type webIdentityIn struct {
	assumeRoleIn

	WebIdentityToken string
}

type webIdentityOut struct {
	assumeRoleOut

	SubjectFromWebIdentityToken string
	Audience                    string
	Provider                    string
}

// assumeRoleWithWebIdentity opens a session of a role for a service account. The caller needs a token and no access
// keys.
func assumeRoleWithWebIdentity(c *api.Call, in *webIdentityIn) (webIdentityOut, error) {
	if in.WebIdentityToken == "" {
		return webIdentityOut{}, api.MissingParameter("webIdentityToken")
	}
	account, roleName, duration, err := in.parse()
	if err != nil {
		return webIdentityOut{}, err
	}
	s, caller, err := c.World.Account(account).AssumeRoleWithWebIdentity(c.Now, roleName, in.RoleSessionName, in.WebIdentityToken, duration)
	if err != nil {
		return webIdentityOut{}, err
	}
	return webIdentityOut{outputOf(s), caller.Subject, caller.Audience, caller.Provider}, nil
}

// parse returns the account and the name of the requested role, and the duration of the session: one hour by default.
func (in *assumeRoleIn) parse() (account, roleName string, duration time.Duration, err error) {
	parts := strings.SplitN(in.RoleArn, ":", 6)
	if len(parts) != 6 || !strings.HasPrefix(parts[5], "role/") {
		return "", "", 0, &failure.Error{Code: "ValidationError", Message: in.RoleArn + " is invalid"}
	}
	if in.RoleSessionName == "" {
		return "", "", 0, api.MissingParameter("roleSessionName")
	}
	duration = time.Hour
	if in.DurationSeconds != 0 {
		duration = time.Duration(in.DurationSeconds) * time.Second
	}
	if duration < 15*time.Minute || duration > 12*time.Hour {
		return "", "", 0, &failure.Error{Code: "ValidationError", Message: "The requested DurationSeconds must be between 900 and 43200."}
	}
	return parts[4], parts[5][strings.LastIndexByte(parts[5], '/')+1:], duration, nil
}

func outputOf(s identity.Session) assumeRoleOut {
	return assumeRoleOut{
		Credentials: credentials{
			AccessKeyId:     s.AccessKey,
			SecretAccessKey: s.SecretKey,
			SessionToken:    s.Token,
			Expiration:      timeOf(s.Expires),
		},
		AssumedRoleUser: assumedRoleUser{AssumedRoleId: s.Identity.UserID, Arn: s.Identity.ARN},
	}
}
