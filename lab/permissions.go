package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/permissions"
)

// policyScope has the scope from which package permissions derives the policies of the controller's role.
type policyScope struct {
	mu    sync.Mutex
	scope permissions.Scope
}

// permitController reads the cluster's UID and attaches the policies to the controller's role. The emulated IAM
// allows a role without policies all actions, and a role with policies only the actions of its policies.
func (r *Roles) permitController(ctx context.Context) error {
	namespace, err := r.lab.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the cluster's UID: %w", err)
	}
	return r.updateScope(func(s *permissions.Scope) {
		s.Account, s.Region, s.Cluster, s.UID = r.lab.Account, r.lab.Region, r.lab.Cluster, string(namespace.UID)
		s.NodeRoles = append(s.NodeRoles, NodeRole)
	})
}

// updateScope changes the scope of the controller's policies. If the cluster's UID is known, updateScope also replaces
// the attached policies.
func (r *Roles) updateScope(change func(*permissions.Scope)) error {
	r.granted.mu.Lock()
	defer r.granted.mu.Unlock()
	change(&r.granted.scope)
	if r.granted.scope.UID == "" {
		return nil // the cluster is not up yet
	}
	policies, err := r.policies()
	if err != nil {
		return err
	}
	r.lab.Emulator.Do(func(w *world.World, now time.Time) {
		for _, p := range policies {
			if err = attach(w.Account(r.lab.Account), now, r.lab.Role, p); err != nil {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("attach the policies of role %s: %w", r.lab.Role, err)
	}
	return nil
}

// policies returns the policies of the controller's role. For a self-managed cluster (Beside) they omit those for EKS.
// The caller holds the lock of granted.
func (r *Roles) policies() ([]permissions.Policy, error) {
	scope := r.granted.scope
	if r.lab.AnyUID {
		scope.UID = ""
	}
	policies, err := permissions.Policies(scope)
	if err != nil || r.lab.Beside == nil {
		return policies, err
	}
	isOfEKS := func(action string) bool { return strings.HasPrefix(action, "eks:") }
	for i := range policies {
		policies[i].Statements = slices.DeleteFunc(policies[i].Statements,
			func(s permissions.Statement) bool { return slices.ContainsFunc(s.Action, isOfEKS) })
	}
	return policies, nil
}

// attach creates a policy, or replaces the policy with the same name, and attaches it to a role.
func attach(account *world.Account, now time.Time, roleName string, p permissions.Policy) error {
	text, err := p.JSON()
	if err != nil {
		return err
	}
	role, err := account.Role(roleName)
	if err != nil {
		return err
	}
	name := roleName + "-" + p.Name
	old := slices.IndexFunc(role.Policies, func(arn string) bool { return strings.HasSuffix(arn, "/"+name) })
	if old >= 0 {
		if err := account.DetachPolicy(roleName, role.Policies[old]); err != nil {
			return err
		}
		if err := account.DeletePolicy(role.Policies[old]); err != nil {
			return err
		}
	}
	created, err := account.CreatePolicy(now, identity.Policy{Name: name, Document: string(text)})
	if err != nil {
		return err
	}
	return account.AttachPolicy(roleName, created.ARN)
}

// permitSettings allows the controller to use its interruption queue, if the settings name one.
func (r *Roles) permitSettings(settings []string) error {
	for _, setting := range settings {
		if queue, ok := strings.CutPrefix(setting, "INTERRUPTION_QUEUE="); ok {
			return r.updateScope(func(s *permissions.Scope) { s.Queue = queue })
		}
	}
	return nil
}

// AllowedActions returns the actions that the controller's policies allow, sorted.
func (r *Roles) AllowedActions() ([]string, error) {
	r.granted.mu.Lock()
	defer r.granted.mu.Unlock()
	policies, err := r.policies()
	if err != nil {
		return nil, err
	}
	return permissions.Actions(policies), nil
}
