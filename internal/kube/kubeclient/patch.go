package kubeclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// object is a pointer to an API object that can copy itself.
type object[T any] interface {
	client.Object
	DeepCopy() T
}

// PatchObject applies change to a copy of old and sends the difference: changes of status to the status subresource,
// other changes to the object. It returns the object as last received.
func PatchObject[T object[T]](ctx context.Context, c client.Client, old T, change func(T)) (T, error) {
	wanted := old.DeepCopy()
	change(wanted)
	body, status, err := difference(old, wanted)
	if err != nil {
		return old, fmt.Errorf("patch %s %s: %w", KindOf(old), old.GetName(), err)
	}
	current := old.DeepCopy()
	if body != nil {
		if err := c.Patch(ctx, current, mergePatch(body, current)); err != nil {
			return old, fmt.Errorf("patch %s %s: %w", KindOf(old), old.GetName(), err)
		}
	}
	if status != nil {
		// This patch is for the version that the patch above returned, so that patch does not cause a conflict.
		body := map[string]any{"status": status}
		if err := c.Status().Patch(ctx, current, mergePatch(body, current)); err != nil {
			return current, fmt.Errorf("patch status of %s %s: %w", KindOf(old), old.GetName(), err)
		}
	}
	return current, nil
}

// difference returns the JSON merge patch from old to wanted in two parts; a part is nil if it has no difference.
func difference(old, wanted client.Object) (body map[string]any, status any, err error) {
	data, err := client.MergeFrom(old).Data(wanted)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, nil, err
	}
	status = body["status"]
	delete(body, "status")
	if len(body) == 0 {
		body = nil
	}
	return body, status, nil
}

// mergePatch returns body as a merge patch. If body replaces a list, or an annotation that holds a record, the patch
// succeeds only for the version of current. A merge patch writes each list and record as a whole, so without this lock
// it would undo concurrent changes. Other patches have no such lock, because kubelets write Nodes often. mergePatch may
// change body.
func mergePatch(body map[string]any, current client.Object) client.Patch {
	if hasList(body) || hasRecord(body) {
		metadata, ok := body["metadata"].(map[string]any)
		if !ok {
			metadata = map[string]any{}
			body["metadata"] = metadata
		}
		metadata["resourceVersion"] = current.GetResourceVersion()
	}
	data, err := json.Marshal(body)
	if err != nil { // cannot happen: body was decoded from JSON
		data = nil
	}
	return client.RawPatch(types.MergePatchType, data)
}

func hasList(value any) bool {
	switch v := value.(type) {
	case []any:
		return true
	case map[string]any:
		for _, inner := range v {
			if hasList(inner) {
				return true
			}
		}
	}
	return false
}

// KindOf returns the object's kind in lower case for messages. Objects from typed clients do not carry their kind.
func KindOf(object client.Object) string {
	name := fmt.Sprintf("%T", object)
	return strings.ToLower(name[strings.LastIndex(name, ".")+1:])
}
