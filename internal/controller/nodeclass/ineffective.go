package nodeclass

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// IneffectiveFieldWarner reports fields that are accepted but have no effect. When the controller starts, or an object
// starts to use such fields, it writes one log line per field, and one event on the object.
type IneffectiveFieldWarner struct {
	Cache client.Reader // reads objects from the informers
	Gates Gates         // enabled feature gates
	// SkipOverlays is true if NodeOverlays cannot be watched; they are not checked then.
	SkipOverlays bool
	Events       loop.EventRecorder // emits events
	Log          *slog.Logger       // the log of this process

	mu     sync.Mutex
	logged map[reportedField]bool // fields that were reported and are still in use
}

// Gates are the feature gates.
type Gates struct {
	Overlays     bool // NodeOverlays are applied
	Reservations bool // capacity reservations are used
	Statics      bool // NodePools with spec.replicas are kept at that size
}

// ofPool returns the fields of a NodePool that have no effect because their feature gate is off.
func (g Gates) ofPool(pool *karpv1.NodePool) []ineffectiveField {
	if pool.Spec.Replicas == nil || g.Statics {
		return nil
	}
	return []ineffectiveField{{"spec.replicas", "no node is launched for this NodePool: the feature gate StaticCapacity is off"}}
}

// ofClass returns the fields of an EC2NodeClass that have no effect because their feature gate is off.
func (g Gates) ofClass(class *awsv1.EC2NodeClass) []ineffectiveField {
	if len(class.Spec.CapacityReservationSelectorTerms) == 0 || g.Reservations {
		return nil
	}
	return []ineffectiveField{{"spec.capacityReservationSelectorTerms",
		"capacity reservations are not used: the feature gate ReservedCapacity is off"}}
}

// ofOverlay returns the fields of a NodeOverlay that have no effect because their feature gate is off.
func (g Gates) ofOverlay() []ineffectiveField {
	if g.Overlays {
		return nil
	}
	return []ineffectiveField{{"spec", "prices and sizes are those of AWS: the feature gate NodeOverlay is off"}}
}

type ineffectiveField struct {
	field   string // a path such as spec.replicas; several paths are separated by commas
	instead string // what happens instead of the effect
}

type reportedField struct {
	uid     types.UID
	field   string
	instead string
}

// Pool reports the fields of a NodePool that have no effect.
func (h *IneffectiveFieldWarner) Pool(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool := &karpv1.NodePool{}
	if ok, err := h.read(ctx, request, pool); !ok {
		return reconcile.Result{}, err
	}
	if nodestate.IsServed(pool.Spec.Template.Spec.NodeClassRef) {
		h.report(pool, "NodePool", h.Gates.ofPool(pool))
	}
	return reconcile.Result{}, nil
}

// Class reports the fields of an EC2NodeClass that have no effect.
func (h *IneffectiveFieldWarner) Class(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &awsv1.EC2NodeClass{}
	if ok, err := h.read(ctx, request, class); !ok {
		return reconcile.Result{}, err
	}
	h.report(class, awsv1.Kind, h.Gates.ofClass(class))
	return reconcile.Result{}, nil
}

// Overlay reports the fields of a NodeOverlay that have no effect.
func (h *IneffectiveFieldWarner) Overlay(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	overlay := &karpv1alpha1.NodeOverlay{}
	if ok, err := h.read(ctx, request, overlay); !ok {
		return reconcile.Result{}, err
	}
	h.report(overlay, "NodeOverlay", h.Gates.ofOverlay())
	return reconcile.Result{}, nil
}

// Claim reports the fields of a NodeClaim that have no effect.
func (h *IneffectiveFieldWarner) Claim(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &karpv1.NodeClaim{}
	if ok, err := h.read(ctx, request, claim); !ok {
		return reconcile.Result{}, err
	}
	if nodestate.IsServed(claim.Spec.NodeClassRef) {
		h.report(claim, "NodeClaim", ineffectiveClaimFields(claim))
	}
	return reconcile.Result{}, nil
}

// read reads the object. It reports whether the object exists and is not being deleted.
func (h *IneffectiveFieldWarner) read(ctx context.Context, request reconcile.Request, into client.Object) (bool, error) {
	err := h.Cache.Get(ctx, request.NamespacedName, into)
	return err == nil && into.GetDeletionTimestamp() == nil, client.IgnoreNotFound(err)
}

// report logs and emits each field of an object once, and again only if the object stopped using the field in between.
func (h *IneffectiveFieldWarner) report(object client.Object, kind string, fields []ineffectiveField) {
	uid := object.GetUID()
	h.mu.Lock()
	for known := range h.logged {
		if known.uid == uid && !contains(fields, known) {
			delete(h.logged, known)
		}
	}
	h.mu.Unlock()
	var messages []string // all in one event, because the API server merges events with the same reason, and keeps the first text
	for _, f := range fields {
		if h.logOnce(uid, kind+" "+object.GetName(), f) {
			messages = append(messages, f.field+" has no effect: "+f.instead)
		}
	}
	if len(messages) > 0 {
		h.Events.Emit(object, kubeclient.ReasonNotHonoured, strings.Join(messages, "; "))
	}
}

func contains(fields []ineffectiveField, known reportedField) bool {
	for _, f := range fields {
		if f.field == known.field && f.instead == known.instead {
			return true
		}
	}
	return false
}

// logOnce logs a field of the named object if it was not reported before, and returns whether it logged the field.
func (h *IneffectiveFieldWarner) logOnce(uid types.UID, name string, f ineffectiveField) bool {
	h.mu.Lock()
	key := reportedField{uid, f.field, f.instead}
	wasLogged := h.logged[key]
	if h.logged == nil {
		h.logged = map[reportedField]bool{}
	}
	h.logged[key] = true
	h.mu.Unlock()
	if !wasLogged {
		h.Log.Warn("this field has no effect", "object", name, "field", f.field, "instead", f.instead)
	}
	return !wasLogged
}
