package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/joiner-sh/joiner/lab/controlplane"
)

// Apply creates the objects of a manifest with one or more YAML documents.
func (l *Lab) Apply(ctx context.Context, manifest string) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifest)), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if len(object.Object) == 0 {
			continue // the document has only comments
		}
		if err := l.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// Store writes objects directly to etcd, see controlplane.Store.
func (l *Lab) Store(ctx context.Context, objects []controlplane.EtcdObject) error {
	return l.plane.Store(ctx, objects)
}
