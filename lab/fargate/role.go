package fargate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/lab/authn"
)

// blockedMessage is the message of Fargate's scheduler for the pods of a profile whose pod execution role cannot join
// the cluster.
const blockedMessage = "Misconfigured Fargate Profile: fargate profile %s blocked for new launches due to: Pod execution role is not found in auth config " +
	"or does not have all required permissions for launching fargate pods."

const sessionLife = time.Hour

// checkRole returns an error if the node with the given name cannot join with a pod execution role. That is the case if
// the role lacks a permission, or if the cluster's authenticator does not map the role to the node's user and
// groups.
func (f *Fargate) checkRole(ctx context.Context, role, node string) error {
	if err := f.checkPermissions(role); err != nil {
		return err
	}
	token, err := f.token(ctx, role, node)
	if err != nil {
		return err
	}
	status := f.Review(ctx, token, time.Now())
	switch {
	case !status.Authenticated:
		return fmt.Errorf("role %s is not authenticated: %s", role, status.Error)
	case status.User.Username != "system:node:"+node:
		return fmt.Errorf("role %s is authenticated as %s", role, status.User.Username)
	}
	for _, group := range []string{"system:nodes", "system:node-proxier"} {
		if !slices.Contains(status.User.Groups, group) {
			return fmt.Errorf("role %s is authenticated without group %s", role, group)
		}
	}
	return nil
}

// checkPermissions returns an error if a role does not exist, does not trust Fargate, or lacks ExecutionPolicy.
func (f *Fargate) checkPermissions(arn string) error {
	var role identity.Role
	var err error
	f.Emulator.Do(func(w *world.World, _ time.Time) { role, err = w.Account(f.Account).Role(nameOf(arn)) })
	switch {
	case err != nil:
		return err
	case role.ARN != arn:
		return fmt.Errorf("role %s does not exist: the role with this name is %s", arn, role.ARN)
	case !trusts(role.TrustPolicy, Service):
		return fmt.Errorf("role %s does not trust %s", arn, Service)
	case !slices.ContainsFunc(role.Policies, func(p string) bool { return strings.HasSuffix(p, ":policy/"+ExecutionPolicy) }):
		return fmt.Errorf("role %s lacks %s", arn, ExecutionPolicy)
	}
	return nil
}

// token creates the token with which a node authenticates. Fargate names the session after the node.
func (f *Fargate) token(ctx context.Context, role, node string) (string, error) {
	var s identity.Session
	var err error
	f.Emulator.Do(func(w *world.World, now time.Time) {
		s, err = w.Account(f.Account).AssumeRole(now, nameOf(role), node, sessionLife)
	})
	if err != nil {
		return "", fmt.Errorf("assume role %s: %w", role, err)
	}
	credentials := aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey, SessionToken: s.Token}
	return authn.Token(ctx, credentials, f.Region, f.Cluster, time.Now())
}

// nameOf returns the name of the role with the given ARN.
func nameOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

type oneOrMany[T any] []T

// UnmarshalJSON accepts one value or a list.
func (s *oneOrMany[T]) UnmarshalJSON(data []byte) error {
	var one T
	if err := json.Unmarshal(data, &one); err == nil {
		*s = oneOrMany[T]{one}
		return nil
	}
	return json.Unmarshal(data, (*[]T)(s))
}

// trusts reports whether a trust policy allows a service to assume the role. It does not evaluate actions and
// conditions. A policy that cannot be parsed allows no service.
func trusts(policy, service string) bool {
	var document struct {
		Statement oneOrMany[struct {
			Effect    string
			Principal struct{ Service oneOrMany[string] }
		}]
	}
	if err := json.Unmarshal([]byte(policy), &document); err != nil {
		return false
	}
	allowed := false
	for _, s := range document.Statement {
		if !slices.Contains(s.Principal.Service, service) {
			continue
		}
		if s.Effect == "Deny" {
			return false
		}
		allowed = true
	}
	return allowed
}
