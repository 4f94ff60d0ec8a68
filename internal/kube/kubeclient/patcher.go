package kubeclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The patch types, named as in kubectl patch --type.
const (
	PatchMerge = "merge"
	PatchJSON  = "json"
)

// Patch is a change of one object, as in kubectl patch.
type Patch struct {
	Group     string // "apps"; empty: any group that has the kind
	Kind      string // in lower case: "nodepool", "configmap"
	Namespace string // empty for a cluster-scoped object
	Name      string // of the object
	Type      string // PatchMerge or PatchJSON
	Text      string // JSON
}

// ShownObject is an object as it is shown to the user.
type ShownObject struct {
	Text string            // YAML, without status and server-side metadata
	Data map[string]string // the field data of a ConfigMap or Secret; nil without such a field
}

// PatchDryRun is the result of a dry run of a patch.
type PatchDryRun struct {
	Before, After ShownObject // the object without and with the patch

	version string // resourceVersion of Before
	kind    schema.GroupVersionKind
}

// Patcher makes changes that a user has requested, with the permissions of that user.
type Patcher struct {
	client client.Client
}

// NewPatcher returns a patcher for a cluster.
func NewPatcher(cfg *rest.Config) (*Patcher, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", cfg.Host, err)
	}
	return &Patcher{client: c}, nil
}

// DryRun makes a server-side dry run of the patch. It fails as the change itself would, for example if the user lacks a
// permission.
func (p *Patcher) DryRun(ctx context.Context, patch Patch) (PatchDryRun, error) {
	var run PatchDryRun
	err := retry.OnError(retry.DefaultBackoff, isChanged, func() (err error) {
		run, err = p.tryOnce(ctx, patch)
		return err
	})
	return run, err
}

// tryOnce is one attempt of DryRun. It fails with a changedError if the object changes between its two requests.
func (p *Patcher) tryOnce(ctx context.Context, patch Patch) (PatchDryRun, error) {
	kind, err := p.client.RESTMapper().KindFor(schema.GroupVersionResource{Group: patch.Group, Resource: patch.Kind})
	if err != nil {
		return PatchDryRun{}, fmt.Errorf("find the kind %s: %w", patch.Kind, err)
	}
	run := PatchDryRun{kind: kind}
	o := run.emptyObject(patch)
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return PatchDryRun{}, patch.explain("get", err)
	}
	run.version = o.GetResourceVersion()
	if run.Before, err = shownOf(o); err != nil {
		return PatchDryRun{}, err
	}
	if err := p.send(ctx, o, patch, run, client.DryRunAll); err != nil {
		return PatchDryRun{}, err
	}
	run.After, err = shownOf(o)
	return run, err
}

// Apply makes the patch of the dry run. If the object has changed since then, Apply repeats the dry run, because a
// controller may write the status of the object at any time. After that it makes the patch only if Before and After are
// still the texts that the user has read.
func (p *Patcher) Apply(ctx context.Context, patch Patch, run PatchDryRun) error {
	latest := run
	return retry.OnError(retry.DefaultBackoff, isChanged, func() error {
		sendErr := p.send(ctx, latest.emptyObject(patch), patch, latest)
		if !isChanged(sendErr) {
			return sendErr
		}
		again, err := p.tryOnce(ctx, patch)
		switch {
		case err != nil:
			return err
		case again.Before.Text != run.Before.Text || again.After.Text != run.After.Text:
			return errors.New(sendErr.Error()) // not a changedError, so that it is not retried
		}
		latest = again
		return sendErr // retried with the new version
	})
}

// emptyObject returns an object with only the dry run's kind, and the patch's namespace and name.
func (run PatchDryRun) emptyObject(patch Patch) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(run.kind)
	o.SetNamespace(patch.Namespace)
	o.SetName(patch.Name)
	return o
}

// send patches the object, if it still has the version of the dry run.
func (p *Patcher) send(ctx context.Context, o *unstructured.Unstructured, patch Patch, run PatchDryRun,
	options ...client.PatchOption) error {
	text, kind, err := patch.pinned(run.version)
	if err != nil {
		return err
	}
	options = append(options, client.FieldOwner("joiner-doctor"))
	return patch.explain("patch", p.client.Patch(ctx, o, client.RawPatch(kind, text), options...))
}

// pinned returns the patch, as JSON, with the condition that the object still has the version.
func (patch Patch) pinned(version string) ([]byte, types.PatchType, error) {
	if patch.Type == PatchJSON {
		var steps []any
		if err := json.Unmarshal([]byte(patch.Text), &steps); err != nil {
			return nil, "", fmt.Errorf("read the patch of %s %s: %w", patch.Kind, patch.Name, err)
		}
		test := map[string]any{"op": "test", "path": "/metadata/resourceVersion", "value": version}
		text, err := json.Marshal(append([]any{test}, steps...))
		return text, types.JSONPatchType, err
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(patch.Text), &fields); err != nil {
		return nil, "", fmt.Errorf("read the patch of %s %s: %w", patch.Kind, patch.Name, err)
	}
	if fields == nil {
		return nil, "", errors.New("the patch is empty")
	}
	meta, _ := fields["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["resourceVersion"] = version
	fields["metadata"] = meta
	text, err := json.Marshal(fields)
	return text, types.MergePatchType, err
}

func (patch Patch) explain(verb string, err error) error {
	object := patch.Kind + " " + patch.Name
	if patch.Namespace != "" {
		object += " in namespace " + patch.Namespace
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("this user is not allowed to %s %s: grant the permission with RBAC, or run this as a user who has it: %w", verb, object, err)
	case apierrors.IsConflict(err), // of a merge patch
		apierrors.IsInvalid(err) && strings.Contains(err.Error(), "/metadata/resourceVersion"): // the test of a JSON patch
		return &changedError{object: object}
	}
	return fmt.Errorf("%s %s: %w", verb, object, err)
}

// changedError is the error of a request that was made for an outdated version of the object.
type changedError struct{ object string }

// Error returns what changed and what to do.
func (e *changedError) Error() string {
	return e.object + " has changed since it was read: run the command again"
}

func isChanged(err error) bool {
	var changed *changedError
	return errors.As(err, &changed)
}

// shownOf returns the object for the user, without the fields that users do not write.
func shownOf(o *unstructured.Unstructured) (ShownObject, error) {
	clean := o.DeepCopy()
	unstructured.RemoveNestedField(clean.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "finalizers"} {
		unstructured.RemoveNestedField(clean.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(clean.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	text, err := yaml.Marshal(clean.Object)
	if err != nil {
		return ShownObject{}, fmt.Errorf("write %s %s as YAML: %w", o.GetKind(), o.GetName(), err)
	}
	data, _, err := unstructured.NestedStringMap(o.Object, "data")
	if err != nil {
		data = nil // the values of data are not strings
	}
	return ShownObject{Text: string(text), Data: data}, nil
}
