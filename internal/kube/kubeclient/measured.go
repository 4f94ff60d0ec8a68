package kubeclient

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// MeasuredName is the name of the ConfigMap that holds what nodes turned out to
// have: a key for each image, a line for each instance type. See
// catalog.Measurements.Encode.
const MeasuredName = "joiner-measured-capacity"

// annotationAbout describes the purpose of an object.
const annotationAbout = "joiner.sh/about"

const aboutMeasured = "Memory, disk and pods that nodes turned out to have, by image and instance type. Joiner plans with it." +
	" To have all of it measured anew, delete it and restart Joiner."

// measuredLimit is how many bytes of measurements are kept: half of the
// mebibyte that the API server takes, enough for some six thousand lines.
const measuredLimit = 512 << 10

// MeasuredStore keeps measurements in the ConfigMap MeasuredName. Every error it
// returns can be given to WhatNext.
type MeasuredStore struct {
	Live      client.Reader // not the informers: they would hold every ConfigMap of the cluster
	Writer    client.Writer
	Namespace string
}

// Read returns what is kept, nothing at first. Where the error names lines that
// cannot be read, the measurements are those of the other lines; they are nil
// only when nothing could be read at all.
func (s MeasuredStore) Read(ctx context.Context) (catalog.Measurements, error) {
	found, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := catalog.DecodeMeasurements(found.Data)
	if err != nil {
		err = fmt.Errorf("read configmap %s/%s: %w", s.Namespace, MeasuredName, err)
	}
	return kept, err
}

// Write adds the measurements to what is kept, drops what no node has said since
// the day, and returns all of it. Lines that cannot be read are dropped too. If
// another client wrote meanwhile, nothing is written, and WhatNext returns Reread.
func (s MeasuredStore) Write(ctx context.Context, m catalog.Measurements, since catalog.Day) (catalog.Measurements, error) {
	found, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	kept, _ := catalog.DecodeMeasurements(found.Data) // Read has reported the errors
	kept = kept.Merge(m)
	kept.Forget(since)
	data := kept.Encode(measuredLimit)
	switch {
	case found.ResourceVersion == "":
		found.Annotations = map[string]string{annotationAbout: aboutMeasured}
		found.Data = data
		err = s.Writer.Create(ctx, found)
	case !maps.Equal(data, found.Data):
		found.Data = data
		err = s.Writer.Update(ctx, found)
	}
	if err != nil {
		return nil, fmt.Errorf("write configmap %s/%s: %w", s.Namespace, MeasuredName, err)
	}
	return kept, nil
}

// get returns the ConfigMap, one without resourceVersion if there is none.
func (s MeasuredStore) get(ctx context.Context) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: MeasuredName}, found)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: MeasuredName}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configmap %s/%s: %w", s.Namespace, MeasuredName, err)
	}
	return found, nil
}
