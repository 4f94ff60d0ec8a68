package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Deletion is the deletion of one object that a user has requested.
type Deletion struct {
	Kind string // in lower case: "nodeclaim"
	Name string // of the object

	// ProviderID and Joined are set only for a NodeClaim.
	ProviderID string // status.providerID
	Joined     bool   // the condition Registered is true

	uid     types.UID
	version string // metadata.resourceVersion
	gvk     schema.GroupVersionKind
}

// DryRunDelete makes a server-side dry run of the deletion. found is false if the object does not exist.
func (p *Patcher) DryRunDelete(ctx context.Context, kind, name string) (d Deletion, found bool, err error) {
	err = retry.OnError(retry.DefaultBackoff, isChanged, func() error {
		d, found, err = p.tryDeleteOnce(ctx, kind, name)
		return err
	})
	return d, found, err
}

// tryDeleteOnce is one attempt of DryRunDelete. It fails with a changedError if the object changes between its two
// requests.
func (p *Patcher) tryDeleteOnce(ctx context.Context, kind, name string) (d Deletion, found bool, err error) {
	d = Deletion{Kind: kind, Name: name}
	if d.gvk, err = p.client.RESTMapper().KindFor(schema.GroupVersionResource{Resource: kind}); err != nil {
		return d, false, fmt.Errorf("find the kind %s: %w", kind, err)
	}
	o := PatchDryRun{kind: d.gvk}.emptyObject(Patch{Name: name})
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) {
		return d, false, nil
	} else if err != nil {
		return d, false, Patch{Kind: kind, Name: name}.explain("get", err)
	}
	d.uid, d.version = o.GetUID(), o.GetResourceVersion()
	d.ProviderID, d.Joined = claimStatus(o)
	return d, true, p.delete(ctx, d, client.DryRunAll)
}

// claimStatus returns two fields from the status of a NodeClaim; zero values for an object of another kind.
func claimStatus(o *unstructured.Unstructured) (providerID string, isJoined bool) {
	providerID, _, err := unstructured.NestedString(o.Object, "status", "providerID")
	if err != nil {
		return "", false
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return providerID, false
	}
	return providerID, slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == karpv1.ConditionRegistered && condition["status"] == string(metav1.ConditionTrue)
	})
}

// Delete makes the deletion that DryRunDelete returned. It returns nil if the object is already gone. If the object has
// changed since the dry run, Delete continues only if UID, ProviderID and Joined are unchanged. Other changes are
// accepted, because a controller may write the status at any time.
func (p *Patcher) Delete(ctx context.Context, d Deletion) error {
	latest := d
	return retry.OnError(retry.DefaultBackoff, isChanged, func() error {
		deleteErr := p.delete(ctx, latest)
		if !isChanged(deleteErr) {
			return deleteErr
		}
		again, found, err := p.tryDeleteOnce(ctx, d.Kind, d.Name)
		switch {
		case err != nil || !found:
			return err
		case again.uid != d.uid || again.ProviderID != d.ProviderID || again.Joined != d.Joined:
			return errors.New(deleteErr.Error()) // not a changedError, so that it is not retried
		}
		latest = again
		return deleteErr
	})
}

// delete deletes the object if it still has the UID and the version in d. An object that is already gone is not an
// error.
func (p *Patcher) delete(ctx context.Context, d Deletion, options ...client.DeleteOption) error {
	o := PatchDryRun{kind: d.gvk}.emptyObject(Patch{Name: d.Name})
	err := p.client.Delete(ctx, o, append(options, client.Preconditions{UID: &d.uid, ResourceVersion: &d.version})...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return Patch{Kind: d.Kind, Name: d.Name}.explain("delete", err)
}
