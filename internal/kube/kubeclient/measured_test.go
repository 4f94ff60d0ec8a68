package kubeclient

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

func measured(image, typ string, memory int64, seen catalog.Day) catalog.Measurements {
	return catalog.Measurements{{Image: image, Type: typ}: {Memory: memory, Seen: seen}}
}

// TestMeasuredStore: Write merges new measurements with the stored ones, and updates the ConfigMap only if its data
// changes.
func TestMeasuredStore(t *testing.T) {
	t.Parallel()
	updates := 0
	c := fakeServer(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object,
		opts ...client.UpdateOption) error {
		updates++
		return c.Update(ctx, o, opts...)
	}})
	store := MeasuredStore{Live: c, Writer: c, Namespace: "kube-system"}
	if kept, err := store.Read(t.Context()); err != nil || kept == nil || len(kept) > 0 {
		t.Fatalf("without a ConfigMap, Read returns %v, %v; want empty measurements", kept, err)
	}
	// Of two measurements, the least memory and the latest day are kept.
	for i, step := range []struct {
		add     catalog.Measurements
		since   catalog.Day // earlier measurements are dropped
		want    catalog.Measurements
		updates int // so far
	}{
		{measured("ami-1", "m5.large", 100, 20), 0, measured("ami-1", "m5.large", 100, 20), 0}, // created
		{measured("ami-1", "m5.large", 200, 20), 0, measured("ami-1", "m5.large", 100, 20), 0},
		{measured("ami-1", "m5.large", 90, 10), 0, measured("ami-1", "m5.large", 90, 20), 1},
		{measured("ami-2", "m5.large", 80, 30), 0, measured("ami-1", "m5.large", 90, 20).Merge(measured("ami-2", "m5.large", 80, 30)), 2},
		{nil, 25, measured("ami-2", "m5.large", 80, 30), 3},
	} {
		kept, err := store.Write(t.Context(), step.add, step.since)
		if diff := cmp.Diff(step.want, kept); err != nil || diff != "" || updates != step.updates {
			t.Errorf("step %d: %v, %d updates so far, want %d (-want +got):\n%s", i, err, updates, step.updates, diff)
		}
		read, err := store.Read(t.Context())
		if diff := cmp.Diff(step.want, read); err != nil || diff != "" {
			t.Errorf("step %d, read: %v (-want +got):\n%s", i, err, diff)
		}
	}
	var found corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: MeasuredName}, &found); err != nil ||
		found.Annotations[annotationAbout] == "" {
		t.Errorf("the ConfigMap lacks the annotation %s: %v, %v", annotationAbout, found.Annotations, err)
	}
}

// TestMeasuredStoreIsBounded: the size of the ConfigMap is about measuredLimit (512 KiB), and it keeps the latest
// measurements.
func TestMeasuredStoreIsBounded(t *testing.T) {
	t.Parallel()
	c := fakeServer(t, interceptor.Funcs{})
	store := MeasuredStore{Live: c, Writer: c, Namespace: "kube-system"}
	many := catalog.Measurements{}
	for i := range 20_000 {
		many[catalog.Sample{Image: fmt.Sprintf("ami-%017d", i%100), Type: fmt.Sprintf("x9.%dxlarge", i)}] =
			catalog.Measured{Memory: int64(1e12 + i), Seen: catalog.Day(i)}
	}
	if _, err := store.Write(t.Context(), many, 0); err != nil {
		t.Fatal(err)
	}
	var found corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: MeasuredName}, &found); err != nil {
		t.Fatal(err)
	}
	if n := found.Size(); n > 600<<10 || n < 400<<10 {
		t.Errorf("the ConfigMap has %d bytes, want 400 KiB to 600 KiB", n)
	}
	kept, err := store.Read(t.Context())
	if last := many[catalog.Sample{Image: "ami-00000000000000099", Type: "x9.19999xlarge"}]; err != nil ||
		kept[catalog.Sample{Image: "ami-00000000000000099", Type: "x9.19999xlarge"}].Memory != last.Memory {
		t.Errorf("the newest of %d measurements is not kept: %v", len(kept), err)
	}
}

// TestMeasuredStoreFaults: Read reports invalid lines and returns the valid ones. After an error, Write returns no
// measurements.
func TestMeasuredStoreFaults(t *testing.T) {
	t.Parallel()
	c := fakeServer(t, interceptor.Funcs{}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: MeasuredName},
		Data:       map[string]string{"ami-1": "m5.large memory=5 seen=2026-01-01\nt3.nano memory=much\n"},
	})
	store := MeasuredStore{Live: c, Writer: c, Namespace: "kube-system"}
	kept, err := store.Read(t.Context())
	if len(kept) != 1 || err == nil || !strings.Contains(err.Error(), "kube-system/"+MeasuredName) ||
		!strings.Contains(err.Error(), "t3.nano") {
		t.Errorf("Read returns %v, %v; want 1 measurement, and an error about t3.nano", kept, err)
	}

	group := schema.GroupResource{Resource: "configmaps"}
	for name, test := range map[string]struct {
		hooks interceptor.Funcs
		want  NextStep
	}{
		"reading is not allowed": {interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey,
			client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(group, MeasuredName, nil)
		}}, ReportToUser},
		"another replica created the ConfigMap": {interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
			...client.CreateOption) error {
			return apierrors.NewAlreadyExists(group, MeasuredName)
		}}, Reread},
	} {
		c := fakeServer(t, test.hooks)
		store := MeasuredStore{Live: c, Writer: c, Namespace: "kube-system"}
		if kept, err := store.Write(t.Context(), measured("ami-1", "m5.large", 1, 1), 0); Classify(err) != test.want || kept != nil {
			t.Errorf("%s: %v, %v; want %s", name, kept, err, test.want)
		}
	}
}
