package kubeclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// PauseName is the name of the ConfigMap, in the controller's namespace, that can pause all NodePools. pauseKey is the
// key in this ConfigMap; its value is "true", "false", or the end of the pause in RFC 3339.
const (
	PauseName = "joiner"
	pauseKey  = "paused"
)

const aboutPause = "While the key \"paused\" is \"true\" or a future time (RFC 3339), Joiner does not disrupt nodes voluntarily."

// PauseSwitch reads and writes the ConfigMap PauseName. Every error it returns can be passed to Classify.
type PauseSwitch struct {
	Live      client.Reader // reads from the API server, because informers would hold every ConfigMap of the cluster
	Writer    client.Writer // writes to the API server; nil if Write is not used
	Namespace string        // the controller's namespace
}

// String is "ConfigMap kube-system/joiner".
func (s PauseSwitch) String() string { return "ConfigMap " + s.Namespace + "/" + PauseName }

// Read returns the value of the switch; "false" if the ConfigMap or its key does not exist.
func (s PauseSwitch) Read(ctx context.Context) (string, error) {
	found, err := s.get(ctx)
	if err != nil {
		return "", err
	}
	if value, ok := found.Data[pauseKey]; ok {
		return value, nil
	}
	return "false", nil
}

// Write sets the switch. If another client wrote meanwhile, nothing is written, and Classify returns Reread.
func (s PauseSwitch) Write(ctx context.Context, value string) error {
	found, err := s.get(ctx)
	if err != nil {
		return err
	}
	if found.Data == nil {
		found.Data = map[string]string{}
	}
	found.Data[pauseKey] = value
	if found.ResourceVersion == "" {
		found.Annotations = map[string]string{annotationAbout: aboutPause}
		err = s.Writer.Create(ctx, found)
	} else {
		err = s.Writer.Update(ctx, found)
	}
	if err != nil {
		return fmt.Errorf("write configmap %s/%s: %w", s.Namespace, PauseName, err)
	}
	return nil
}

// get returns the ConfigMap; if it does not exist, an object without resourceVersion.
func (s PauseSwitch) get(ctx context.Context) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: PauseName}, found)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: PauseName}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configmap %s/%s: %w", s.Namespace, PauseName, err)
	}
	return found, nil
}

// SetPoolPause writes the annotation that pauses one NodePool; an empty value removes the annotation. It returns the
// previous value, and whether the annotation has changed.
func SetPoolPause(ctx context.Context, api client.Client, pool, value string) (previous string, changed bool, err error) {
	found := &karpv1.NodePool{}
	if err := api.Get(ctx, client.ObjectKey{Name: pool}, found); err != nil {
		return "", false, fmt.Errorf("read nodepool %s: %w", pool, err)
	}
	original := found.DeepCopy()
	previous, ok := found.Annotations[karpv1.AnnotationPaused]
	if ok == (value != "") && previous == value {
		return previous, false, nil
	}
	if value == "" {
		delete(found.Annotations, karpv1.AnnotationPaused)
	} else {
		if found.Annotations == nil {
			found.Annotations = map[string]string{}
		}
		found.Annotations[karpv1.AnnotationPaused] = value
	}
	if err := api.Patch(ctx, found, client.MergeFrom(original)); err != nil {
		return previous, false, fmt.Errorf("write nodepool %s: %w", pool, err)
	}
	return previous, true, nil
}
