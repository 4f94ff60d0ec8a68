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

// lacks has what the controller cannot do because of missing optional permissions.
type lacks struct {
	overlays bool // NodeOverlays cannot be watched
	events   bool // no event can be written
}

// recorder returns the manager's event recorder. Without permission to write events it returns a silent one, because
// the manager's would log an error for each event.
func (l lacks) recorder(m ctrl.Manager) events.EventRecorder {
	if l.events {
		return silent{}
	}
	return m.GetEventRecorder("joiner")
}

// silent is an event recorder that does nothing.
type silent struct{}

// Eventf does nothing.
func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// request is one permission that the controller needs, in one namespace.
type request struct {
	permissions.Request

	namespace string           // empty: cluster-wide
	rule      permissions.Rule // the rule that needs the permission
}

// String returns the permission as text: "patch nodeclaims/status.karpenter.sh", with name and namespace if it has
// them.
func (r request) String() string {
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

// Number of checks while required permissions are missing, and the pause between them: new roles and bindings become
// effective after a delay.
const (
	rightsTries = 3
	rightsPause = 2 * time.Second
)

// checkRights checks that the API server allows what the controller needs. It returns an error if required permissions
// are missing. If only optional permissions are missing, it sets h.lacks and logs what the controller does not do. If
// the permissions cannot be read, checkRights logs a warning and returns nil.
func (h *home) checkRights(ctx context.Context, settings config.Settings, log *slog.Logger) error {
	reviews, err := authorizationclient.NewForConfig(h.config)
	if err != nil {
		return fmt.Errorf("reach the API server %s: %w", h.config.Host, err)
	}
	wanted := wantedRights(settings)
	for try := 1; ; try++ {
		var missing []request
		err := insist(ctx, log, "read the permissions of the controller", sortKube, func(ctx context.Context) error {
			missing, err = lacking(ctx, reviews.SelfSubjectAccessReviews(), wanted)
			return err
		})
		if kubeclient.IsForbidden(err) { // the calls that lack a permission will report it
			log.Warn("cannot read the permissions of the controller from the API server", "error", err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		refused := refusal(missing, settings)
		if refused == nil {
			h.lacks = logLacks(missing, log)
			return nil
		}
		if try == rightsTries {
			return refused
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting for the controller's roles", context.Cause(ctx))
		case <-time.After(rightsPause):
		}
	}
}

// wantedRights returns the permissions that the controller uses with the settings, one for each verb, resource and
// name.
func wantedRights(settings config.Settings) []request {
	var out []request
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
					out = append(out, request{
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

// isWanted reports whether the controller uses the rule with the settings, and startup checks it.
func isWanted(rule permissions.Rule, settings config.Settings) bool {
	if slices.Contains(rule.Resources, "leases") {
		return settings.LeaderElection
	}
	switch rule.When {
	case permissions.WhenOverlays:
		return settings.NodeOverlays
	case permissions.WhenScheduler:
		return settings.SchedulerConfig != ""
	case permissions.WhenCRDs: // kinds.complete reports missing permissions for CRDs
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

// lacking checks each permission with the API server, and returns the missing ones.
func lacking(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface, wanted []request) ([]request, error) {
	var out []request
	for _, r := range wanted {
		resource, sub, _ := strings.Cut(r.Resource, "/")
		review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: sub, Name: r.Name, Namespace: r.namespace,
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

// refusal returns an error about missing required permissions; nil if only optional ones are missing. Permissions for
// NodeOverlays are required if the settings enable them.
func refusal(missing []request, settings config.Settings) error {
	var required []string
	for _, r := range missing {
		if r.rule.Without == "" || settings.NodeOverlays && r.Resource == "nodeoverlays" {
			required = append(required, r.String())
		}
	}
	if len(required) == 0 {
		return nil
	}
	return fmt.Errorf("the controller's service account is not allowed to %s; give it the chart's roles (rbac.create=true), or their rules to your own: helm template shows them",
		strings.Join(required, ", "))
}

// logLacks logs what the controller does not do because of missing optional permissions: one line for adjacent
// permissions with the same consequence.
func logLacks(missing []request, log *slog.Logger) lacks {
	var out lacks
	for i := 0; i < len(missing); {
		without, names := missing[i].rule.Without, []string(nil)
		for ; i < len(missing) && missing[i].rule.Without == without; i++ {
			names = append(names, missing[i].String())
			out.overlays = out.overlays || missing[i].Resource == "nodeoverlays"
			out.events = out.events || missing[i].Resource == "events"
		}
		log.Warn(without, "cause", "the controller's service account is not allowed to "+strings.Join(names, ", "),
			"hint", "give it the chart's roles (rbac.create=true), or their rules to your own")
	}
	return out
}
