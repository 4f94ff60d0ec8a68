package emulator

import (
	"strings"
	"time"

	"github.com/joiner-sh/joiner/world"
)

// stsActions returns the actions of STS.
func stsActions() map[string]action {
	return map[string]action{
		"GetCallerIdentity":         op(getCallerIdentity),
		"AssumeRole":                op(assumeRole),
		"AssumeRoleWithWebIdentity": op(assumeRole),
	}
}

type callerIdentityOut struct {
	Arn     string
	UserId  string
	Account string
}

// getCallerIdentity says who calls. It is what the tokens of EKS are made of.
func getCallerIdentity(c *call, _ *none) (callerIdentityOut, error) {
	return callerIdentityOut{Arn: c.caller.ARN, UserId: c.caller.UserID, Account: c.caller.Account}, nil
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

// assumeRole opens a session of a role. Neither its trust policy nor a web
// identity token is looked at: the world says who may not, as a denial.
func assumeRole(c *call, in *assumeRoleIn) (assumeRoleOut, error) {
	parts := strings.SplitN(in.RoleArn, ":", 6)
	if len(parts) != 6 || !strings.HasPrefix(parts[5], "role/") {
		return assumeRoleOut{}, &world.Error{Code: "ValidationError", Message: in.RoleArn + " is invalid"}
	}
	if in.RoleSessionName == "" {
		return assumeRoleOut{}, required("roleSessionName")
	}
	life := time.Hour
	if in.DurationSeconds != 0 {
		life = time.Duration(in.DurationSeconds) * time.Second
	}
	if life < 15*time.Minute || life > 12*time.Hour {
		return assumeRoleOut{}, &world.Error{Code: "ValidationError", Message: "The requested DurationSeconds must be between 900 and 43200."}
	}
	name := parts[5][strings.LastIndexByte(parts[5], '/')+1:]
	s, err := c.world.Account(parts[4]).AssumeRole(c.now, name, in.RoleSessionName, life)
	if err != nil {
		return assumeRoleOut{}, err
	}
	return assumeRoleOut{
		Credentials:     credentials{AccessKeyId: s.AccessKey, SecretAccessKey: s.SecretKey, SessionToken: s.Token, Expiration: timeOf(s.Expires)},
		AssumedRoleUser: assumedRoleUser{AssumedRoleId: s.Identity.UserID, Arn: s.Identity.ARN},
	}, nil
}
