package kubeclient

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestTripsAreKept(t *testing.T) {
	t.Parallel()
	api := fake.NewClientBuilder().Build()
	store := MoveStore{Live: api, Writer: api, Namespace: "kube-system"}
	if text, err := store.Read(t.Context()); text != "" || err != nil {
		t.Fatalf("without a ConfigMap, Read returns %q, %v; want no text", text, err)
	}
	for _, text := range []string{"one\ntwo\n", "two\nthree\n", ""} {
		if err := store.Write(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Read(t.Context()); got != text || err != nil {
			t.Errorf("%q is read as %q, %v; want the same text", text, got, err)
		}
	}
}

// TestTripsFit: if the text exceeds the limit, Write leaves out its first lines, always whole lines.
func TestTripsFit(t *testing.T) {
	t.Parallel()
	api := fake.NewClientBuilder().Build()
	store := MoveStore{Live: api, Writer: api, Namespace: "kube-system"}
	var b strings.Builder
	for i := range 60_000 {
		h := fnv.New64a()
		fmt.Fprint(h, i)
		fmt.Fprintf(&b, "line %d %x\n", i, h.Sum64()) // hardly compressible
	}
	if err := store.Write(t.Context(), b.String()); err != nil {
		t.Fatal(err)
	}
	var found corev1.ConfigMap
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: MovesName}, &found); err != nil {
		t.Fatal(err)
	}
	// Write halves the text until it fits, so about half of the limit is used, or more.
	if n := len(found.BinaryData[movesKey]); n > movesLimit || n < movesLimit/3 {
		t.Errorf("%d bytes are stored, want between %d and %d", n, movesLimit/3, movesLimit)
	}
	text, err := store.Read(t.Context())
	if err != nil || !strings.HasPrefix(text, "line ") || !strings.HasSuffix(b.String(), text) {
		t.Errorf("the stored text is not the end of the written text: %.80q, %v", text, err)
	}
}

func TestTripsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := &corev1.ConfigMap{BinaryData: map[string][]byte{movesKey: []byte("nonsense")}}
	broken.Namespace, broken.Name = "kube-system", MovesName
	api := fake.NewClientBuilder().WithObjects(broken).Build()
	store := MoveStore{Live: api, Writer: api, Namespace: "kube-system"}
	if _, err := store.Read(t.Context()); !errors.Is(err, ErrMovesUnreadable) ||
		!strings.Contains(err.Error(), "configmap kube-system/joiner-moves") {
		t.Errorf("unreadable content gives the error %v, want ErrMovesUnreadable", err)
	}
	if err := store.Write(t.Context(), "one\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := store.Read(t.Context()); text != "one\n" || err != nil {
		t.Errorf("Read returns %q, %v; want the text that replaced the unreadable content", text, err)
	}
}
