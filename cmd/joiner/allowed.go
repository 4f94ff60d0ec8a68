package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/permissions"
)

// missingPermissions has the consequences of missing optional permissions; see logMissing.
type missingPermissions struct {
	overlays bool // NodeOverlays cannot be watched
	events   bool // no event can be written
}

// recorder returns the manager's event recorder. Without permission to write events, it returns a silentRecorder,
// because the manager's recorder would log an error for each event.
func (p missingPermissions) recorder(m ctrl.Manager) events.EventRecorder {
	if p.events {
		return silentRecorder{}
	}
	return m.GetEventRecorder("joiner")
}

type silentRecorder struct{}

// Eventf does nothing.
func (silentRecorder) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// permission is one permission that the controller needs, in one namespace or in the whole cluster.
type permission struct {
	permissions.Request

	namespace string           // empty: cluster-wide
	rule      permissions.Rule // the rule that needs the permission
}

// String returns the permission as text, for example "patch nodeclaims/status.karpenter.sh". The name and the namespace
// follow if they are set.
func (r permission) String() string {
	out := r.Verb + " " + r.Resource
	if r.Group != "" {
		out += "." + r.Group
	}
	if r.Name != "" {
		out += " " + r.Name
	}
	if r.namespace != "" {
		out += " in " + r.namespace
	}
	return out
}

// permissionTries is how often checkPermissions checks missing required permissions, and permissionPause is the time
// between two checks. New roles and bindings become effective after a delay.
const (
	permissionTries = 3
	permissionPause = 2 * time.Second
)

// checkPermissions checks that the API server allows what the controller needs. It returns an error if required
// permissions are missing. If only optional permissions are missing, it sets k.missing and logs what the controller
// does not do. If the API server forbids reading the permissions, checkPermissions logs a warning and returns nil.
func (k *kubeSide) checkPermissions(ctx context.Context, settings config.Settings, log *slog.Logger) error {
	reviews, err := authorizationclient.NewForConfig(k.config)
	if err != nil {
		return fmt.Errorf("reach the API server %s: %w", k.config.Host, err)
	}
	wanted := wantedPermissions(settings)
	for try := 1; ; try++ {
		var missing []permission
		err := retry(ctx, log, "read the permissions of the controller", judgeKube, func(ctx context.Context) error {
			missing, err = findMissing(ctx, reviews.SelfSubjectAccessReviews(), wanted)
			return err
		})
		if kubeclient.IsForbidden(err) { // later, each call without permission returns its own error
			log.Warn("cannot read the permissions of the controller from the API server", "error", err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		requiredErr := requiredError(missing, settings)
		if requiredErr == nil {
			k.missing = logMissing(missing, log)
			return nil
		}
		if try == permissionTries {
			return requiredErr
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting for the controller's roles", context.Cause(ctx))
		case <-time.After(permissionPause):
		}
	}
}

// wantedPermissions returns the permissions that the controller uses with the settings, one for each verb, resource and
// name.
func wantedPermissions(settings config.Settings) []permission {
	var out []permission
	for _, rule := range permissions.Rules() {
		if !isWanted(rule, settings) {
			continue
		}
		names := rule.Names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range rule.Resources {
			for _, name := range names {
				for _, verb := range rule.Verbs {
					if name == permissions.LeaseName {
						name = settings.LeaderElectionName
					}
					out = append(out, permission{
						Request:   permissions.Request{Verb: verb, Group: rule.Group, Resource: resource, Name: name, Where: rule.Where},
						namespace: namespaceOf(rule, settings),
						rule:      rule,
					})
				}
			}
		}
	}
	return out
}

// isWanted reports whether checkPermissions checks the rule. It skips rules that the controller does not use with the
// settings, and rules that another function checks.
func isWanted(rule permissions.Rule, settings config.Settings) bool {
	if slices.Contains(rule.Resources, "leases") {
		return settings.LeaderElection
	}
	switch rule.When {
	case permissions.WhenOverlays:
		return settings.NodeOverlays
	case permissions.WhenScheduler:
		return settings.SchedulerConfig != ""
	case permissions.WhenCRDs: // crdInstaller.applyMissing reports missing permissions for CRDs
		return false
	}
	return true
}

// namespaceOf returns the namespace in which the rule applies; empty: all.
func namespaceOf(rule permissions.Rule, settings config.Settings) string {
	switch rule.Where {
	case permissions.Own:
		return leaseNamespace(settings)
	case permissions.System:
		return metav1.NamespaceSystem
	case permissions.Cluster:
	}
	return ""
}

func findMissing(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface, wanted []permission) (
	[]permission, error) {
	var out []permission
	for _, r := range wanted {
		resource, subresource, _ := strings.Cut(r.Resource, "/")
		review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: subresource, Name: r.Name, Namespace: r.namespace,
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if !review.Status.Allowed {
			out = append(out, r)
		}
	}
	return out, nil
}

// requiredError returns an error about missing required permissions; nil if only optional ones are missing. A rule with
// a text in Without is optional. Permissions for NodeOverlays are required if the settings enable NodeOverlays.
func requiredError(missing []permission, settings config.Settings) error {
	var required []string
	for _, r := range missing {
		if r.rule.Without == "" || settings.NodeOverlays && r.Resource == "nodeoverlays" {
			required = append(required, r.String())
		}
	}
	if len(required) == 0 {
		return nil
	}
	return fmt.Errorf("the controller's service account is not allowed to %s; give it the chart's roles (rbac.create=true), or add the rules of these roles to your own roles: helm template shows them",
		strings.Join(required, ", "))
}

// logMissing logs what the controller does not do because of missing optional permissions: one line for adjacent
// permissions with the same consequence. It returns these consequences.
func logMissing(missing []permission, log *slog.Logger) missingPermissions {
	var out missingPermissions
	for i := 0; i < len(missing); {
		without, names := missing[i].rule.Without, []string(nil)
		for ; i < len(missing) && missing[i].rule.Without == without; i++ {
			names = append(names, missing[i].String())
			out.overlays = out.overlays || missing[i].Resource == "nodeoverlays"
			out.events = out.events || missing[i].Resource == "events"
		}
		log.Warn(without, "cause", "the controller's service account is not allowed to "+strings.Join(names, ", "),
			"hint", "give it the chart's roles (rbac.create=true), or add the rules of these roles to your own roles")
	}
	return out
}
