package kubeclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TripsName is the name of the ConfigMap that remembers which workloads' pods were moved, and tripsKey its key: lines of text,
// compressed. The nodes, claims and pods that the lines are about are gone by then, so that it cannot stand on them.
const (
	TripsName = "joiner-moves"
	tripsKey  = "moves.gz"
)

const aboutTrips = "Which workloads' pods Joiner has moved within the last day, so that none is moved too often, also after a restart." +
	" To have it forgotten, delete it and restart Joiner."

// Bounds of what is kept: half of what the API server takes, and how much text is unpacked at most.
const (
	tripsLimit  = 512 << 10
	tripsUnpack = 16 << 20
)

// TripStore keeps lines of text in the ConfigMap TripsName. Every error it returns can be given to WhatNext.
type TripStore struct {
	Live      client.Reader // not the informers: they would hold every ConfigMap of the cluster
	Writer    client.Writer
	Namespace string
}

// ErrTripsUnreadable is that of a ConfigMap that holds something else. Write puts it right.
var ErrTripsUnreadable = errors.New("it holds nothing that can be read")

// Read returns what is kept, nothing at first.
func (s TripStore) Read(ctx context.Context) (string, error) {
	found, err := s.get(ctx)
	if err != nil || len(found.BinaryData[tripsKey]) == 0 {
		return "", err
	}
	packed, err := gzip.NewReader(bytes.NewReader(found.BinaryData[tripsKey]))
	if err != nil {
		return "", fmt.Errorf("read configmap %s/%s: %w: %w", s.Namespace, TripsName, ErrTripsUnreadable, err)
	}
	text, err := io.ReadAll(io.LimitReader(packed, tripsUnpack))
	if err != nil {
		return "", fmt.Errorf("read configmap %s/%s: %w: %w", s.Namespace, TripsName, ErrTripsUnreadable, err)
	}
	return string(text), nil
}

// Write replaces what is kept. Of more than fits, the first lines are left out. If another client wrote meanwhile, nothing is
// written, and WhatNext returns Reread.
func (s TripStore) Write(ctx context.Context, text string) error {
	found, err := s.get(ctx)
	if err != nil {
		return err
	}
	packed, err := pack(text)
	for err == nil && len(packed) > tripsLimit {
		_, text, _ = strings.Cut(text[len(text)/2:], "\n")
		packed, err = pack(text)
	}
	if err != nil {
		return fmt.Errorf("write configmap %s/%s: %w", s.Namespace, TripsName, err)
	}
	found.BinaryData = map[string][]byte{tripsKey: packed}
	if found.ResourceVersion == "" {
		found.Annotations = map[string]string{annotationAbout: aboutTrips}
		err = s.Writer.Create(ctx, found)
	} else {
		err = s.Writer.Update(ctx, found)
	}
	if err != nil {
		return fmt.Errorf("write configmap %s/%s: %w", s.Namespace, TripsName, err)
	}
	return nil
}

func pack(text string) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// get returns the ConfigMap, one without resourceVersion if there is none.
func (s TripStore) get(ctx context.Context) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: TripsName}, found)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: TripsName}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configmap %s/%s: %w", s.Namespace, TripsName, err)
	}
	return found, nil
}
