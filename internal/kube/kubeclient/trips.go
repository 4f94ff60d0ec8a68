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

// MovesName is the name of the ConfigMap that records the workloads whose pods were moved. movesKey is the key of the
// record: lines of text, compressed. The record is not an annotation of nodes, claims or pods, because these are gone
// when the record is read.
const (
	MovesName = "joiner-moves"
	movesKey  = "moves.gz"
)

const aboutMoves = "Workloads whose pods Joiner has moved within the last day, so that no pod is moved too often, even after a restart." +
	" To reset it, delete this ConfigMap and restart Joiner."

// movesLimit is the maximum size of the stored record, in bytes: half of what the API server accepts. movesTextLimit is
// the maximum number of bytes of text that Read returns; the rest is ignored.
const (
	movesLimit     = 512 << 10
	movesTextLimit = 16 << 20
)

// MoveStore stores lines of text in the ConfigMap MovesName. Every error that it returns can be passed to Classify.
type MoveStore struct {
	Live      client.Reader // reads from the API server: informers would hold every ConfigMap
	Writer    client.Writer // writes to the API server
	Namespace string        // the controller's namespace
}

// ErrMovesUnreadable means that the ConfigMap has unreadable content. Write replaces it.
var ErrMovesUnreadable = errors.New("its content cannot be read")

// Read returns the stored text; empty if the ConfigMap does not exist.
func (s MoveStore) Read(ctx context.Context) (string, error) {
	found, err := s.get(ctx)
	if err != nil || len(found.BinaryData[movesKey]) == 0 {
		return "", err
	}
	packed, err := gzip.NewReader(bytes.NewReader(found.BinaryData[movesKey]))
	if err != nil {
		return "", fmt.Errorf("read configmap %s/%s: %w: %w", s.Namespace, MovesName, ErrMovesUnreadable, err)
	}
	text, err := io.ReadAll(io.LimitReader(packed, movesTextLimit))
	if err != nil {
		return "", fmt.Errorf("read configmap %s/%s: %w: %w", s.Namespace, MovesName, ErrMovesUnreadable, err)
	}
	return string(text), nil
}

// Write replaces the stored text. If the text is too long, its first lines are left out. If another client wrote
// meanwhile, nothing is written, and Classify returns Reread.
func (s MoveStore) Write(ctx context.Context, text string) error {
	found, err := s.get(ctx)
	if err != nil {
		return err
	}
	packed, err := pack(text)
	for err == nil && len(packed) > movesLimit {
		_, text, _ = strings.Cut(text[len(text)/2:], "\n")
		packed, err = pack(text)
	}
	if err != nil {
		return fmt.Errorf("write configmap %s/%s: %w", s.Namespace, MovesName, err)
	}
	found.BinaryData = map[string][]byte{movesKey: packed}
	if found.ResourceVersion == "" {
		found.Annotations = map[string]string{annotationAbout: aboutMoves}
		err = s.Writer.Create(ctx, found)
	} else {
		err = s.Writer.Update(ctx, found)
	}
	if err != nil {
		return fmt.Errorf("write configmap %s/%s: %w", s.Namespace, MovesName, err)
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

// get returns the ConfigMap; if it does not exist, an object without resourceVersion.
func (s MoveStore) get(ctx context.Context) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: MovesName}, found)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: MovesName}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configmap %s/%s: %w", s.Namespace, MovesName, err)
	}
	return found, nil
}
